//! Where a relay's connections lead.

use std::net::SocketAddr;
use std::path::PathBuf;

use rustix::fd::BorrowedFd;

/// Where a relay's connections lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A TCP service.
    Tcp(SocketAddr),
    /// A unix socket; the link's distance is added all the same.
    Unix(PathBuf),
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        Self::Unix(path)
    }
}

/// Sets options on a socket that will connect to the target.
pub(crate) type Prepare = Box<dyn Fn(BorrowedFd<'_>) + Send>;
