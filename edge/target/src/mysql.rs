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
/// Those of mysql-connector that say that there is to be none.
const TLS_SWITCHES: [&str; 1] = ["ssl_disabled"];
/// Their values that want none.
const NO_TLS: [&str; 6] = ["disabled", "disable", "false", "0", "off", "no"];

/// The settings of a server: hosts and ports, and whether there is to be no TLS. Nothing of libpq's variables holds.
pub(crate) fn resolve(settings: &Settings) -> Result<Conninfo, ConninfoError> {
    let local = || HostName::Tcp { name: "localhost".to_owned(), address: None };
    let nothing = Conninfo::resolve(&Settings::default(), &Environment::default())?;
    let mut extra = Settings::default();
    for (keyword, value) in settings.iter().filter(|(keyword, _)| is_about_tls(keyword)) {
        extra.set(keyword, value);
    }
    Ok(Conninfo {
        hosts: by_socket(settings, host::resolve_by(settings, Protocol::Mysql.port(), local)?),
        extra,
        protocol: Protocol::Mysql,
        user: settings.get_nonempty("user").map(str::to_owned),
        dbname: settings.get_nonempty("dbname").map(str::to_owned),
        sslmode: if wants_no_tls(settings) { SslMode::Disable } else { SslMode::Prefer },
        keepalives: Keepalives::resolve(settings)?,
        ..nothing
    })
}

/// The hosts, or the socket in their place: drivers take it whatever the host is.
fn by_socket(settings: &Settings, hosts: Vec<Host>) -> Vec<Host> {
    if let Some(path) = socket(|keyword| settings.get_nonempty(keyword)) {
        let port = hosts.first().map_or(Protocol::Mysql.port(), |host| host.port);
        return vec![Host::socket(path, port)];
    }
    let by_socket = |host: Host| match &host.name {
        HostName::Unix(path) => Host::socket(path, host.port),
        _ => host,
    };
    hosts.into_iter().map(by_socket).collect()
}

/// The socket that settings name.
pub(crate) fn socket<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<&'a str> {
    SOCKETS.iter().find_map(|keyword| get(keyword))
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
    let mut switches = TLS_SWITCHES.iter().filter_map(|keyword| settings.get(keyword));
    values.any(|value| NO_TLS.contains(&value.to_ascii_lowercase().as_str()))
        || switches.any(|value| !is_weak(value))
}

/// The setting by which connection text insists on TLS, if it does: such a client either sees another certificate than it
/// expects, or nobody sees what it says.
pub(crate) fn insists_on_tls(written: &Written) -> Option<&str> {
    let own = written.entries.iter().filter(|entry| !matches!(entry.place, Place::Address));
    insisting(own.map(|entry| (entry.keyword.as_str(), entry.value.as_str())))
}

fn is_about_tls(keyword: &str) -> bool {
    let keyword = keyword.to_ascii_lowercase();
    // `useSSL` of Connector/J only prefers it.
    keyword != "usessl" && (keyword == "tls" || keyword.contains("ssl"))
}

/// The first of these settings that insists on TLS.
pub(crate) fn insisting<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let insists = |keyword: &str, value: &str| !TLS_SWITCHES.contains(&keyword) && !is_weak(value);
    let mut insisting = settings.filter(|(keyword, value)| is_about_tls(keyword) && insists(keyword, value));
    insisting.next().map(|(keyword, _)| keyword)
}

/// The option by which one of the servers' own clients insists on TLS, of all about TLS in their order.
pub(crate) fn insisting_option<'a>(
    options: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Option<&'a str> {
    let (mut mode, mut detail) = (None, None);
    for (name, value) in options {
        let is_weak = value.is_some_and(is_weak);
        match name {
            "skip-ssl" | "disable-ssl" => mode = Some(None),
            "ssl-mode" | "ssl" => mode = Some(Some(name).filter(|_| !is_weak)),
            _ if name.starts_with("ssl-") && !is_weak => detail = detail.or(Some(name)),
            _ => {}
        }
    }
    mode.unwrap_or(detail)
}

/// Whether a value of a setting about TLS does not insist on it.
fn is_weak(value: &str) -> bool {
    WEAK.contains(&value.to_ascii_lowercase().as_str())
}
