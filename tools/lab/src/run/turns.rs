//! Counts trips where no gateway can: a relay that notes each time a client speaks again after its server did.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::LabError;

const BUFFER_BYTES: usize = 64 << 10;
/// How long a relay that nobody needs stays.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A relay to a server, until it is dropped.
#[derive(Debug)]
pub(super) struct Turns {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    trips: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    is_over: AtomicBool,
}

/// What connections have come to so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// Times that a client spoke after its server had, or first.
    pub(super) trips: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
}

impl Turns {
    pub(super) fn start(target: SocketAddr) -> Result<Self, LabError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::Connection)?;
        let address = listener.local_addr().map_err(LabError::Connection)?;
        let counts = Arc::new(Counts::default());
        let for_thread = Arc::clone(&counts);
        let thread = thread::Builder::new().name("onetrip-turns".into());
        thread.spawn(move || listen(&listener, target, &for_thread)).map_err(LabError::Connection)?;
        Ok(Self { address, counts })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn counted(&self) -> Counted {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counted {
            trips: read(&self.counts.trips),
            sent: read(&self.counts.sent),
            received: read(&self.counts.received),
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
    }
}

impl Counted {
    /// What has come since then.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            trips: self.trips.saturating_sub(before.trips),
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
        }
    }
}

fn listen(listener: &TcpListener, target: SocketAddr, counts: &Arc<Counts>) {
    while !counts.is_over.load(Ordering::Relaxed) {
        let mut polled = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        if !matches!(poll(&mut polled, Some(&PATIENCE)), Ok(1..)) {
            continue;
        }
        let Ok((client, _)) = listener.accept() else { continue };
        // A client whose server cannot be reached sees its connection end.
        let Ok(server) = TcpStream::connect(target) else { continue };
        let counts = Arc::clone(counts);
        // As does one for which there is no thread.
        let _ =
            thread::Builder::new().name("onetrip-turns".into()).spawn(move || carry(client, server, &counts));
    }
}

/// Carries bytes until one side ends: then both do.
fn carry(mut client: TcpStream, mut server: TcpStream, counts: &Counts) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut is_answered = true;
    while !counts.is_over.load(Ordering::Relaxed) {
        let mut polled = [
            PollFd::from_borrowed_fd(client.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(server.as_fd(), PollFlags::IN),
        ];
        poll(&mut polled, Some(&PATIENCE))?;
        let [from_client, from_server] = polled.map(|side| !side.revents().is_empty());
        // What the server has said by now came before what the client says now.
        if from_server {
            let bytes = server.read(&mut buffer)?;
            if bytes == 0 {
                return Ok(());
            }
            is_answered = true;
            counts.received.fetch_add(bytes as u64, Ordering::Relaxed);
            client.write_all(&buffer[..bytes])?;
        }
        if from_client {
            let bytes = client.read(&mut buffer)?;
            if bytes == 0 {
                return Ok(());
            }
            if std::mem::take(&mut is_answered) {
                counts.trips.fetch_add(1, Ordering::Relaxed);
            }
            counts.sent.fetch_add(bytes as u64, Ordering::Relaxed);
            server.write_all(&buffer[..bytes])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_in_two_pieces_and_its_answer_are_one_trip() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let turns = Turns::start(listener.local_addr().unwrap()).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 6];
            for _ in 0..3 {
                stream.read_exact(&mut question).unwrap();
                stream.write_all(b"yes").unwrap();
            }
        });
        let mut client = TcpStream::connect(turns.address()).unwrap();
        client.set_nodelay(true).unwrap();
        for _ in 0..3 {
            client.write_all(b"are").unwrap();
            thread::sleep(std::time::Duration::from_millis(5));
            client.write_all(b"you").unwrap();
            client.read_exact(&mut [0; 3]).unwrap();
        }
        assert_eq!(turns.counted(), Counted { trips: 3, sent: 18, received: 9 });
        assert_eq!(turns.counted().since(turns.counted()), Counted::default());
        server.join().unwrap();
    }
}
