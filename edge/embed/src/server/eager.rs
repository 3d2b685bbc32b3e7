//! Waiting for a client that is likely to be quick.
//!
//! Sleeping and waking up cost a session several microseconds, about as much as a small statement. So while other
//! sessions are busy, a session whose client was quick the last time lets them go first. It then looks whether there
//! is something to do, and sleeps only if there is nothing.
//!
//! Two kinds of sessions sleep at once. With one core for all, waiting would take from the client what it saves. A
//! session that is alone would let only its own client or a gateway go first.

use std::io::{self, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Longest wait that is called quick.
const QUICK: Duration = Duration::from_micros(50);

/// How often a session looks before it sleeps; more than twice was not faster.
const LOOKS: u32 = 2;

/// How many of a server's sessions do not wait for their clients.
#[derive(Debug)]
pub(super) struct Awake {
    count: AtomicUsize,
    has_cores: bool,
}

impl Awake {
    pub(super) fn new() -> Self {
        let has_cores = thread::available_parallelism().is_ok_and(|cores| cores.get() > 1);
        Self { count: AtomicUsize::new(0), has_cores }
    }

    /// Whether a session that lets others go first lets other sessions go first.
    fn has_others(&self) -> bool {
        self.has_cores && self.count.load(Ordering::Relaxed) > 1
    }
}

/// Reads from a socket that blocks.
pub(super) struct EagerReader<'s> {
    stream: &'s TcpStream,
    awake: &'s Awake,
    /// Whether the last wait was quick.
    was_quick: bool,
}

impl<'s> EagerReader<'s> {
    pub(super) fn new(stream: &'s TcpStream, awake: &'s Awake) -> Self {
        awake.count.fetch_add(1, Ordering::Relaxed);
        Self { stream, awake, was_quick: false }
    }

    /// What comes while others go first, if anything does.
    fn look(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        for _ in 0..LOOKS {
            thread::yield_now();
            match recv(self.stream, &mut *buffer, RecvFlags::DONTWAIT) {
                Ok((count, _)) => return Ok(Some(count)),
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

impl Read for EagerReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let found = if self.was_quick && self.awake.has_others() { self.look(buffer)? } else { None };
        let count = match found {
            Some(count) => count,
            None => {
                self.awake.count.fetch_sub(1, Ordering::Relaxed);
                let mut stream = self.stream;
                let read = stream.read(buffer);
                self.awake.count.fetch_add(1, Ordering::Relaxed);
                read?
            }
        };
        self.was_quick = start.elapsed() < QUICK;
        Ok(count)
    }
}

impl Drop for EagerReader<'_> {
    fn drop(&mut self) {
        self.awake.count.fetch_sub(1, Ordering::Relaxed);
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
        let awake = Awake { count: AtomicUsize::new(1), has_cores: true };
        let mut reader = EagerReader::new(&stream, &awake);
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
        drop(reader);
        assert_eq!(awake.count.into_inner(), 1);
    }
}
