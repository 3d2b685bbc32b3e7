//! Passes connections on, and records them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};

use onetrip_wire::mysql::dialogue::Side;

use crate::recording::Recording;

/// Bytes of one read.
const PIECE_BYTES: usize = 64 << 10;

type Shared = Arc<Mutex<Recording>>;

/// A port that leads to a server, for a number of connections known beforehand.
pub(crate) struct Relay {
    pub(crate) port: u16,
    acceptor: JoinHandle<Vec<Shared>>,
}

impl Relay {
    /// Takes `connections`, one after the other or at once.
    pub(crate) fn start(server_port: u16, connections: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let acceptor = spawn(move || {
            let passed: Vec<_> = (0..connections)
                .map(|_| {
                    let (client, _) = listener.accept().expect("a client comes");
                    let server = TcpStream::connect(("127.0.0.1", server_port)).expect("the server is there");
                    pass_on(client, server)
                })
                .collect();
            let ended = passed.into_iter().map(|(recording, threads)| {
                threads.into_iter().for_each(|thread| thread.join().expect("it passes on without failing"));
                recording
            });
            ended.collect()
        });
        Self { port, acceptor }
    }

    /// What was recorded, once all connections have ended.
    pub(crate) fn recordings(self) -> Vec<Recording> {
        let recordings = self.acceptor.join().expect("it accepts without failing");
        recordings.iter().map(|recording| recording.lock().expect("nobody failed").clone()).collect()
    }
}

fn pass_on(client: TcpStream, server: TcpStream) -> (Shared, [JoinHandle<()>; 2]) {
    let recording = Shared::default();
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an option of TCP");
    }
    let copy = |stream: &TcpStream| stream.try_clone().expect("a further handle");
    let threads = [(Side::Client, copy(&client), copy(&server)), (Side::Server, server, client)].map(
        |(side, from, to)| {
            let recording = recording.clone();
            spawn(move || pass(side, from, to, &recording))
        },
    );
    (recording, threads)
}

/// Records before it passes on, so that nothing stands before what it answers.
fn pass(side: Side, mut from: TcpStream, mut to: TcpStream, recording: &Mutex<Recording>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(read @ 1..) = from.read(&mut piece) {
        recording.lock().expect("nobody failed").0.push((side, piece[..read].to_vec()));
        if to.write_all(&piece[..read]).is_err() {
            break;
        }
    }
    // The other side may have gone first.
    let _ = to.shutdown(Shutdown::Write);
}
