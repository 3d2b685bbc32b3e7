use std::io;
use std::time::Instant;

use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

use crate::blocking::RawSocket;
use crate::core::Connection;

/// A socket that tokio watches.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(super) fn new(socket: RawSocket) -> io::Result<Self> {
        match socket {
            RawSocket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                TcpStream::from_std(stream).map(Self::Tcp)
            }
            RawSocket::Unix(stream) => {
                stream.set_nonblocking(true)?;
                UnixStream::from_std(stream).map(Self::Unix)
            }
        }
    }

    pub(super) async fn exchange(&self, core: &mut Connection, wants_answers: bool) -> io::Result<()> {
        let is_sent = self.send(core)?;
        if is_sent && !wants_answers {
            return Ok(());
        }
        let interest = if is_sent { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
        match self {
            Self::Tcp(stream) => stream.ready(interest).await?,
            Self::Unix(stream) => stream.ready(interest).await?,
        };
        self.receive(core)
    }

    pub(super) fn exchange_now(&self, core: &mut Connection) -> io::Result<()> {
        self.send(core)?;
        self.receive(core)
    }

    /// Receives what the operating system has, also where tokio has not looked since it came.
    pub(super) fn receive_unseen(&self, core: &mut Connection) -> io::Result<()> {
        let socket = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        };
        loop {
            match recv(socket, core.input_space(), RecvFlags::DONTWAIT) {
                Ok((_, 0)) => core.lost(None),
                Ok((_, count)) => drop(core.received(count)),
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            return Ok(());
        }
    }

    /// Sends what fits. Says whether that was all.
    pub(super) fn send(&self, core: &mut Connection) -> io::Result<bool> {
        while core.has_output() {
            core.leaves(Instant::now);
            let sent = match self {
                Self::Tcp(stream) => stream.try_write(core.output()),
                Self::Unix(stream) => stream.try_write(core.output()),
            };
            match sent {
                Ok(count) => core.sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn receive(&self, core: &mut Connection) -> io::Result<()> {
        let received = match self {
            Self::Tcp(stream) => stream.try_read(core.input_space()),
            Self::Unix(stream) => stream.try_read(core.input_space()),
        };
        match received {
            Ok(0) => core.lost(None),
            // A failure is kept by the core, which tells every operation of it.
            Ok(count) => {
                drop(core.received(count));
                core.heard(Instant::now);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
