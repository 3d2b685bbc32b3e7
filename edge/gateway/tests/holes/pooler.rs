//! A pooler between the gateway and the server: its clients share one session of the server, a transaction each.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use onetrip_ledger::{Mutes, Remedy};
use onetrip_wire::pg::{HEADER_BYTES, backend, frontend};

use super::stage::{DISTANCES_MS, Path, Stage, VERSIONS, administer, difference, gateway_at, server};
use crate::common::messages::*;
use crate::common::pgbouncer::PgBouncer;
use crate::common::proxy::read_message;
use crate::common::server::Server;

/// The one session of the server, and who has it.
#[derive(Default)]
struct Shared {
    holder: Option<(usize, TcpStream)>,
    /// ReadyForQuery messages that the holder waits for.
    owed: usize,
}

type Lent = Arc<(Mutex<Shared>, Condvar)>;

/// A pooler in transaction mode on a port of its own; it lives as long as the test process.
struct Pooler {
    port: u16,
}

impl Pooler {
    fn start(server: &Server, database: &str) -> Self {
        let mut upstream = TcpStream::connect(("127.0.0.1", server.at.port)).expect("the server listens");
        upstream.set_nodelay(true).expect("a TCP socket");
        upstream.write_all(&startup(database)).expect("the server reads");
        let mut greeting: Vec<Vec<u8>> = Vec::new();
        while greeting.last().is_none_or(|message| message[0] != backend::READY_FOR_QUERY) {
            greeting.push(read_message(&upstream, false).expect("the server greets"));
        }
        let lent = Lent::default();
        let (to_clients, from_server) =
            (Arc::clone(&lent), upstream.try_clone().expect("a descriptor is left"));
        thread::spawn(move || hand_out(from_server, &to_clients));
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let (lent, greeting) = (Arc::clone(&lent), greeting.clone());
                let upstream = upstream.try_clone().expect("a descriptor is left");
                thread::spawn(move || serve(number, client, upstream, &greeting, &lent));
            }
        });
        Self { port }
    }
}

fn locked(lent: &Lent) -> MutexGuard<'_, Shared> {
    lent.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives what the server says to the client that has the session, until its transaction is over.
fn hand_out(server: TcpStream, lent: &Lent) {
    while let Some(frame) = read_message(&server, false) {
        let mut shared = locked(lent);
        let Some((_, client)) = &mut shared.holder else { continue };
        // It may have gone.
        let _ = client.write_all(&frame);
        if frame[0] == backend::READY_FOR_QUERY {
            shared.owed = shared.owed.saturating_sub(1);
            if shared.owed == 0 && frame.last() == Some(&b'I') {
                shared.holder = None;
                lent.1.notify_all();
            }
        }
    }
}

