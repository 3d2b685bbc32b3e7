//! Settings of MySQL and MariaDB: where the server is. Who logs in, and how, is the client's own business.

use crate::host::{self, HostName};
use crate::rewrite::Override;
use crate::written::{Place, Written};
use crate::{Conninfo, ConninfoError, Environment, Host, Keepalives, Protocol, Settings, SslMode};

/// The variable that the clients of both servers read a host from.
pub(crate) const HOST_VARIABLE: &str = "MYSQL_HOST";
/// Variables with its port: the clients' own, and the one that containers and frameworks have.
pub(crate) const PORT_VARIABLES: [&str; 2] = ["MYSQL_TCP_PORT", "MYSQL_PORT"];

/// Settings that name a Unix socket, by their drivers' names.
const SOCKETS: [&str; 5] = ["unix_socket", "unixSocket", "socket", "socketPath", "localSocket"];
/// Where servers have theirs if nobody says otherwise: Debian, Red Hat, Oracle's packages.
pub(crate) const USUAL_SOCKETS: [&str; 4] = [
    "/run/mysqld/mysqld.sock",
    "/var/run/mysqld/mysqld.sock",
    "/var/lib/mysql/mysql.sock",
    "/tmp/mysql.sock",
];
/// Values of settings about TLS that do not insist on it.
const WEAK: [&str; 12] = [
    "",
    "0",
    "false",
    "off",
    "no",
    "disable",
    "disabled",
    "prefer",
    "preferred",
    "allow",
    "if-available",
    "default",
];

/// Settings of its drivers that say how much TLS.
const TLS_MODES: [&str; 7] = ["ssl-mode", "ssl_mode", "sslmode", "sslMode", "useSSL", "ssl", "tls"];
/// Their values that want none.
const NO_TLS: [&str; 6] = ["disabled", "disable", "false", "0", "off", "no"];

/// The settings of a server: hosts and ports, and whether there is to be no TLS. Nothing of libpq's variables holds.
pub(crate) fn resolve(settings: &Settings) -> Result<Conninfo, ConninfoError> {
    let local = || HostName::Tcp { name: "localhost".to_owned(), address: None };
    let nothing = Conninfo::resolve(&Settings::default(), &Environment::default())?;
    Ok(Conninfo {
        hosts: by_socket(settings, host::resolve_by(settings, Protocol::Mysql.port(), local)?),
        protocol: Protocol::Mysql,
        user: settings.get_nonempty("user").map(str::to_owned),
        dbname: settings.get_nonempty("dbname").map(str::to_owned),
        sslmode: if wants_no_tls(settings) { SslMode::Disable } else { SslMode::Prefer },
        keepalives: Keepalives::default(),
        ..nothing
    })
}

/// The hosts, with the socket in place of a local one, as clients have it.
fn by_socket(settings: &Settings, hosts: Vec<Host>) -> Vec<Host> {
    let named = SOCKETS.iter().find_map(|keyword| settings.get_nonempty(keyword));
    let by_socket = |host: Host| match (&host.name, named) {
        (HostName::Unix(path), _) => Host::socket(path, host.port),
        (HostName::Tcp { name, address: None }, Some(path)) if name.eq_ignore_ascii_case("localhost") => {
            Host::socket(path, host.port)
        }
        _ => host,
    };
    hosts.into_iter().map(by_socket).collect()
}

/// What takes the socket out of connection text, if it names one.
pub(crate) fn without_socket(written: &Written) -> Vec<Override> {
    let is_written = |keyword: &&str| {
        let mut own = written.entries.iter().filter(|entry| entry.keyword == **keyword);
        own.any(|entry| !matches!(entry.place, Place::Address))
    };
    let named = SOCKETS.iter().filter(|keyword| is_written(keyword));
    named.map(|keyword| Override { keyword, value: String::new() }).collect()
}

fn wants_no_tls(settings: &Settings) -> bool {
    let mut values = TLS_MODES.iter().filter_map(|keyword| settings.get_nonempty(keyword));
    values.any(|value| NO_TLS.contains(&value.to_ascii_lowercase().as_str()))
}

/// The setting by which connection text insists on TLS, if it does: such a client either sees another certificate than it
/// expects, or nobody sees what it says.
pub(crate) fn insists_on_tls(written: &Written) -> Option<&str> {
    let is_about_tls = |keyword: &str| {
        let keyword = keyword.to_ascii_lowercase();
        // `useSSL` of Connector/J only prefers it.
        keyword != "usessl" && (keyword == "tls" || keyword.contains("ssl"))
    };
    let insists = |value: &str| !WEAK.contains(&value.to_ascii_lowercase().as_str());
    let own = written.entries.iter().filter(|entry| !matches!(entry.place, Place::Address));
    own.filter(|entry| is_about_tls(&entry.keyword) && insists(&entry.value))
        .map(|entry| entry.keyword.as_str())
        .next()
}
