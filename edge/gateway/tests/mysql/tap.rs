//! A relay that writes down what passes, to be put on either side of the gateway.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Who sent bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Client,
    Server,
}

/// A connection as it went over the wire.
#[derive(Debug, Default, Clone)]
pub(crate) struct Tape(Vec<(From, Vec<u8>)>);

type Tapes = Arc<Mutex<Vec<Arc<Mutex<Tape>>>>>;

/// A port that leads to another; it lives as long as the test process.
#[derive(Debug)]
pub(crate) struct Tap {
    pub(crate) port: u16,
    tapes: Tapes,
}

impl Tap {
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let tapes = Tapes::default();
        let all = Arc::clone(&tapes);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let tape = Arc::default();
                lock(&all).push(Arc::clone(&tape));
                relay(client, server, &tape);
            }
        });
        Self { port, tapes }
    }

    /// What passed so far, in the order of connecting.
    pub(crate) fn tapes(&self) -> Vec<Tape> {
        lock(&self.tapes).iter().map(|tape| lock(tape).clone()).collect()
    }
}

impl Tape {
    /// All bytes of one side.
    pub(crate) fn bytes_of(&self, from: From) -> Vec<u8> {
        let own = self.0.iter().filter(|(sender, _)| *sender == from);
        own.flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    }

    /// Round trips by turn-taking: the server speaks after the client. This counts without any protocol.
    pub(crate) fn turns(&self) -> u64 {
        let pairs = self.0.windows(2);
        pairs.filter(|pair| pair[0].0 == From::Client && pair[1].0 == From::Server).count() as u64
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn relay(client: TcpStream, server: TcpStream, tape: &Arc<Mutex<Tape>>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("a TCP socket");
    }
    let copy = |stream: &TcpStream| stream.try_clone().expect("a further handle");
    let ends = [(From::Client, copy(&client), copy(&server)), (From::Server, server, client)];
    for (from, source, sink) in ends {
        let tape = Arc::clone(tape);
        thread::spawn(move || carry(from, source, sink, &tape));
    }
}

/// Writes down first and carries afterwards, so that nothing stands before what it answers.
fn carry(from: From, mut source: TcpStream, mut sink: TcpStream, tape: &Mutex<Tape>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        lock(tape).0.push((from, buffer[..count].to_vec()));
        if sink.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = sink.shutdown(Shutdown::Write);
}
