//! TCP and Unix sockets as one type.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use onetrip_target::Keepalives;
use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected stream socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// What the kernel knows of a path, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PathTime {
    pub(crate) rtt_us: u32,
    pub(crate) rtt_min_us: u32,
}

impl Socket {
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let ready = match self {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        ready.map_ok(|()| buffer.filled().len())
    }

    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, from),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, from),
        }
    }

    /// Sends the end of the stream; the other direction stays open.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// The kernel's round-trip times; `None` on a Unix socket.
    pub(crate) fn path_time(&self) -> Option<PathTime> {
        match self {
            Self::Tcp(stream) => path_time(stream.as_fd()),
            Self::Unix(_) => None,
        }
    }

    /// The socket, without the runtime; it still does not block.
    pub(crate) fn into_fd(self) -> io::Result<OwnedFd> {
        match self {
            Self::Tcp(stream) => stream.into_std().map(OwnedFd::from),
            Self::Unix(stream) => stream.into_std().map(OwnedFd::from),
        }
    }
}

impl PathTime {
    /// Two paths in a row.
    pub(crate) fn and(self, next: Self) -> Self {
        Self {
            rtt_us: self.rtt_us.saturating_add(next.rtt_us),
            rtt_min_us: self.rtt_min_us.saturating_add(next.rtt_min_us),
        }
    }
}

/// The kernel's round-trip times of a TCP socket.
pub(crate) fn path_time(socket: BorrowedFd<'_>) -> Option<PathTime> {
    tcp_info::path_time(socket)
}

/// Of a client: one that vanished is noticed after two minutes.
pub(crate) const CLIENT_KEEPALIVES: Keepalives = Keepalives {
    is_on: true,
    idle: Some(Duration::from_secs(60)),
    interval: Some(Duration::from_secs(10)),
    count: Some(6),
    user_timeout: None,
};

impl Socket {
    /// Has the kernel look whether the peer is still there.
    pub(crate) fn watch(&self, keepalives: &Keepalives) {
        match self {
            Self::Tcp(stream) => watch(stream.as_fd(), keepalives),
            Self::Unix(_) => {}
        }
    }
}

/// Has the kernel look whether the peer of a TCP socket is still there. A system that knows no such option goes without.
pub(crate) fn watch(socket: BorrowedFd<'_>, keepalives: &Keepalives) {
    let _ = sockopt::set_socket_keepalive(socket, keepalives.is_on);
    if keepalives.is_on {
        let _ = keepalives.idle.map(|idle| sockopt::set_tcp_keepidle(socket, idle));
        let _ = keepalives.interval.map(|interval| sockopt::set_tcp_keepintvl(socket, interval));
        let _ = keepalives.count.map(|count| sockopt::set_tcp_keepcnt(socket, count));
    }
    let millis = |timeout: Duration| u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
    let _ = keepalives.user_timeout.map(|timeout| sockopt::set_tcp_user_timeout(socket, millis(timeout)));
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        // Small messages must leave at once; a socket that refuses the option only makes them later.
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(stream)
    }
}

/// `TCP_INFO`, for which no safe wrapper is at hand.
#[allow(unsafe_code)]
mod tcp_info {
    use std::os::fd::{AsRawFd, BorrowedFd};

    use crate::socket::PathTime;

    /// Places of `tcpi_rtt` and `tcpi_min_rtt` in Linux's `struct tcp_info` (`include/uapi/linux/tcp.h`), which
    /// only ever grows at its end.
    const RTT_AT: usize = 68;
    const RTT_MIN_AT: usize = 148;

    pub(super) fn path_time(socket: BorrowedFd<'_>) -> Option<PathTime> {
        let fd = socket.as_raw_fd();
        let mut info = [0u8; 256];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: `info` is writable for `length` bytes, `length` says so, and both live through the call; an fd
        // that is not a TCP socket makes the call fail without writing.
        let result = unsafe {
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut length)
        };
        if result != 0 || (length as usize) < RTT_MIN_AT + 4 {
            return None;
        }
        let field = |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        Some(PathTime { rtt_us: field(RTT_AT), rtt_min_us: field(RTT_MIN_AT) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_gets_what_the_settings_say_and_no_more() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let socket = || std::net::TcpStream::connect(address).expect("it listens");
        let seconds = Duration::from_secs;
        let set = socket();
        let user_timeout = Some(Duration::from_millis(1_500));
        let (idle, interval) = (Some(seconds(5)), Some(seconds(2)));
        watch(set.as_fd(), &Keepalives { is_on: true, idle, interval, count: Some(3), user_timeout });
        assert_eq!(sockopt::socket_keepalive(&set), Ok(true));
        assert_eq!(sockopt::tcp_keepidle(&set), Ok(seconds(5)));
        assert_eq!(sockopt::tcp_keepintvl(&set), Ok(seconds(2)));
        assert_eq!(sockopt::tcp_keepcnt(&set), Ok(3));
        assert_eq!(sockopt::tcp_user_timeout(&set), Ok(1_500));

        let unset = socket();
        let defaults = sockopt::tcp_keepidle(&unset);
        watch(unset.as_fd(), &Keepalives { is_on: false, idle, ..Keepalives::default() });
        assert_eq!(sockopt::socket_keepalive(&unset), Ok(false));
        assert_eq!(sockopt::tcp_keepidle(&unset), defaults);
        assert_eq!(sockopt::tcp_user_timeout(&unset), Ok(0));
    }
}
