//! Programs on PostgreSQL itself, directly connected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use onetrip_pgserver::PgServer;
use onetrip_testkit::asked::Outcome;
use onetrip_testkit::messages::{query, startup_with, sync, terminate};
use onetrip_testkit::step::{Program, Step, Wait};
use onetrip_wire::pg::{BackendKeyData, DataRow, ErrorResponse, backend};

use super::lane::{Lane, Message, Taken};

/// A statement that takes longer may be waiting for another session.
const FIRST_LOOK: Duration = Duration::from_millis(4);
/// It waits for another session if it does so all this time; `deadlock_timeout` is shorter.
const SURELY: Duration = Duration::from_millis(20);
/// Longest time for anything.
const PATIENCE: Duration = Duration::from_secs(15);
/// Steps in a failed transaction after which a program gives it up.
const FAILED_STEPS_MAX: usize = 3;
/// The model has no plans: keys are walked in their order, lazily, as an index scan does.
const SETTINGS: [&str; 5] =
    ["enable_seqscan=off", "enable_bitmapscan=off", "enable_sort=off", "deadlock_timeout=5ms", "jit=off"];

/// A server of this major version.
pub(crate) fn start(version: &str) -> PgServer {
    let mut arguments = vec!["--version", version, "--auth", "trust"];
    SETTINGS.iter().for_each(|setting| arguments.extend(["--set", *setting]));
    PgServer::start(&arguments)
}

/// A connected client.
struct Client {
    stream: TcpStream,
    lane: Lane,
    process: u32,
}

impl Client {
    fn open(server: &PgServer, database: &str) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", server.at.port)).expect("the server listens");
        stream.set_nodelay(true).expect("a TCP socket");
        let mut client = Self { stream, lane: Lane::new(), process: 0 };
        let sent = startup_with(&[("user", "onetrip"), ("database", database)]);
        client.stream.write_all(&sent).expect("the server reads");
        assert!(client.is_done_within(PATIENCE), "the server lets clients in: {:?}", client.lane.messages);
        let key = client.lane.messages.iter().find(|message| message.tag == backend::BACKEND_KEY_DATA);
        let key = key.expect("the session has begun");
        client.process = BackendKeyData::decode(&key.body).expect("a key").process_id;
        client
    }

    fn is_done_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut buffer = [0; 16 * 1024];
        loop {
            if self.lane.is_done() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.stream.set_read_timeout(Some(left)).expect("more than zero");
            match self.stream.read(&mut buffer) {
                Ok(0) => self.lane.has_ended = true,
                Ok(count) => self.lane.receive(&buffer[..count]),
                Err(_) => return false, // it took too long
            }
        }
    }

    fn query(&mut self, text: &str) -> Vec<Message> {
        let step = Step::new(0, query(text), Wait::Ready(1), text);
        let start = self.lane.messages.len();
        let bytes = self.lane.send(&step);
        self.stream.write_all(&bytes).expect("the server reads");
        assert!(self.is_done_within(PATIENCE), "{text} ends");
        self.lane.messages[start..].to_vec()
    }
}

/// A database of a server, and a session that looks on.
pub(crate) struct Bench<'a> {
    server: &'a PgServer,
    database: String,
    observer: Client,
}

impl<'a> Bench<'a> {
    /// Makes the database.
    pub(crate) fn set_up(server: &'a PgServer, name: &str) -> Self {
        let mut observer = Client::open(server, "postgres");
        observer.query(&format!("CREATE DATABASE {name}"));
        let mut observer = Client::open(server, name);
        let made = observer.query(&onetrip_model::schema());
        assert!(made.iter().all(|message| message.tag != backend::ERROR_RESPONSE), "{made:?}");
        observer.query("VACUUM ANALYZE");
        Self { server, database: name.to_owned(), observer }
    }

    /// Runs a program on tables that are as made. `None` stands for a step that was left to chance: two sessions waited.
    pub(crate) fn run(&mut self, program: &Program) -> Vec<Taken> {
        self.observer.query(&onetrip_model::refill());
        let clients = (0..program.sessions).map(|_| Client::open(self.server, &self.database)).collect();
        let mut run = Run { clients, observer: &mut self.observer, taken: Vec::new(), starts: Vec::new() };
        for step in &program.steps {
            if run.clients.iter().filter(|client| client.lane.is_blocked).count() > 1 {
                break;
            }
            if run.clients[step.session].lane.failed >= FAILED_STEPS_MAX {
                run.take(&Step::new(step.session, query("ROLLBACK"), Wait::Ready(1), "ROLLBACK"));
            }
            run.take(step);
        }
        run.close()
    }
}

