//! Waiting for a client that is likely to be quick.
//!
//! To sleep and be woken costs a session several microseconds, about as much as a small statement. So a session whose
//! client was quick the last time looks again and again for a moment, letting other threads go first each time, and
//! sleeps only then. A client that thinks for longer costs one such moment and no more. Where there is but one core to
//! share with the client, looking takes from the client what it saves, and sessions sleep at once.

use std::io::{self, Read};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Longest wait that is called quick, and longest time that a session looks instead of sleeping.
const QUICK: Duration = Duration::from_micros(50);

/// Reads from a socket that blocks.
pub(super) struct EagerReader<'s> {
    stream: &'s TcpStream,
    may_look: bool,
    /// Whether the last wait was quick.
    was_quick: bool,
}

impl<'s> EagerReader<'s> {
    pub(super) fn new(stream: &'s TcpStream, may_look: bool) -> Self {
        Self { stream, may_look, was_quick: false }
    }

    /// What comes within [`QUICK`], if anything does.
    fn look(&self, buffer: &mut [u8], start: Instant) -> io::Result<Option<usize>> {
        loop {
            match recv(self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) if start.elapsed() < QUICK => thread::yield_now(),
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for EagerReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        if !self.may_look {
            return stream.read(buffer);
        }
        let start = Instant::now();
        let found = if self.was_quick { self.look(buffer, start)? } else { None };
        let count = found.map_or_else(|| stream.read(buffer), Ok)?;
        self.was_quick = start.elapsed() < QUICK;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn bytes_come_whether_the_client_is_quick_or_slow_and_so_does_the_end() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let mut reader = EagerReader::new(&stream, true);
        let mut read = || {
            let mut byte = [0];
            (reader.read(&mut byte).unwrap(), byte[0])
        };
        client.write_all(b"ab").unwrap();
        assert_eq!([read(), read()], [(1, b'a'), (1, b'b')]);
        let slow = thread::spawn(move || {
            thread::sleep(4 * QUICK);
            client.write_all(b"c").unwrap();
            thread::sleep(4 * QUICK);
        });
        assert_eq!([read(), read()], [(1, b'c'), (0, 0)]);
        slow.join().unwrap();
    }
}
