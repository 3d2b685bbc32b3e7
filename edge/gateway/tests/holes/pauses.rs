//! A server that pauses before a message of the gateway's own, as one does that has no processor left: the limit of the
//! questions ends that message, whichever it is, and the program's transaction stays as it was.

use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use onetrip_gateway::Common;
use onetrip_wire::pg::backend;

use super::stage::{VERSIONS, administer, gateway_at, rows, server};
use crate::common::client::{PATIENCE, RawClient};
use crate::common::messages::{query, startup};
use crate::common::proxy::read_message;
use crate::common::server::{Server, endpoint_of};

/// Longer than a question may take.
const PAUSE: Duration = Duration::from_millis(300);
/// How far away the server is.
const DISTANCE: Duration = Duration::from_millis(5);
/// Begins the names of what is the gateway's own.
const OWN: &[u8] = b"onetrip_";
/// In the settings that guesses run with.
const GUESSES: &[u8] = b"statement_timeout', '100ms'";
/// Sessions; each pauses at another message.
const SESSIONS: usize = 200;
/// Sessions at a time.
const AT_ONCE: usize = 8;
/// Rows of each table.
const ROWS: usize = 20;
/// Loops of a session.
const LOOPS: usize = 3;
/// Messages of its own that a session has at least for the first statement of a transaction.
const OWN_MIN: usize = 60;

/// A proxy: of its connections the first never pauses, and number n + 1 pauses before the gateway's own message number n,
/// counted from the first that holds `from`.
struct Pausing {
    port: u16,
    /// Connections that have paused.
    paused: Arc<AtomicUsize>,
}

impl Pausing {
    fn start(server: &Server, from: &'static [u8]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let (paused, to) = (Arc::new(AtomicUsize::new(0)), server.at.port);
        let count = Arc::clone(&paused);
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let server = TcpStream::connect(("127.0.0.1", to)).expect("the server listens");
                let count = Arc::clone(&count);
                thread::spawn(move || relay((number, from), &client, &server, &count));
            }
        });
        Self { port, paused }
    }
}

fn relay((number, from): (usize, &[u8]), client: &TcpStream, server: &TcpStream, paused: &AtomicUsize) {
    for stream in [client, server] {
        stream.set_nodelay(true).expect("a TCP socket");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            // One end or the other has gone.
            let _ = std::io::copy(&mut { server }, &mut { client });
            let _ = client.shutdown(Shutdown::Both);
        });
        let mut own = 0;
        let mut is_startup = true;
        while let Some(message) = read_message(client, is_startup) {
            is_startup = false;
            if is_within(OWN, &message) && (own > 0 || is_within(from, &message)) {
                if own + 1 == number {
                    thread::sleep(PAUSE);
                    paused.fetch_add(1, Ordering::SeqCst);
                }
                own += 1;
            }
            if { server }.write_all(&message).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Write);
    });
}

fn is_within(part: &[u8], message: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

/// A session behind the pausing proxy.
struct Paused<'a> {
    client: RawClient,
    common: &'a Common,
    number: usize,
}

impl Paused<'_> {
    /// A query that brings these values; what went wrong if it does not.
    fn asks(&mut self, text: &str, wanted: &[&str]) -> Result<(), String> {
        let (before, ready) = (self.client.len(), self.client.count(backend::READY_FOR_QUERY));
        self.client.send(&query(text));
        self.client.waits_until(PATIENCE, |transcript, has_ended| {
            has_ended || transcript.count(backend::READY_FOR_QUERY) > ready
        });
        let errors = self.client.errors();
        let values: Vec<String> = rows(&self.client.messages_from(before)).into_iter().flatten().collect();
        let is_right = errors.is_empty() && values == wanted;
        is_right.then_some(()).ok_or_else(|| format!("{}: {text}: {values:?} {errors:?}", self.number))
    }
}

