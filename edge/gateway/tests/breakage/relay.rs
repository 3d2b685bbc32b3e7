//! A relay that hands bytes on in small pieces, slowly, or only so many of them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::client::Endpoint;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

/// How bytes are handed on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Bytes per write towards the client.
    pub(crate) piece: usize,
    /// Time between such writes.
    pub(crate) pause: Duration,
}

impl Pace {
    /// As they come.
    pub(crate) const AS_IT_COMES: Self = Self { piece: usize::MAX, pause: Duration::ZERO };
}

/// A relay on a port of its own; it lives as long as the test process.
#[derive(Debug)]
pub(crate) struct Relay {
    port: u16,
    left: Arc<[AtomicI64; 2]>,
}

/// Enough for any test.
const UNLIMITED: i64 = i64::MAX / 2;

impl Relay {
    pub(crate) fn start(server: Endpoint, pace: Pace) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let left = Arc::new([AtomicI64::new(UNLIMITED), AtomicI64::new(UNLIMITED)]);
        let limits = Arc::clone(&left);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (limits, server) = (Arc::clone(&limits), server.port());
                thread::spawn(move || {
                    let server = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
                    carry_both(&client, &server, pace, &limits);
                });
            }
        });
        Self { port, left }
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::tcp(self.port)
    }

    /// After so many more bytes of one direction, both sockets of every connection are cut.
    pub(crate) fn cut_after(&self, way: Way, bytes: i64) {
        self.left[way as usize].store(bytes, Ordering::SeqCst);
    }

    /// Nothing is cut any more.
    pub(crate) fn mend(&self) {
        self.left.iter().for_each(|left| left.store(UNLIMITED, Ordering::SeqCst));
    }
}

fn carry_both(client: &TcpStream, server: &TcpStream, pace: Pace, limits: &[AtomicI64; 2]) {
    for stream in [client, server] {
        stream.set_nodelay(true).expect("a TCP socket");
    }
    thread::scope(|scope| {
        scope.spawn(|| carry(server, client, pace, &limits[Way::ToClient as usize]));
        carry(client, server, Pace::AS_IT_COMES, &limits[Way::ToServer as usize]);
    });
}

fn carry(mut from: &TcpStream, mut into: &TcpStream, pace: Pace, left: &AtomicI64) {
    let mut buffer = vec![0; 64 * 1024];
    'open: while let Ok(count @ 1..) = from.read(&mut buffer) {
        let before = left.fetch_sub(count as i64, Ordering::SeqCst);
        let passes = count.min(usize::try_from(before).unwrap_or(0));
        for piece in buffer[..passes].chunks(pace.piece) {
            if into.write_all(piece).is_err() {
                break 'open;
            }
            if !pace.pause.is_zero() {
                thread::sleep(pace.pause);
            }
        }
        if passes < count {
            // Either may be gone already.
            let _ = from.shutdown(Shutdown::Both);
            let _ = into.shutdown(Shutdown::Both);
            return;
        }
    }
    // The other end may be gone.
    let _ = into.shutdown(Shutdown::Write);
}
