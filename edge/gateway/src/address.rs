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
                let is_here = own.ip() == address.ip() || own.ip().is_unspecified() && is_local(*address);
                own.port() == address.port() && is_here
            }
            _ => false,
        }
    }
}

/// Whether this machine has the address: a datagram to it would come from it. None is sent.
fn is_local(address: SocketAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address.ip())
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
