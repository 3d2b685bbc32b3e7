//! A client that sends bytes and keeps what comes back, message by message.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onetrip_wire::pg::{BackendKeyData, CancelRequest, ErrorResponse, backend, encode_cancel_request};

use super::messages::{self, is_encryption_request};
use super::transcript::{Message, Transcript};

/// Longest wait for anything in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Where a server or a gateway listens.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Tcp(std::net::SocketAddr),
    Unix(PathBuf),
}

impl Endpoint {
    pub(crate) fn tcp(port: u16) -> Self {
        Self::Tcp(([127, 0, 0, 1], port).into())
    }

    pub(crate) fn port(&self) -> u16 {
        match self {
            Self::Tcp(address) => address.port(),
            Self::Unix(_) => panic!("a unix socket has no port"),
        }
    }

    pub(crate) fn connect(&self) -> Stream {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).expect("somebody listens");
                stream.set_nodelay(true).expect("a TCP socket");
                Stream::Tcp(stream)
            }
            Self::Unix(path) => Stream::Unix(UnixStream::connect(path).expect("somebody listens")),
        }
    }

    /// Points a libpq program here, away from anything in its environment.
    pub(crate) fn point(&self, command: &mut Command, dbname: &str) {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
            command.env_remove(name);
        }
        match self {
            Self::Tcp(address) => {
                command.env("PGHOST", "127.0.0.1").env("PGPORT", address.port().to_string());
            }
            Self::Unix(path) => {
                let name = path.file_name().expect("a file").to_string_lossy().into_owned();
                let number = name.rsplit('.').next().expect("a number at its end").to_owned();
                command.env("PGHOST", path.parent().expect("a directory")).env("PGPORT", number);
            }
        }
        command.env("PGUSER", "onetrip").env("PGDATABASE", dbname);
    }
}

