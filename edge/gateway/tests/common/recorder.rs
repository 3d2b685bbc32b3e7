//! A relay that writes down what a driver sends and after which replies it sent it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::client::Endpoint;
use super::messages::is_encryption_request;
use super::replay::Step;
use super::transcript::Transcript;

/// One connection as it was recorded.
#[derive(Debug, Default)]
struct Tape {
    steps: Vec<Step>,
    replies: Transcript,
    /// Messages of the server at the time of the client's last words.
    heard: usize,
}

impl Tape {
    fn client_said(&mut self, bytes: &[u8]) {
        if let Some(last) = self.replies.messages.last().filter(|_| self.replies.messages.len() > self.heard)
        {
            let (tag, count) = (last.tag, self.replies.count(last.tag));
            self.steps.push(Step::Await { tag, count });
            self.heard = self.replies.messages.len();
        }
        if is_encryption_request(bytes) {
            self.replies.single_byte_follows();
        }
        self.steps.push(Step::Send(bytes.to_vec()));
    }
}

/// A relay in front of a server.
#[derive(Debug)]
pub(crate) struct Recorder {
    endpoint: Endpoint,
    stopping: Arc<AtomicBool>,
    accepting: JoinHandle<Vec<JoinHandle<Vec<Step>>>>,
}

impl Recorder {
    pub(crate) fn start(server: Endpoint) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let endpoint = Endpoint::Tcp(listener.local_addr().expect("it is bound"));
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let accepting = thread::spawn(move || {
            let mut tapes = Vec::new();
            for client in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let Endpoint::Tcp(address) = server else { break };
                let upstream = TcpStream::connect(address).expect("the server listens");
                tapes.push(thread::spawn(move || record(&client, &upstream)));
            }
            tapes
        });
        Self { endpoint, stopping, accepting }
    }

    /// Where the driver connects.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The steps of every connection, in the order of connecting.
    pub(crate) fn stop(self) -> Vec<Vec<Step>> {
        self.stopping.store(true, Ordering::SeqCst);
        drop(self.endpoint.connect());
        let tapes = self.accepting.join().expect("it accepts until told to stop");
        tapes.into_iter().map(|tape| tape.join().expect("the connection ends")).collect()
    }
}

fn record(client: &TcpStream, server: &TcpStream) -> Vec<Step> {
    let tape = Mutex::new(Tape::default());
    for stream in [client, server] {
        stream.set_nodelay(true).expect("a TCP socket");
    }
    let note = |from_client: bool, bytes: &[u8]| {
        let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
        if from_client { tape.client_said(bytes) } else { tape.replies.push(bytes) }
    };
    thread::scope(|scope| {
        scope.spawn(|| carry(server, client, |bytes| note(false, bytes)));
        carry(client, server, |bytes| note(true, bytes));
    });
    tape.into_inner().unwrap_or_else(PoisonError::into_inner).steps
}

/// Written down first, carried afterwards: what a client says later was said after it.
fn carry(mut from: &TcpStream, mut into: &TcpStream, mut note: impl FnMut(&[u8])) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        note(&buffer[..count]);
        if into.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = into.shutdown(Shutdown::Write);
}
