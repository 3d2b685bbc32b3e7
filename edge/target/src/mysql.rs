//! Settings of MySQL and MariaDB: where the server is. Who logs in, and how, is the client's own business.

use std::time::Duration;

use crate::host::{self, HostName};
use crate::mysql_tls::{Wanted, asks_for_nothing};
use crate::rewrite::Override;
use crate::written::{Place, Written};
use crate::{Conninfo, ConninfoError, Environment, Host, Keepalives, Protocol, Settings};

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
/// The settings of a server: hosts and ports, and how much TLS. Nothing of libpq's variables holds.
pub(crate) fn resolve(settings: &Settings) -> Result<Conninfo, ConninfoError> {
    let local = || HostName::Tcp { name: "localhost".to_owned(), address: None };
    let nothing = Conninfo::resolve(&Settings::default(), &Environment::default())?;
    let wanted = Wanted::read(settings.iter());
    let mut extra = Settings::default();
    for (keyword, value) in &wanted.unread {
        extra.set(keyword, value);
    }
    let hosts = by_socket(settings, host::resolve_by(settings, Protocol::Mysql.port(), local)?);
    let of_go = hosts.iter().find_map(|host| match &host.name {
        HostName::Tcp { name, .. } if name.contains('(') => Some(name.clone()),
        _ => None,
    });
    if let Some(name) = of_go {
        return Err(ConninfoError::GoAddress { name });
    }
    Ok(Conninfo {
        hosts,
        extra,
        protocol: Protocol::Mysql,
        user: settings.get_nonempty("user").map(str::to_owned),
        dbname: settings.get_nonempty("dbname").map(str::to_owned),
        passes_tls: wanted.mode.is_none(),
        sslmode: wanted.mode.unwrap_or_default(),
        sslrootcert: wanted.roots,
        sslcert: wanted.certificate,
        sslkey: wanted.key,
        connect_timeout: connect_timeout(settings),
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

/// In seconds, as drivers that call it so have it.
fn connect_timeout(settings: &Settings) -> Option<Duration> {
    let seconds = settings.get_nonempty("connect_timeout")?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|limit| !limit.is_zero())
}

/// The option by which one of the servers' own clients insists on TLS, of all about TLS in their order.
pub(crate) fn insisting_option<'a>(
    options: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Option<&'a str> {
    let (mut mode, mut detail) = (None, None);
    for (name, value) in options {
        let is_weak = value.is_some_and(asks_for_nothing);
        match name {
            "skip-ssl" | "disable-ssl" => mode = Some(None),
            "ssl-mode" | "ssl" => mode = Some(Some(name).filter(|_| !is_weak)),
            _ if name.starts_with("ssl-") && !is_weak => detail = detail.or(Some(name)),
            _ => {}
        }
    }
    mode.unwrap_or(detail)
}
