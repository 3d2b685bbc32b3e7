//! The servers that settings name, in the order in which they are tried.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use crate::{ConninfoError, Environment, Protocol, Settings, mysql};

/// PostgreSQL's port.
const DEFAULT_PORT: u16 = Protocol::Postgres.port();

/// One place where a server may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Network host or socket directory.
    pub name: HostName,
    /// TCP port, or the number in the socket's file name.
    pub port: u16,
}

/// A network host or a socket directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostName {
    /// Reached by TCP.
    Tcp {
        /// Name or address as given: what a certificate must show and what TLS announces.
        name: String,
        /// libpq's `hostaddr`, which saves the look-up of the name.
        address: Option<IpAddr>,
    },
    /// Directory of a unix socket; one that begins with `@` is in Linux's abstract namespace.
    Unix(PathBuf),
    /// A unix socket itself, as MySQL's clients name it.
    Socket(PathBuf),
}

impl Host {
    /// A network host.
    pub fn tcp(name: impl Into<String>, port: u16) -> Self {
        Self { name: HostName::Tcp { name: name.into(), address: None }, port }
    }

    /// A socket directory.
    pub fn unix(directory: impl Into<PathBuf>, port: u16) -> Self {
        Self { name: HostName::Unix(directory.into()), port }
    }

    /// A unix socket by its path; the port is what the server has beside it.
    pub fn socket(path: impl Into<PathBuf>, port: u16) -> Self {
        Self { name: HostName::Socket(path.into()), port }
    }

    /// Whether this is a unix socket, on which libpq never uses TLS.
    pub fn is_unix(&self) -> bool {
        matches!(self.name, HostName::Unix(_) | HostName::Socket(_))
    }

    /// Whether this is `localhost`, by whatever name.
    pub(crate) fn is_local(&self) -> bool {
        match &self.name {
            HostName::Unix(_) | HostName::Socket(_) => true,
            HostName::Tcp { name, .. } => name == "localhost" || name.parse().is_ok_and(is_localhost),
        }
    }

    /// The value of libpq's `host` for this place.
    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        match &self.name {
            HostName::Tcp { name, .. } => name.into(),
            HostName::Unix(path) | HostName::Socket(path) => path.to_string_lossy(),
        }
    }

    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self.name {
            HostName::Tcp { address, .. } => address,
            HostName::Unix(_) | HostName::Socket(_) => None,
        }
    }

    /// Whether both name the same server: by name and port, where `localhost`, its addresses and Unix sockets are one name. A
    /// socket that is named by its path has no port: only the usual ones of MySQL are those of its usual port.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let is_one_place = match (&self.name, &other.name) {
            (HostName::Socket(path), HostName::Socket(other) | HostName::Unix(other))
            | (HostName::Unix(other), HostName::Socket(path)) => return is_same_file(path, other),
            (HostName::Socket(path), HostName::Tcp { .. }) => return other.has_socket(path),
            (HostName::Tcp { .. }, HostName::Socket(path)) => return self.has_socket(path),
            (HostName::Unix(one), HostName::Unix(other)) => is_same_file(one, other),
            _ => self.name().eq_ignore_ascii_case(&other.name()) || (self.is_local() && other.is_local()),
        };
        self.port == other.port && is_one_place
    }

    /// Whether this is where MySQL's server usually listens beside this socket.
    fn has_socket(&self, path: &Path) -> bool {
        let is_usual = mysql::USUAL_SOCKETS.iter().any(|usual| is_same_file(Path::new(usual), path));
        is_usual && self.is_local() && self.port == Protocol::Mysql.port()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            HostName::Tcp { name, .. } if name.contains(':') => {
                write!(formatter, "[{name}]:{}", self.port)
            }
            HostName::Tcp { name, .. } => write!(formatter, "{name}:{}", self.port),
            HostName::Unix(_) | HostName::Socket(_) => write!(formatter, "{}", socket_path(self).display()),
        }
    }
}

/// Whether `localhost` has this address: a program gets either from that name, and tries both. Another loopback address, such as
/// 127.0.0.2, can have a server of its own at the same port.
pub(crate) fn is_localhost(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address == Ipv4Addr::LOCALHOST || address == Ipv6Addr::LOCALHOST
}

/// `/var/run` is `/run`.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// `directory/.s.PGSQL.port`, or the socket that is named itself.
pub(crate) fn socket_path(host: &Host) -> PathBuf {
    match &host.name {
        HostName::Socket(path) => path.clone(),
        _ => Path::new(host.name().as_ref()).join(format!(".s.PGSQL.{}", host.port)),
    }
}

