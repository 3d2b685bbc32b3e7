//! Non-blocking sockets, each ready or not for either direction (epoll, edge-triggered).

use std::io::{self, IoSliceMut};
use std::time::Duration;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use rustix::event::epoll;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::target::{Prepare, Target};

/// One end of a relayed connection.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer has closed: a short read does not mean that nothing is left to read.
    hangup: bool,
    /// The peer sent a reset, which a read does not always tell: after FIN, or when a write was told first.
    failed: bool,
    /// Room for the timestamp of what is read.
    control: Vec<u8>,
}

/// What a read brought.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// So many, and when the kernel had the last of them (CLOCK_REALTIME), where it says so.
    Bytes(usize, Option<Duration>),
    Nothing,
    End,
    Broken,
}

/// What a write achieved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    Bytes(usize),
    Nothing,
    Broken,
}

impl Socket {
    /// An accepted connection.
    pub(super) fn accepted(fd: OwnedFd) -> Self {
        Self {
            fd,
            readable: false,
            writable: true,
            hangup: false,
            failed: false,
            control: nix::cmsg_space!(nix::sys::time::TimeSpec),
        }
    }

    /// Starts to connect; the first event tells how it went.
    pub(super) fn dial(target: &Target, prepare: &Prepare) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let open = |family| {
            let fd = net::socket_with(family, SocketType::STREAM, flags, None)?;
            prepare(fd.as_fd());
            Ok::<_, Errno>(fd)
        };
        let (fd, outcome) = match target {
            Target::Tcp(address) => {
                let fd = open(if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
                let outcome = net::connect(&fd, address);
                (fd, outcome)
            }
            Target::Unix(path) => {
                let fd = open(AddressFamily::UNIX)?;
                let outcome = net::connect(&fd, &SocketAddrUnix::new(path.as_path())?);
                (fd, outcome)
            }
        };
        match outcome {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self {
                fd,
                readable: false,
                writable: false,
                hangup: false,
                failed: false,
                control: nix::cmsg_space!(nix::sys::time::TimeSpec),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Registers with `epoll`, sends small writes at once and asks for the time at which bytes come. A unix socket has
    /// no such delay to turn off, and no such time.
    pub(super) fn register(&self, queue: &OwnedFd, token: u64) -> io::Result<()> {
        let _ = sockopt::set_tcp_nodelay(&self.fd, true);
        let _ = setsockopt(&self.fd, ReceiveTimestampns, &true);
        let flags =
            epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
        Ok(epoll::add(queue, &self.fd, epoll::EventData::new_u64(token), flags)?)
    }

    /// Takes in an event.
    pub(super) fn note(&mut self, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        self.hangup |= flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        self.failed |= flags.contains(Flags::ERR);
        self.readable |= self.hangup || flags.contains(Flags::IN);
        self.writable |= flags.intersects(Flags::OUT | Flags::HUP | Flags::ERR);
    }

    /// Whether connecting, which has ended, brought a connection.
    pub(super) fn connected(&self) -> bool {
        matches!(sockopt::socket_error(&self.fd), Ok(Ok(())))
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Read {
        match self.receive(buffer) {
            Ok((0, _)) => {
                self.readable = false;
                if self.failed { Read::Broken } else { Read::End }
            }
            Ok((bytes, arrived)) => {
                self.readable = bytes == buffer.len() || self.hangup;
                Read::Bytes(bytes, arrived)
            }
            Err(nix::Error::EINTR) => Read::Nothing,
            Err(nix::Error::EAGAIN) => {
                self.readable = false;
                Read::Nothing
            }
            Err(_) => {
                self.readable = false;
                Read::Broken
            }
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> nix::Result<(usize, Option<Duration>)> {
        let mut parts = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<()>(self.fd.as_raw_fd(), &mut parts, Some(&mut self.control), flags)?;
        let arrived = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
            _ => None,
        });
        Ok((message.bytes, arrived))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Written {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::io::retry_on_intr(|| net::send(&self.fd, bytes, flags)) {
            Ok(written) => Written::Bytes(written),
            Err(Errno::AGAIN) => {
                self.writable = false;
                Written::Nothing
            }
            Err(_) => {
                self.failed = true;
                self.readable = true;
                Written::Broken
            }
        }
    }

    /// Sends FIN. A peer that is gone does not mind.
    pub(super) fn finish(&self) {
        let _ = net::shutdown(&self.fd, net::Shutdown::Write);
    }

    /// Closing will send RST. A unix socket cannot, and closes.
    pub(super) fn reset_on_close(&self) {
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }
}