/// Two transactions over tables that the gateway has not met.
fn reads_what_is_new(session: &mut Paused<'_>) -> Result<(), String> {
    for round in 0..2 {
        let read = format!("SELECT v FROM t_{}_{round} WHERE id = 1", session.number);
        session.asks("BEGIN ISOLATION LEVEL REPEATABLE READ", &[])?;
        session.asks(&read, &["1"])?;
        // Behind the gateway's own questions, then when they are over.
        session.asks(&read, &["1"])?;
        session.asks("SELECT pg_sleep(0.5)", &[""])?;
        session.asks(&read, &["1"])?;
        session.asks("COMMIT", &[])?;
    }
    Ok(())
}

/// Loops that the gateway foresees once it knows the session.
fn loops(session: &mut Paused<'_>) -> Result<(), String> {
    let ids: Vec<String> = (1..=ROWS).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    for _ in 0..LOOPS {
        session.asks("BEGIN ISOLATION LEVEL REPEATABLE READ", &[])?;
        session.asks("SELECT id FROM outer_rows ORDER BY id", &ids)?;
        for id in &ids {
            session.asks(&format!("SELECT v FROM inner_rows WHERE id = {id}"), &[id])?;
        }
        session.asks("COMMIT", &[])?;
        thread::sleep(DISTANCE * 4);
    }
    Ok(())
}

/// Loops until the gateway serves them.
fn learns(session: &mut Paused<'_>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = session.common.tally.counts();
        loops(session)?;
        let after = session.common.tally.counts();
        if after.work_trips - before.work_trips < (ROWS * LOOPS) as u64 {
            return Ok(());
        }
        assert!(Instant::now() < deadline, "the loops are not served");
    }
}

type Acting = dyn Fn(&mut Paused<'_>) -> Result<(), String> + Sync;

/// Runs a program in many sessions; what went wrong.
fn faults(
    version: &str,
    (name, from): (&str, &'static [u8]),
    first: &Acting,
    program: &Acting,
) -> Vec<String> {
    let server = server(version);
    let database = format!("paused_{name}_{version}");
    administer(server, "postgres", &format!("CREATE DATABASE {database}"));
    let rows = format!("AS SELECT g AS id, g AS v FROM generate_series(1, {ROWS}) AS g;");
    let tables = (0..SESSIONS).flat_map(|number| (0..2).map(move |round| format!("t_{number}_{round}")));
    let tables = tables.chain(["outer_rows", "inner_rows"].map(str::to_owned));
    let setup: String = tables.map(|table| format!("CREATE TABLE {table} {rows}")).collect();
    administer(server, &database, &setup);
    let pausing = Pausing::start(server, from);
    let gateway = gateway_at(server, pausing.port, DISTANCE);
    let common = gateway.common();
    let endpoint = endpoint_of(&gateway);
    let acts = |number: usize, program: &Acting| {
        let mut client = RawClient::connect(&endpoint);
        client.send(&startup(&database));
        client.await_count(backend::READY_FOR_QUERY, 1);
        program(&mut Paused { client, common: &common, number })
    };
    acts(0, first).expect("a server that does not pause does what it should");
    let next = AtomicUsize::new(0);
    let faults = thread::scope(|scope| {
        let work = || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::SeqCst));
            let numbers = numbers.take_while(|number| *number < SESSIONS);
            numbers.filter_map(|number| acts(number, program).err()).collect::<Vec<String>>()
        };
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no worker panics")).collect()
    });
    gateway.stop();
    let paused = pausing.paused.load(Ordering::SeqCst);
    assert!(paused >= OWN_MIN, "PostgreSQL {version}: {paused} sessions met their pause");
    faults
}

fn assert_unharmed(what: (&str, &'static [u8]), first: &Acting, program: &Acting) {
    let faults: Vec<String> = thread::scope(|scope| {
        let runs = VERSIONS.map(|version| scope.spawn(move || faults(version, what, first, program)));
        runs.into_iter().flat_map(|run| run.join().expect("no run panics")).collect()
    });
    assert!(faults.is_empty(), "{} sessions differ:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_question_that_its_limit_ends_leaves_the_transaction_as_it_was() {
    assert_unharmed(("questions", OWN), &|_| Ok(()), &reads_what_is_new);
}

#[test]
fn a_guess_that_its_limit_ends_leaves_the_transaction_as_it_was() {
    assert_unharmed(("guesses", GUESSES), &learns, &loops);
}
