//! One end of a connection that a worker serves: a socket of its loop, with TLS on it or without.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use crate::buffer::Buffer;
use crate::channel::Channel;
use crate::socket::{PathTime, path_time};

/// A leg in the loop's hands. It asks the kernel only where there may be an answer: the loop says when that is again.
#[derive(Debug)]
pub(crate) struct Line {
    raw: Raw,
    channel: Channel,
    /// TLS may hold bytes, or the end, that came already.
    holds_bytes: bool,
    /// The loop is to say when the socket takes bytes again.
    waits_to_write: bool,
    is_tcp: bool,
    /// The path between the other end of a simulated link and the peer, of which the kernel does not know.
    beyond: PathTime,
}

/// The socket, and what the kernel would answer.
#[derive(Debug)]
struct Raw {
    socket: OwnedFd,
    /// It may have bytes. The loop is told only of what comes after it was found empty.
    may_read: bool,
    /// It may take bytes.
    may_write: bool,
    /// The peer sends no more. That is told once, so an end may hide behind the last bytes.
    is_ending: bool,
}

impl Line {
    /// `socket` does not block.
    pub(crate) fn new(socket: OwnedFd, is_tcp: bool, channel: Channel, beyond: PathTime) -> Self {
        let raw = Raw { socket, may_read: true, may_write: true, is_ending: false };
        let holds_bytes = !channel.is_plain();
        Self { raw, channel, holds_bytes, waits_to_write: false, is_tcp, beyond }
    }