struct Run<'a> {
    clients: Vec<Client>,
    observer: &'a mut Client,
    taken: Vec<Taken>,
    starts: Vec<Option<(usize, usize)>>,
}

impl Run<'_> {
    fn take(&mut self, step: &Step) {
        let number = step.session;
        let lane = &mut self.clients[number].lane;
        let skipped = match () {
            () if lane.has_ended => Some(Outcome::Over),
            () if lane.is_blocked => Some(Outcome::PassedOver),
            () => None,
        };
        if let Some(outcome) = skipped {
            return self.note(step, outcome, None);
        }
        let before = lane.status;
        let bytes = lane.send(step);
        let start = lane.start();
        self.clients[number].stream.write_all(&bytes).expect("the server reads");
        let outcome = self.settle(number);
        self.note(step, outcome, Some((number, start)));
        let lane = &mut self.clients[number].lane;
        lane.failed = if lane.status == b'E' { lane.failed + 1 } else { 0 };
        let after = lane.status;
        // ROLLBACK TO and AND CHAIN let others go on, and the status is the same.
        let gives_up = ["ROLLBACK", "CHAIN"].iter().any(|word| step.shown.contains(word));
        if outcome == Outcome::Done && (after == b'I' || after != before || gives_up) {
            for other in 0..self.clients.len() {
                if self.clients[other].lane.is_blocked {
                    self.settle(other);
                }
            }
        }
    }

    fn note(&mut self, step: &Step, outcome: Outcome, start: Option<(usize, usize)>) {
        let shown = format!("{}: {}", step.session, step.shown);
        self.taken.push(Taken {
            shown,
            outcome,
            messages: Vec::new(),
            rows: 0,
            state: None,
            is_lock_awaited: false,
        });
        self.starts.push(start);
    }

    /// Waits for the end of a session's step, or for its wait for another session.
    fn settle(&mut self, number: usize) -> Outcome {
        let begun = Instant::now();
        let mut waits_since = None;
        let mut limit = FIRST_LOOK;
        while begun.elapsed() < PATIENCE {
            if self.clients[number].is_done_within(limit) {
                self.clients[number].lane.is_blocked = false;
                return Outcome::Done;
            }
            limit = Duration::from_millis(1);
            let waits = format!("SELECT cardinality(pg_blocking_pids({}))", self.clients[number].process);
            let answer = self.observer.query(&waits);
            let row = answer.iter().find(|message| message.tag == backend::DATA_ROW).expect("a row");
            let count = DataRow::decode(&row.body).expect("a row").columns.iter().next().flatten();
            if count == Some(b"0") {
                waits_since = None;
                continue;
            }
            let since = *waits_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= SURELY {
                self.clients[number].lane.is_blocked = true;
                return Outcome::Blocked;
            }
        }
        Outcome::Hung
    }

    fn close(mut self) -> Vec<Taken> {
        for (place, start) in self.starts.iter().enumerate() {
            let Some((number, start)) = *start else { continue };
            let next = self.starts[place + 1..].iter().flatten().find(|(other, _)| *other == number);
            let messages = &self.clients[number].lane.messages;
            let end = next.map_or(messages.len(), |(_, next)| *next);
            self.taken[place].messages = messages[start..end].to_vec();
        }
        for client in &mut self.clients {
            let _ = client.stream.write_all(&[sync(), terminate()].concat());
        }
        for client in &mut self.clients {
            let _ = client.stream.set_read_timeout(Some(PATIENCE));
            let _ = client.stream.read_to_end(&mut Vec::new());
        }
        self.taken
    }
}

/// What of a message the model has to say as PostgreSQL does: of errors and warnings the SQLSTATE, of descriptions names and
/// types.
pub(crate) fn comparable(message: &Message) -> Message {
    let body = match message.tag {
        backend::ERROR_RESPONSE | backend::NOTICE_RESPONSE => {
            let error = ErrorResponse::decode(&message.body).expect("fields");
            error.sqlstate().unwrap_or_default().to_vec()
        }
        backend::ROW_DESCRIPTION => without_tables(&message.body),
        _ => message.body.clone(),
    };
    Message { tag: message.tag, body }
}

fn without_tables(body: &[u8]) -> Vec<u8> {
    let mut out = body.to_vec();
    let mut at = 2;
    while at < out.len() {
        let Some(name) = out[at..].iter().position(|byte| *byte == 0) else { break };
        at += name + 1;
        out[at..at + 4].copy_from_slice(&[0; 4]);
        at += 18;
    }
    out
}
