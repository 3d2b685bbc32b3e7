//! From a host to the addresses at which it may answer.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use crate::host::{HostName, socket_path};
use crate::{Conninfo, Host};

/// Longest path of a unix socket, in bytes (Linux's `sun_path` less its NUL).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// One thing to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A TCP port.
    Tcp(SocketAddr),
    /// A unix socket's path; one that begins with a NUL byte is a name in Linux's abstract namespace.
    Unix(PathBuf),
}

/// A host whose address cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The resolver does not know the name, or does not answer.
    #[error(
        "could not translate host name \"{name}\" to address: check the name, or give host and port of the database"
    )]
    Lookup {
        /// The name.
        name: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// A socket path that the operating system cannot take.
    #[error(
        "Unix-domain socket path \"{}\" is too long (maximum {SOCKET_PATH_BYTES_MAX} bytes): give a shorter directory as host",
        path.display()
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
}

/// The addresses of one host, in the order in which the resolver gives them. Blocks while the name is looked up.
///
/// # Errors
/// A name without an address, or a socket directory with too long a name.
pub fn resolve(host: &Host) -> Result<Vec<Address>, AddressError> {
    match &host.name {
        HostName::Tcp { address: Some(address), .. } => Ok(vec![Address::Tcp((*address, host.port).into())]),
        HostName::Tcp { name, address: None } => {
            let lookup = |source| AddressError::Lookup { name: name.clone(), source };
            let found: Vec<_> =
                (name.as_str(), host.port).to_socket_addrs().map_err(lookup)?.map(Address::Tcp).collect();
            if found.is_empty() { Err(lookup(io::ErrorKind::NotFound.into())) } else { Ok(found) }
        }
        HostName::Unix(_) | HostName::Socket(_) => unix(host).map(|address| vec![address]),
    }
}

/// The addresses of all hosts, each with its host, in the order of trying. A host that cannot be resolved stands in
/// the list as an error, since the next one may serve.
pub fn candidates(conninfo: &Conninfo) -> impl Iterator<Item = (&Host, Result<Address, AddressError>)> {
    conninfo.hosts.iter().flat_map(|host| {
        let addresses = match resolve(host) {
            Ok(addresses) => addresses.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        addresses.into_iter().map(move |address| (host, address))
    })
}

fn unix(host: &Host) -> Result<Address, AddressError> {
    let path = socket_path(host);
    if path.as_os_str().len() > SOCKET_PATH_BYTES_MAX {
        return Err(AddressError::SocketPath { path });
    }
    let abstract_name = path.to_str().and_then(|path| path.strip_prefix('@'));
    Ok(Address::Unix(match abstract_name {
        Some(name) => PathBuf::from(format!("\0{name}")),
        None => path,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(address: &str) -> Address {
        Address::Tcp(address.parse().unwrap())
    }

    #[test]
    fn literal_addresses_and_hostaddr_need_no_look_up() {
        assert_eq!(resolve(&Host::tcp("127.0.0.1", 5)).unwrap(), [tcp("127.0.0.1:5")]);
        assert_eq!(resolve(&Host::tcp("::1", 5)).unwrap(), [tcp("[::1]:5")]);
        let address = Some("10.0.0.1".parse().unwrap());
        let name = HostName::Tcp { name: "no-such-host.invalid".to_owned(), address };
        assert_eq!(resolve(&Host { name, port: 5 }).unwrap(), [tcp("10.0.0.1:5")]);
    }

    #[test]
    fn a_socket_stands_in_its_directory_under_its_port() {
        let path = |directory: &str| resolve(&Host::unix(directory, 5433)).unwrap();
        assert_eq!(path("/tmp"), [Address::Unix("/tmp/.s.PGSQL.5433".into())]);
        assert_eq!(path("@one/trip"), [Address::Unix("\0one/trip/.s.PGSQL.5433".into())]);
        let long = Host::unix(format!("/{}", "x".repeat(100)), 5432);
        assert!(matches!(resolve(&long), Err(AddressError::SocketPath { .. })));
    }

    #[test]
    fn a_name_without_an_address_is_an_error_that_names_it() {
        let error = resolve(&Host::tcp("no-such-host.invalid", 5432)).unwrap_err();
        assert!(error.to_string().contains("\"no-such-host.invalid\""), "{error}");
    }

    #[test]
    fn candidates_come_in_the_order_of_the_hosts_and_outlive_a_bad_one() {
        let text = "host=127.0.0.1,no-such-host.invalid,/tmp port=1,2,3";
        let conninfo = Conninfo::parse(text, &crate::Environment::default()).unwrap();
        let found: Vec<_> = candidates(&conninfo).map(|(host, address)| (host.port, address.ok())).collect();
        let socket = Address::Unix("/tmp/.s.PGSQL.3".into());
        assert_eq!(found, [(1, Some(tcp("127.0.0.1:1"))), (2, None), (3, Some(socket))]);
    }
}