    /// Has the loop say when bytes come.
    pub(crate) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.raw.socket.as_raw_fd()), token, Interest::READABLE)
    }

    /// The loop no longer says anything of it.
    pub(crate) fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.waits_to_write = false;
        registry.deregister(&mut SourceFd(&self.raw.socket.as_raw_fd()))
    }

    /// Has the loop say when bytes are taken again, as long as something waits for that.
    pub(crate) fn attend(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let waits = !self.raw.may_write;
        if waits == self.waits_to_write {
            return Ok(());
        }
        self.waits_to_write = waits;
        let interest = if waits { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        // If it can be read, or written to, by now, the loop says so once more.
        registry.reregister(&mut SourceFd(&self.raw.socket.as_raw_fd()), token, interest)
    }

    /// What the loop says.
    pub(crate) fn heard(&mut self, event: &mio::event::Event) {
        let has_ended = event.is_read_closed() || event.is_error();
        self.raw.is_ending |= has_ended;
        self.raw.may_read |= event.is_readable() || has_ended;
        self.raw.may_write |= event.is_writable() || event.is_write_closed() || event.is_error();
    }

    /// Something may have come of which the loop has not said anything yet.
    pub(crate) fn look(&mut self) {
        self.raw.may_read = true;
    }

    /// Whether it is of use to read.
    pub(crate) fn may_read(&self) -> bool {
        self.raw.may_read || self.holds_bytes
    }

    /// Reads into `into`; `None` where nothing is there, and zero bytes are the end of the stream.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let read = self.channel.read(&mut self.raw, into);
        // Behind what came, TLS may hold more, or the end: no event of the socket follows for those.
        self.holds_bytes = !self.channel.is_plain() && matches!(read, Ok(1..));
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            read => read.map(Some),
        }
    }

    /// Sends what is decided; `false` where not all of it is taken now.
    pub(crate) fn send(&mut self, buffer: &mut Buffer) -> io::Result<bool> {
        while !buffer.is_sent() {
            match self.channel.write(&mut self.raw, buffer.unsent()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => buffer.sent(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.channel.flush(&mut self.raw)
    }

    /// Says that nothing more will be sent. Whoever asks for it can do no more if that fails.
    pub(crate) fn shut_down(&mut self) {
        if matches!(self.channel.close(&mut self.raw), Ok(true)) {
            let _ = shutdown(&self.raw.socket, Shutdown::Write);
        }
    }

    pub(crate) fn path_time(&self) -> Option<PathTime> {
        if !self.is_tcp {
            return None;
        }
        Some(path_time(self.raw.socket.as_fd())?.and(self.beyond))
    }
}

impl Read for Raw {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.may_read {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        loop {
            match recv(&self.socket, &mut *into, RecvFlags::empty()) {
                Ok((count, _)) => {
                    // Fewer bytes than there was room for: that was all.
                    self.may_read = self.is_ending || count == into.len();
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.may_read &= error != Errno::AGAIN;
                    return Err(error.into());
                }
            }
        }
    }
}

impl Write for Raw {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        if !self.may_write {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        loop {
            match send(&self.socket, from, SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.may_write = count == from.len();
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    self.may_write &= error != Errno::AGAIN;
                    return Err(error.into());
                }
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use mio::{Events, Poll};

    use super::*;

    /// A line in a loop, and its peer.
    struct Stage {
        poll: Poll,
        line: Line,
        peer: UnixStream,
    }

    impl Stage {
        fn new() -> Self {
            let (socket, peer) = UnixStream::pair().unwrap();
            socket.set_nonblocking(true).unwrap();
            let poll = Poll::new().unwrap();
            let line = Line::new(socket.into(), false, Channel::default(), PathTime::default());
            line.register(poll.registry(), Token(0)).unwrap();
            Self { poll, line, peer }
        }

        /// Lets the line hear what the loop says; returns how much that was.
        fn hear(&mut self) -> usize {
            let mut events = Events::with_capacity(8);
            self.line.attend(self.poll.registry(), Token(0)).unwrap();
            self.poll.poll(&mut events, Some(Duration::from_millis(20))).unwrap();
            events.iter().for_each(|event| self.line.heard(event));
            events.iter().count()
        }
    }

    #[test]
    fn a_socket_that_was_found_empty_is_asked_again_when_something_has_come() {
        let mut stage = Stage::new();
        let mut into = [0; 8];
        assert_eq!((stage.line.may_read(), stage.line.read(&mut into).unwrap()), (true, None));
        assert!(!stage.line.may_read());
        for _ in 0..3 {
            stage.peer.write_all(b"abc").unwrap();
            assert_eq!((stage.hear(), stage.line.may_read()), (1, true));
            assert_eq!(stage.line.read(&mut into).unwrap(), Some(3));
            assert!(!stage.line.may_read(), "fewer bytes than there was room for");
        }
        stage.peer.write_all(b"abcdefghij").unwrap();
        stage.hear();
        assert_eq!((stage.line.read(&mut into).unwrap(), stage.line.may_read()), (Some(8), true));
        assert_eq!((stage.line.read(&mut into).unwrap(), stage.line.may_read()), (Some(2), false));
    }

    #[test]
    fn an_end_that_was_told_with_the_last_bytes_is_not_missed() {
        let mut stage = Stage::new();
        stage.peer.write_all(b"abc").unwrap();
        stage.peer.shutdown(std::net::Shutdown::Write).unwrap();
        stage.hear();
        let mut into = [0; 8];
        assert_eq!(stage.line.read(&mut into).unwrap(), Some(3));
        assert_eq!(stage.hear(), 0, "the loop has told it");
        assert_eq!((stage.line.may_read(), stage.line.read(&mut into).unwrap()), (true, Some(0)));
    }

    #[test]
    fn what_is_not_taken_goes_when_it_is_and_nobody_is_woken_otherwise() {
        let mut stage = Stage::new();
        let sent: Vec<u8> = (0..4_000_000_u32).map(|number| number as u8).collect();
        let mut buffer = Buffer::new();
        buffer.insert(&mut sent.clone());
        assert!(!stage.line.send(&mut buffer).unwrap());
        assert_eq!(stage.hear(), 0, "the peer takes nothing");
        let mut reader = stage.peer.try_clone().unwrap();
        let reading = std::thread::spawn(move || {
            let mut came = vec![0; 4_000_000];
            reader.read_exact(&mut came).unwrap();
            came
        });
        while !stage.line.send(&mut buffer).unwrap() {
            stage.hear();
        }
        assert!(reading.join().unwrap() == sent);
        assert!(buffer.is_sent());
        stage.hear();
        assert_eq!(stage.hear(), 0, "that it takes bytes is of no interest any more");
    }
}