/// Greets a client with a key of its own and lends it the session for each transaction.
fn serve(number: usize, mut client: TcpStream, mut server: TcpStream, greeting: &[Vec<u8>], lent: &Lent) {
    client.set_nodelay(true).expect("a TCP socket");
    if read_message(&client, true).is_none() {
        return;
    }
    for frame in greeting {
        let mut frame = frame.clone();
        if frame[0] == backend::BACKEND_KEY_DATA {
            frame[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&(number as u32 + 1).to_be_bytes());
        }
        if client.write_all(&frame).is_err() {
            return;
        }
    }
    while let Some(frame) = read_message(&client, false) {
        if frame[0] == frontend::TERMINATE {
            return;
        }
        let mut shared = locked(lent);
        while shared.holder.as_ref().is_some_and(|(holder, _)| *holder != number) {
            shared = lent.1.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        if shared.holder.is_none() {
            shared.holder = Some((number, client.try_clone().expect("a descriptor is left")));
        }
        let is_answered = [frontend::QUERY, frontend::SYNC, frontend::FUNCTION_CALL].contains(&frame[0]);
        shared.owed += usize::from(is_answered);
        if server.write_all(&frame).is_err() {
            return;
        }
    }
}

/// Two clients set the same parameter in turn, and read what they find; one prepares, reads in pieces and repeats.
fn two_clients(stage: &Stage) {
    let (mut one, mut other) = (stage.session("one"), stage.session("other"));
    for _ in 0..3 {
        one.says("SET work_mem = '8MB'");
        stage.thinks();
        one.says_all(&["SHOW work_mem", "SHOW work_mem"]);
        stage.thinks();
    }
    other.says("SET work_mem = '1MB'");
    stage.thinks();
    one.says_all(&["SHOW work_mem", "SET work_mem = '8MB'", "SHOW work_mem", "SELECT 1"]);
    for _ in 0..3 {
        let prepare = [parse("", "SELECT id FROM pooled"), describe_statement(""), sync()].concat();
        one.exchange("Parse", &prepare);
        one.says_all(&[
            "BEGIN ISOLATION LEVEL REPEATABLE READ",
            "DECLARE c CURSOR FOR SELECT id FROM pooled",
        ]);
        for _ in 0..4 {
            one.says("FETCH FORWARD 5 FROM c");
            stage.thinks();
        }
        for _ in 0..4 {
            one.says("SELECT id FROM pooled WHERE id = 7");
            stage.thinks();
        }
        one.says("COMMIT");
        other.says_all(&["SET work_mem = '2MB'", "SHOW work_mem"]);
        one.says("SHOW work_mem");
    }
}

/// What a session that has no session of the server for itself may be spared.
const SPARED: [Remedy; 1] = [Remedy::Begin];

fn assert_pooler_is_noticed(version: &str, distance: Duration) {
    let server = server(version);
    let database = format!("pooled_{version}_{}", distance.as_millis());
    administer(server, "postgres", &format!("CREATE DATABASE {database}"));
    let setup = "CREATE TABLE pooled AS SELECT g AS id FROM generate_series(1, 100) AS g; ANALYZE pooled";
    administer(server, &database, setup);
    let run = |stage: &Stage| {
        two_clients(stage);
        stage.take_seen()
    };
    let pooler = Pooler::start(server, &database);
    let path = Path { server, port: pooler.port, database: &database };
    let direct = run(&Stage::direct(&path));
    let gateway = gateway_at(server, pooler.port, distance);
    let through = run(&Stage::through(&gateway, &path, distance));
    let removed = gateway.stop().analyzer.finish(&Mutes::default()).summary.removed;
    assert_eq!(difference(&direct, &through), None, "PostgreSQL {version}, {distance:?}");
    let is_spared = removed.iter().all(|(remedy, trips)| *trips == 0 || SPARED.contains(remedy));
    assert!(is_spared, "PostgreSQL {version}, {distance:?}: {removed:?}");
}

#[test]
fn behind_a_pooler_nothing_is_answered_that_needs_a_session_of_the_server() {
    thread::scope(|scope| {
        for version in VERSIONS {
            for distance in DISTANCES_MS {
                scope.spawn(move || assert_pooler_is_noticed(version, Duration::from_millis(distance)));
            }
        }
    });
}

/// Sessions that begin with a transaction that reads, as those before them, and two that have transactions at a time.
fn at_a_time(stage: &Stage) {
    for _ in 0..3 {
        let mut before = stage.session("before");
        before.says_all(&["BEGIN", "SELECT 1", "COMMIT"]);
        stage.thinks();
    }
    for _ in 0..4 {
        let (mut one, mut other) = (stage.session("one"), stage.session("other"));
        one.says("BEGIN");
        other.says("BEGIN");
        one.says("INSERT INTO pooled VALUES (-1)");
        other.says("INSERT INTO pooled VALUES (-2)");
        one.says("ROLLBACK");
        other.says("ROLLBACK");
        one.says("SELECT * FROM pooled WHERE id < 0");
        // As asyncpg prepares: what Flush ends comes first.
        other.says_all(&["BEGIN", "SELECT 1"]);
        one.says_all(&["BEGIN", "SELECT 1"]);
        other.says("COMMIT");
        let prepared =
            [parse("", "SELECT id FROM pooled WHERE id = 7"), describe_statement(""), sync()].concat();
        one.exchange("Parse", &prepared);
        one.says("COMMIT");
    }
}

#[test]
fn pgbouncer_gives_each_program_what_it_asks_for() {
    thread::scope(|scope| {
        for version in VERSIONS {
            for distance in DISTANCES_MS {
                scope.spawn(move || {
                    let (server, distance) = (server(version), Duration::from_millis(distance));
                    let database = format!("bounced_{version}_{}", distance.as_millis());
                    administer(server, "postgres", &format!("CREATE DATABASE {database}"));
                    administer(
                        server,
                        &database,
                        "CREATE TABLE pooled AS SELECT g AS id FROM generate_series(1, 100) AS g",
                    );
                    let pooler = PgBouncer::start_in("transaction", 3, server);
                    let path = Path { server, port: pooler.port, database: &database };
                    let run = |stage: &Stage| {
                        at_a_time(stage);
                        stage.take_seen()
                    };
                    let direct = run(&Stage::direct(&path));
                    let gateway = gateway_at(server, pooler.port, distance);
                    let through = run(&Stage::through(&gateway, &path, distance));
                    gateway.stop();
                    assert_eq!(difference(&direct, &through), None, "PostgreSQL {version}, {distance:?}");
                });
            }
        }
    });
}