/// Checks hosts and ports without filling anything in.
pub(crate) fn check(settings: &Settings) -> Result<(), ConninfoError> {
    from_settings(settings, DEFAULT_PORT, || HostName::Unix(PathBuf::new())).map(drop)
}

/// The hosts that settings name; where they name none, libpq's default.
pub(crate) fn resolve(settings: &Settings, environment: &Environment) -> Result<Vec<Host>, ConninfoError> {
    let first = settings.get("port").and_then(|ports| ports.split(',').next()).unwrap_or("");
    let port = parse_port(first, DEFAULT_PORT)?;
    from_settings(settings, DEFAULT_PORT, || default_name(port, environment))
}

/// The same with another port and host where settings name none.
pub(crate) fn resolve_by(
    settings: &Settings,
    port: u16,
    default: impl Fn() -> HostName,
) -> Result<Vec<Host>, ConninfoError> {
    from_settings(settings, port, default)
}

fn from_settings(
    settings: &Settings,
    default_port: u16,
    default: impl Fn() -> HostName,
) -> Result<Vec<Host>, ConninfoError> {
    let names = list(settings.get_nonempty("host"));
    let addresses = list(settings.get_nonempty("hostaddr"));
    let ports = list(settings.get_nonempty("port"));
    let hosts = if addresses.is_empty() { names.len().max(1) } else { addresses.len() };
    if !addresses.is_empty() && !names.is_empty() && names.len() != hosts {
        return Err(ConninfoError::Count { keyword: "host", count: names.len(), hosts });
    }
    if ports.len() > 1 && ports.len() != hosts {
        return Err(ConninfoError::Count { keyword: "port", count: ports.len(), hosts });
    }
    let host = |index: usize| {
        let port = if ports.len() > 1 { ports.get(index) } else { ports.first() };
        let name = names.get(index).copied().unwrap_or("");
        let address = addresses.get(index).copied().unwrap_or("");
        // Zero is MySQL's usual port, and no port of PostgreSQL's.
        let port = port.filter(|port| settings.protocol() != Protocol::Mysql || port.trim() != "0");
        let port = parse_port(port.unwrap_or(&""), default_port)?;
        Ok(Host { name: host_name(name, address, &default)?, port })
    };
    (0..hosts).map(host).collect()
}

fn host_name(name: &str, address: &str, default: impl Fn() -> HostName) -> Result<HostName, ConninfoError> {
    if !address.is_empty() {
        let parsed: IpAddr = address.parse().map_err(|_| ConninfoError::HostAddress)?;
        let name = if name.is_empty() { address } else { check_name(name)? };
        let address = (name.parse() != Ok(parsed)).then_some(parsed);
        return Ok(HostName::Tcp { name: name.to_owned(), address });
    }
    match name.as_bytes().first() {
        None => Ok(default()),
        Some(b'/' | b'@') => Ok(HostName::Unix(PathBuf::from(name))),
        Some(_) => Ok(HostName::Tcp { name: check_name(name)?.to_owned(), address: None }),
    }
}

/// Refuses what cannot be a host name: it is most often a piece of a password with an unescaped sign.
fn check_name(name: &str) -> Result<&str, ConninfoError> {
    let impossible = |character: char| {
        character.is_whitespace() || character.is_control() || "@/\\?#[]\"'&=,".contains(character)
    };
    if name.contains(impossible) { Err(ConninfoError::Host) } else { Ok(name) }
}

/// Checks a list of ports by itself.
pub(crate) fn check_ports(text: &str) -> Result<(), ConninfoError> {
    list(Some(text)).into_iter().try_for_each(|port| parse_port(port, DEFAULT_PORT).map(drop))
}

fn parse_port(text: &str, default: u16) -> Result<u16, ConninfoError> {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    if text.is_empty() {
        return Ok(default);
    }
    text.parse().ok().filter(|port| *port != 0).ok_or(ConninfoError::Port)
}

/// libpq's comma-separated list: no value at all is no element, and elements may be empty.
fn list(value: Option<&str>) -> Vec<&str> {
    value.map_or_else(Vec::new, |value| value.split(',').collect())
}

/// The socket directory, as libpq; `localhost` where this machine has none.
fn default_name(port: u16, environment: &Environment) -> HostName {
    let directories = &environment.socket_directories;
    let has_socket = |directory: &&PathBuf| directory.join(format!(".s.PGSQL.{port}")).exists();
    let usable = directories.iter().find(has_socket);
    match usable.or_else(|| directories.first().filter(|directory| directory.exists())) {
        Some(directory) => HostName::Unix(directory.clone()),
        None => HostName::Tcp { name: "localhost".to_owned(), address: None },
    }
}
