use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

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

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}
