//! Which connections of a program go to the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::address::{Address, candidates};
use crate::host::{is_localhost, is_same_file};
use crate::intercept::{Destination, Lead};
use crate::{Conninfo, Host, HostName, Protocol, mysql};

/// A name is looked up anew at most so often.
const LOOKUP_EVERY: Duration = Duration::from_secs(5);
/// PostgreSQL's port, PgBouncer's, and MySQL's.
const KNOWN_PORTS: [u16; 3] = [Protocol::Postgres.port(), 6432, Protocol::Mysql.port()];
const SOCKET_PREFIX: &str = ".s.PGSQL.";
/// Names of MySQL's sockets.
const MYSQL_SOCKETS: [&str; 3] = ["mysqld.sock", "mysql.sock", "mariadb.sock"];

/// Where the gateway listens.
#[derive(Clone, Debug)]
pub struct Gateways {
    /// Its port.
    pub tcp: SocketAddr,
    /// Its Unix socket, for programs that use one.
    pub unix: PathBuf,
}

/// Leads connections to these servers to the gateway.
pub fn lead_to_known(upstream: &Conninfo, gateways: Gateways) -> Lead {
    let mut known = Known::new(upstream.clone());
    Box::new(move |destination| known.is_meant(destination).then(|| gateways.for_a(destination)))
}

/// Tells whether one of these servers is at an address. Names are looked up once, now.
pub fn leads_to(upstream: &Conninfo) -> impl Fn(&SocketAddr) -> bool + use<> {
    let known = Known::new(upstream.clone());
    move |address| known.is_known(&Destination::Tcp(*address))
}

/// The ports of these servers, and those that databases have by default.
pub fn database_ports(upstream: &Conninfo) -> impl Iterator<Item = u16> {
    upstream.hosts.iter().map(|host| host.port).chain(KNOWN_PORTS)
}

/// Whether databases have this port by default.
pub fn is_database_port(port: u16) -> bool {
    KNOWN_PORTS.contains(&port)
}

/// Leads connections to the first server that looks like a database's, which is said to `taken`.
pub fn lead_to_first(gateways: Gateways, taken: impl FnOnce(Host) -> bool + Send + 'static) -> Lead {
    let mut taken = Some(taken);
    let mut first: Option<Destination> = None;
    Box::new(move |destination| {
        if first.is_none() && *destination != Destination::Tcp(gateways.tcp) {
            if let Some(host) = database(destination) {
                first = taken.take().is_some_and(|taken| taken(host)).then(|| destination.clone());
            }
        }
        (first.as_ref() == Some(destination)).then(|| gateways.for_a(destination))
    })
}

impl Gateways {
    fn for_a(&self, destination: &Destination) -> Destination {
        match destination {
            Destination::Tcp(_) => Destination::Tcp(self.tcp),
            Destination::Unix(_) => Destination::Unix(self.unix.clone()),
        }
    }
}

/// The server that listens at a place, if its port or its socket's name is a database's.
fn database(destination: &Destination) -> Option<Host> {
    match destination {
        Destination::Tcp(address) => {
            let is_known = is_database_port(address.port());
            is_known.then(|| Host::tcp(address.ip().to_string(), address.port()))
        }
        Destination::Unix(path) => {
            let name = path.file_name()?.to_str()?;
            if MYSQL_SOCKETS.contains(&name) {
                return Some(Host::socket(path, Protocol::Mysql.port()));
            }
            let port = name.strip_prefix(SOCKET_PREFIX)?.parse().ok()?;
            Some(Host::unix(path.parent()?, port))
        }
    }
}

/// A database's addresses.
struct Known {
    conninfo: Conninfo,
    addresses: Vec<Address>,
    looked_up_at: Instant,
}

impl Known {
    fn new(conninfo: Conninfo) -> Self {
        let addresses = places(&conninfo);
        Self { conninfo, addresses, looked_up_at: Instant::now() }
    }

    fn is_meant(&mut self, destination: &Destination) -> bool {
        if self.is_known(destination) {
            return true;
        }
        // A name may have got another address since.
        let Destination::Tcp(address) = destination else { return false };
        let names = self.conninfo.hosts.iter().any(|host| {
            host.port == address.port() && matches!(host.name, HostName::Tcp { address: None, .. })
        });
        if !names || self.looked_up_at.elapsed() < LOOKUP_EVERY {
            return false;
        }
        *self = Self::new(self.conninfo.clone());
        self.is_known(destination)
    }

    fn is_known(&self, destination: &Destination) -> bool {
        self.addresses.iter().any(|known| match (known, destination) {
            (Address::Tcp(known), Destination::Tcp(to)) => {
                let both_local = is_localhost(known.ip()) && is_localhost(to.ip());
                known.port() == to.port() && (known.ip().to_canonical() == to.ip() || both_local)
            }
            (Address::Unix(known), Destination::Unix(to)) => is_same_file(known, to),
            _ => false,
        })
    }
}

/// Where a program that means this database connects to: for MySQL's clients, `localhost` is the socket of the server.
pub(super) fn places(conninfo: &Conninfo) -> Vec<Address> {
    let mut places: Vec<_> = candidates(conninfo).filter_map(|(_, address)| address.ok()).collect();
    let is_usual = |host: &Host| host.is_local() && !host.is_unix() && host.port == Protocol::Mysql.port();
    if conninfo.protocol == Protocol::Mysql && conninfo.hosts.iter().any(is_usual) {
        places.extend(mysql::USUAL_SOCKETS.map(|path| Address::Unix(PathBuf::from(path))));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn gateways() -> Gateways {
        Gateways { tcp: "127.0.0.1:6432".parse().unwrap(), unix: "/gateway".into() }
    }

    #[test]
    fn localhost_of_mysql_is_the_usual_sockets_too() {
        let leads = |url: &str, socket: &str| {
            let conninfo = Conninfo::parse(url, &Environment::default()).unwrap();
            lead_to_known(&conninfo, gateways())(&Destination::Unix(socket.into()))
        };
        let gateway = Some(Destination::Unix("/gateway".into()));
        for socket in mysql::USUAL_SOCKETS {
            assert_eq!(leads("mysql://127.0.0.1", socket), gateway, "{socket}");
            assert_eq!(leads("mysql://127.0.0.1:3307", socket), None, "{socket}");
            assert_eq!(leads("postgres://127.0.0.1:3306", socket), None, "{socket}");
        }
        assert_eq!(leads("mysql://127.0.0.1", "/run/other.sock"), None);
    }

    #[test]
    fn the_first_socket_of_mysqls_is_a_database() {
        for name in MYSQL_SOCKETS {
            let path = PathBuf::from("/run").join(name);
            let expected = Host::socket(path.clone(), Protocol::Mysql.port());
            let mut lead = lead_to_first(gateways(), move |host| host == expected);
            let to = Destination::Unix(path);
            assert_eq!(lead(&Destination::Unix("/run/other.sock".into())), None);
            assert_eq!(lead(&to), Some(Destination::Unix("/gateway".into())), "{name}");
        }
    }
}
