use std::io;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use onetrip_target::address::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, sockopt};

/// Asked when a signal interrupts a wait: whether to give up.
pub(crate) type Interrupt = Option<fn() -> bool>;

/// A connected socket. Its own calls never block but where they say so.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn connect(address: &Address, deadline: Option<Instant>) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let stream = match deadline {
                    None => TcpStream::connect(address)?,
                    Some(deadline) => TcpStream::connect_timeout(address, left(deadline)?)?,
                };
                stream.set_nodelay(true)?;
                // As libpq does it: a peer that is gone shows in the end.
                sockopt::set_socket_keepalive(&stream, true)?;
                Ok(Self::Tcp(stream))
            }
            Address::Unix(path) => unix(path).map(Self::Unix),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        }
    }

    /// Ends both directions: who waits here hears the end of the stream.
    pub(super) fn shut_down(&self) {
        // It fails where the other side has ended the stream already.
        let _ = rustix::net::shutdown(self.fd(), Shutdown::Both);
    }

    /// Sends what fits; `None` where nothing does.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        loop {
            match send(self.fd(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Receives what is there; `None` where nothing is.
    pub(super) fn receive(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.receive_by(into, RecvFlags::DONTWAIT, None)
    }

    /// Waits until something is there, and receives it.
    pub(super) fn receive_next(&self, into: &mut [u8], interrupt: Interrupt) -> io::Result<Option<usize>> {
        self.receive_by(into, RecvFlags::empty(), interrupt)
    }

    fn receive_by(
        &self,
        into: &mut [u8],
        flags: RecvFlags,
        interrupt: Interrupt,
    ) -> io::Result<Option<usize>> {
        loop {
            match recv(self.fd(), &mut *into, flags) {
                Ok((_, count)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) if interrupt.is_some_and(|gives_up| gives_up()) => {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until there is something to read, or, if asked for, room to write. False when the deadline has passed.
    pub(super) fn wait(
        &self,
        writes: bool,
        deadline: Option<Instant>,
        interrupt: Interrupt,
    ) -> io::Result<bool> {
        let events = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        loop {
            let timeout = match deadline {
                None => None,
                Some(deadline) => match left(deadline) {
                    Ok(left) => Timespec::try_from(left).ok(),
                    Err(_) => return Ok(false),
                },
            };
            let mut fds = [PollFd::from_borrowed_fd(self.fd(), events)];
            match poll(&mut fds, timeout.as_ref()) {
                Err(Errno::INTR) if interrupt.is_some_and(|gives_up| gives_up()) => {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn unix(path: &Path) -> io::Result<UnixStream> {
    match path.as_os_str().as_bytes() {
        [0, name @ ..] => {
            UnixStream::connect_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
        }
        _ => UnixStream::connect(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_requests_do_not_wait_for_acknowledgements() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(listener.local_addr().unwrap());
        let Socket::Tcp(stream) = Socket::connect(&address, None).unwrap() else { panic!("by TCP") };
        assert!(stream.nodelay().unwrap(), "Nagle's algorithm would cost 40 ms a trip");
    }
}