/// A connected socket of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    pub(crate) fn try_clone(&self) -> Self {
        match self {
            Self::Tcp(stream) => Self::Tcp(stream.try_clone().expect("descriptors are left")),
            Self::Unix(stream) => Self::Unix(stream.try_clone().expect("descriptors are left")),
        }
    }

    pub(crate) fn shutdown(&self, how: Shutdown) {
        // It may be gone already.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        };
    }

    pub(crate) fn set_timeouts(&self, timeout: Duration) {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)))
            }
        }
        .expect("a duration above zero");
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(from),
            Self::Unix(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the reading thread has so far.
#[derive(Debug, Default)]
struct Received {
    transcript: Transcript,
    /// The peer has hung up.
    ended: bool,
}

#[derive(Debug, Default)]
struct Shared {
    received: Mutex<Received>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client of bytes. A thread of its own reads, so that writing never waits for it.
#[derive(Debug)]
pub(crate) struct RawClient {
    stream: Stream,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

impl RawClient {
    pub(crate) fn connect(endpoint: &Endpoint) -> Self {
        let stream = endpoint.connect();
        stream.set_timeouts(PATIENCE);
        let shared = Arc::new(Shared::default());
        let (from, into) = (stream.try_clone(), Arc::clone(&shared));
        let reader = Some(thread::spawn(move || read_on(from, &into)));
        Self { stream, shared, reader }
    }

    /// A session of the server's superuser that is ready for queries.
    pub(crate) fn session(endpoint: &Endpoint, dbname: &str) -> Self {
        let mut client = Self::connect(endpoint);
        client.send(&messages::startup(dbname));
        client.await_count(backend::READY_FOR_QUERY, 1);
        client
    }

    /// Tries to open a session; `None` if the server hangs up instead.
    pub(crate) fn greeted(mut self, dbname: &str) -> Option<Self> {
        self.send(&messages::startup(dbname));
        let greeted = |received: &Received| received.transcript.count(backend::READY_FOR_QUERY) > 0;
        self.wait(|received| greeted(received) || received.ended, PATIENCE);
        let is_greeted = greeted(&self.shared.lock());
        is_greeted.then_some(self)
    }

    /// Sends all of `bytes`, as far as the peer takes them: one that hangs up says why in what it sent before.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if is_encryption_request(bytes) {
            self.shared.lock().transcript.single_byte_follows();
        }
        let _ = self.stream.write_all(bytes);
    }

    /// Sends a statement and returns all messages up to ReadyForQuery.
    pub(crate) fn query(&mut self, text: &str) -> Vec<Message> {
        let (before, ready) = {
            let received = self.shared.lock();
            let messages = &received.transcript.messages;
            (messages.len(), received.transcript.count(backend::READY_FOR_QUERY))
        };
        self.send(&messages::query(text));
        self.await_count(backend::READY_FOR_QUERY, ready + 1);
        self.shared.lock().transcript.messages[before..].to_vec()
    }

    /// Waits until so many messages with this tag have come since the beginning.
    pub(crate) fn await_count(&self, tag: u8, count: usize) {
        let done = |received: &Received| received.transcript.count(tag) >= count;
        assert!(
            self.wait(|received| done(received) || received.ended, PATIENCE) && done(&self.shared.lock()),
            "no {count}. message {:?}; there were {:?}",
            char::from(tag),
            self.shared.lock().transcript
        );
    }

    /// Whether so many messages with this tag come within `limit`.
    pub(crate) fn waits_for(&self, tag: u8, count: usize, limit: Duration) -> bool {
        self.wait(|received| received.transcript.count(tag) >= count, limit)
    }

    /// How many messages with this tag have come.
    pub(crate) fn count(&self, tag: u8) -> usize {
        self.shared.lock().transcript.count(tag)
    }

    /// The status of the transaction that the last ReadyForQuery said.
    pub(crate) fn status(&self) -> Option<u8> {
        self.shared.lock().transcript.status()
    }

    /// Waits until what came, and whether the peer has hung up, satisfies `done`; false if that takes longer.
    pub(crate) fn waits_until(&self, limit: Duration, done: impl Fn(&Transcript, bool) -> bool) -> bool {
        self.wait(|received| done(&received.transcript, received.ended), limit)
    }

    /// The messages that came from this place on.
    pub(crate) fn messages_from(&self, place: usize) -> Vec<Message> {
        self.shared.lock().transcript.messages[place..].to_vec()
    }

    /// Forgets the messages that have come; nothing may be under way.
    pub(crate) fn forget(&mut self) {
        self.shared.lock().transcript.clear();
    }

    /// How many messages have come.
    pub(crate) fn len(&self) -> usize {
        self.shared.lock().transcript.messages.len()
    }

    /// Whether the peer hangs up within `limit`.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        self.wait(|received| received.ended, limit)
    }

    /// Sends the end of the stream, and returns what came when the peer has ended, too.
    pub(crate) fn finish(self) -> Transcript {
        self.stream.shutdown(Shutdown::Write);
        self.transcript()
    }

    /// What came until the peer hung up.
    pub(crate) fn transcript(mut self) -> Transcript {
        let ended = self.ends_within(PATIENCE);
        let transcript = self.shared.lock().transcript.clone();
        assert!(ended, "the connection stays open; there were {transcript:?}");
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader does not panic");
        }
        transcript
    }

    /// What came so far.
    pub(crate) fn so_far(&self) -> Transcript {
        self.shared.lock().transcript.clone()
    }

    /// The errors that came so far: severity, SQLSTATE and message.
    pub(crate) fn errors(&self) -> Vec<(String, String, String)> {
        errors(&self.so_far())
    }

    /// Whom to cancel, as the server has told.
    pub(crate) fn cancel_request(&self) -> Vec<u8> {
        let received = self.shared.lock();
        let key =
            received.transcript.messages.iter().find(|message| message.tag == backend::BACKEND_KEY_DATA);
        let key = BackendKeyData::decode(&key.expect("the session has begun").body).expect("a key");
        let mut request = Vec::new();
        encode_cancel_request(&mut request, CancelRequest { process_id: key.process_id, key: key.key });
        request
    }

    fn wait(&self, done: impl Fn(&Received) -> bool, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut received = self.shared.lock();
        while !done(&received) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            received =
                self.shared.changed.wait_timeout(received, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Severity, SQLSTATE and message of every error in a transcript.
pub(crate) fn errors(transcript: &Transcript) -> Vec<(String, String, String)> {
    let read = |message: &Message| {
        let error = ErrorResponse::decode(&message.body).expect("fields");
        let field = |code| String::from_utf8_lossy(error.field(code).unwrap_or_default()).into_owned();
        (field(b'S'), field(b'C'), field(b'M'))
    };
    transcript.with_tag(backend::ERROR_RESPONSE).map(read).collect()
}

impl Drop for RawClient {
    fn drop(&mut self) {
        self.stream.shutdown(Shutdown::Both);
    }
}

fn read_on(mut stream: Stream, shared: &Shared) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = stream.read(&mut buffer);
        let mut received = shared.lock();
        match read {
            Ok(count) if count > 0 => received.transcript.push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => received.ended = true,
        }
        shared.changed.notify_all();
        if received.ended {
            return;
        }
    }
}
