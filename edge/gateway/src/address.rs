use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use onetrip_target::address::Address;

/// Where the gateway listens: `HOST:PORT`, or the path of a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port; 0 is any free one.
    Tcp(SocketAddr),
    /// A Unix socket. A directory stands for the name that clients look for there, `.s.PGSQL.6432`.
    Unix(PathBuf),
}

/// The text is no listening address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not an address to listen at; write HOST:PORT (127.0.0.1:6432) or the path of a Unix socket (/tmp/.s.PGSQL.6432)"
)]
pub struct ListenAddressError(String);

/// Port in the name of a socket whose directory alone was given.
const DEFAULT_PORT: u16 = 6432;

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains('/') {
            let path = PathBuf::from(text);
            let path = if path.is_dir() { path.join(format!(".s.PGSQL.{DEFAULT_PORT}")) } else { path };
            return Ok(Self::Unix(path));
        }
        let resolved = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
        resolved.map(Self::Tcp).ok_or_else(|| ListenAddressError(text.to_owned()))
    }
}

impl ListenAddress {
    /// Whether who connects to this address comes here.
    pub(crate) fn is_reached_by(&self, address: &Address) -> bool {
        match (self, address) {
            (Self::Unix(own), Address::Unix(path)) => {
                let place = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
                place(own).is_some_and(|own| place(path) == Some(own))
            }
            (Self::Tcp(own), Address::Tcp(address)) => {
                own.port() == address.port()
                    && is_heard_at(own.ip().to_canonical(), address.ip().to_canonical())
            }
            _ => false,
        }
    }
}

/// Whether who listens at `own` hears who connects to `address`.
fn is_heard_at(own: IpAddr, address: IpAddr) -> bool {
    // Who connects to no address in particular comes to this machine.
    let address = match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        address => address,
    };
    let hears_family = own.is_ipv6() || address.is_ipv4();
    own == address || own.is_unspecified() && hears_family && is_local(address)
}

/// Whether this machine has the address: a datagram to it would come from it. None is sent.
fn is_local(address: IpAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    address.is_loopback() || from.is_ok_and(|from| from.ip() == address)
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_this_machine_is_known_in_each_spelling() {
        let is_heard = |own: &str, address: &str| {
            let at = |text: &str| SocketAddr::new(text.parse().expect("an address"), 5432);
            ListenAddress::Tcp(at(own)).is_reached_by(&Address::Tcp(at(address)))
        };
        for (own, address) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "0.0.0.0"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("0.0.0.0", "127.0.0.9"),
            ("0.0.0.0", "0.0.0.0"),
            ("::", "0.0.0.0"),
            ("::", "127.0.0.1"),
            ("::", "::1"),
            ("::1", "::"),
        ] {
            assert!(is_heard(own, address), "{own} {address}");
        }
        for (own, address) in [
            ("127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "::1"),
            ("0.0.0.0", "::1"),
            ("0.0.0.0", "192.0.2.7"),
            ("127.0.0.2", "0.0.0.0"),
        ] {
            assert!(!is_heard(own, address), "{own} {address}");
        }
    }
}
