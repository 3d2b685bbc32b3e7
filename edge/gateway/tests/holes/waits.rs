//! What waits for a COMMIT that was answered before the server has confirmed it, and for how long.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use onetrip_wire::pg::backend;

use super::messages::shown;
use super::stage::{
    DISTANCES_MS, Path, Session, Stage, VERSIONS, administer, difference, gateway_at, server,
};
use crate::common::client::{PATIENCE, errors};
use crate::common::messages::*;
use crate::common::server::Server;

/// A path to the server on which each connection can be made slower.
struct SlowPath {
    port: u16,
    delays: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
}

impl SlowPath {
    fn start(server: &Server) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let delays = Arc::new(Mutex::new(Vec::new()));
        let (all, server) = (Arc::clone(&delays), server.at.port);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let delay = Arc::new(AtomicU64::new(0));
                all.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&delay));
                thread::spawn(move || {
                    let server = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
                    for stream in [&client, &server] {
                        stream.set_nodelay(true).expect("a TCP socket");
                    }
                    thread::scope(|scope| {
                        scope.spawn(|| carry(&server, &client, &AtomicU64::new(0)));
                        carry(&client, &server, &delay);
                    });
                });
            }
        });
        Self { port, delays }
    }

    /// The way of the newest connection to the server.
    fn newest(&self) -> Arc<AtomicU64> {
        let delays = self.delays.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(delays.last().expect("somebody has connected"))
    }
}

fn carry(mut from: &TcpStream, mut into: &TcpStream, delay_ms: &AtomicU64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(delay_ms.load(Ordering::SeqCst)));
        if into.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = into.shutdown(Shutdown::Write);
}

/// The COMMIT of a transaction that only read is answered early.
fn commits_early(program: &mut Session<'_>) {
    program.settles("COMMIT of a reader", |program| {
        program.says_all(&["BEGIN", "SELECT id FROM guarded"]);
        program.stage.thinks();
        let is_told = program.is_told("COMMIT");
        program.stage.thinks();
        is_told
    });
}

const GUARDED: &str = "CREATE TABLE guarded (id int); INSERT INTO guarded VALUES (1); CREATE TABLE queue (id int); \
     CREATE TABLE late (id int); INSERT INTO queue VALUES (1), (2); \
     CREATE FUNCTION lock_it() RETURNS int LANGUAGE plpgsql AS \
     'BEGIN LOCK TABLE guarded IN ACCESS EXCLUSIVE MODE NOWAIT; RETURN 1; END'; \
     CREATE FUNCTION locks() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM lock_it(); RETURN NEW; END'; \
     CREATE TRIGGER t BEFORE INSERT ON queue FOR EACH ROW EXECUTE FUNCTION locks(); \
     CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED \
     FOR EACH ROW EXECUTE FUNCTION locks(); ANALYZE guarded, queue";

const LOCK: &str = "LOCK TABLE guarded IN ACCESS EXCLUSIVE MODE NOWAIT";

/// What a session has done before the reader commits, and what it does behind that.
struct Way {
    name: &'static str,
    /// Units, and for one without a Sync the message that tells that it has run.
    before: Vec<(Vec<u8>, u8)>,
    behind: Vec<u8>,
    /// Takes away what is left.
    after: &'static str,
    /// Nothing that went before may run a function that locks: elsewhere no COMMIT is answered early (rule S3).
    is_early: bool,
}

impl Way {
    fn new(name: &'static str, before: &[&str], behind: Vec<u8>) -> Self {
        let before = before.iter().map(|text| (query(text), backend::READY_FOR_QUERY)).collect();
        Self { name, before, behind, after: "ROLLBACK", is_early: true }
    }

    /// The same behind one more unit.
    fn and(mut self, unit: &[Vec<u8>], ends_with: u8) -> Self {
        self.before.push((unit.concat(), ends_with));
        self
    }
}

/// Ways to take a lock at once.
fn at_once(function: u32) -> Vec<Way> {
    vec![
        Way::new("SELECT", &["BEGIN"], query("SELECT lock_it()")),
        Way::new("LOCK", &["BEGIN"], query(LOCK)),
        Way::new("INSERT", &["BEGIN"], query("INSERT INTO queue VALUES (1)")),
        Way::new(
            "INSERT, extended",
            &["BEGIN"],
            [run_unnamed("INSERT INTO queue VALUES (1)"), sync()].concat(),
        ),
        Way::new("FunctionCall", &["BEGIN"], function_call(function, &[])),
    ]
}

/// Ways in which what was sent before takes it.
fn of_before() -> Vec<Way> {
    const INSERT: &str = "INSERT INTO late VALUES (1)";
    const CURSOR: &str = "DECLARE c CURSOR FOR SELECT lock_it() FROM queue";
    const ROWS: &str = "SELECT id, CASE WHEN id > 1 THEN lock_it() END FROM queue ORDER BY id";
    let run = |portal, rows| [execute(portal, rows), sync()].concat();
    let bound = |text| [parse("s", text), bind("p", "s", &[])];
    let late = |name, before: &[&str], behind| Way { is_early: false, ..Way::new(name, before, behind) };
    vec![
        late("COMMIT, a deferred trigger", &["BEGIN", INSERT], query("COMMIT")),
        late(
            "COMMIT, a deferred trigger, extended",
            &["BEGIN", INSERT],
            [run_unnamed("COMMIT"), sync()].concat(),
        ),
        late("COMMIT AND CHAIN", &["BEGIN", INSERT], query("COMMIT AND CHAIN")),
        Way {
            after: "CLOSE ALL",
            ..late(
                "COMMIT, a held cursor",
                &["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT lock_it() FROM queue"],
                query("COMMIT"),
            )
        },
        late("SET CONSTRAINTS", &["BEGIN", INSERT], query("SET CONSTRAINTS ALL IMMEDIATE")),
        late("PREPARE TRANSACTION", &["BEGIN", INSERT], query("PREPARE TRANSACTION 'never'")),
        late("Sync", &[], sync()).and(&[run_unnamed(INSERT), flush()], backend::COMMAND_COMPLETE),
        late("FETCH", &["BEGIN", CURSOR], query("FETCH 1 FROM c")),
        late("MOVE", &["BEGIN", CURSOR], query("MOVE 1 FROM c")),
        Way {
            after: "ROLLBACK; DEALLOCATE s",
            ..Way::new("Execute of a portal", &["BEGIN"], run("p", 0))
                .and(&[bound(LOCK).concat(), flush()], backend::BIND_COMPLETE)
        },
        Way {
            after: "ROLLBACK; DEALLOCATE s",
            ..late("Execute of a portal that has begun", &["BEGIN"], run("p", 1))
                .and(&[bound(ROWS).concat(), execute("p", 1), sync()], backend::READY_FOR_QUERY)
        },
        Way {
            after: "ROLLBACK; DEALLOCATE s",
            ..Way::new("Bind of a statement", &["BEGIN"], [bind("", "s", &[]), run("", 0)].concat())
                .and(&[parse("s", LOCK), sync()], backend::READY_FOR_QUERY)
        },
        Way {
            after: "ROLLBACK; DEALLOCATE s",
            ..Way::new("EXECUTE", &["PREPARE s AS INSERT INTO queue VALUES (1)", "BEGIN"], query("EXECUTE s"))
        },
    ]
}

/// A reader commits on a slow path; another session takes a strong lock, each time in another way.
fn takes_a_lock(stage: &Stage, path: &SlowPath, ways: &[Way]) {
    let mut reader = stage.session("reader");
    let delay = path.newest();
    for way in ways {
        let mut other = stage.session("other");
        commits_early(&mut reader);
        for (message, ends_with) in &way.before {
            let count = other.client.count(*ends_with);
            other.client.send(message);
            other.client.await_count(*ends_with, count + 1);
        }
        reader.says_all(&["BEGIN", "SELECT id FROM guarded"]);
        stage.thinks();
        delay.store(150, Ordering::SeqCst);
        let is_told = reader.is_told("COMMIT");
        assert!(is_told || !way.is_early, "{}: the COMMIT is not answered early", way.name);
        other.exchange(way.name, &way.behind);
        delay.store(0, Ordering::SeqCst);
        other.says(way.after);
        thread::sleep(Duration::from_millis(200));
    }
}

/// Each way sees directly what it sees through a gateway.
fn assert_fenced(name: &str, guarded: &str, ways: fn(u32) -> Vec<Way>) {
    thread::scope(|scope| {
        for version in VERSIONS {
            for distance in DISTANCES_MS {
                scope.spawn(move || {
                    let (server, database) = (server(version), format!("{name}_{version}_{distance}"));
                    administer(server, "postgres", &format!("CREATE DATABASE {database}"));
                    administer(server, &database, guarded);
                    let slow = SlowPath::start(server);
                    let path = Path { server, port: slow.port, database: &database };
                    let alone = Stage::direct(&path);
                    let oid = alone.session("asks").column("SELECT min(oid) FROM pg_proc WHERE oid >= 16384");
                    drop(alone.take_seen());
                    let ways = ways(oid[0].parse().expect("a number"));
                    takes_a_lock(&alone, &slow, &ways);
                    let distance = Duration::from_millis(distance);
                    let gateway = gateway_at(server, slow.port, distance);
                    let through = Stage::through(&gateway, &path, distance);
                    takes_a_lock(&through, &slow, &ways);
                    let difference = difference(&alone.take_seen(), &through.take_seen());
                    assert_eq!(difference, None, "PostgreSQL {version}, {distance:?}");
                    gateway.stop();
                });
            }
        }
    });
}

#[test]
fn a_strong_lock_waits_for_an_early_commit_however_it_is_taken() {
    assert_fenced("gaps", GUARDED, at_once);
}

#[test]
fn a_lock_of_a_trigger_waits_for_an_early_commit_whatever_the_name_of_what_takes_it() {
    for (number, name) in ["\"lock it\"", "l\u{f6}ck"].into_iter().enumerate() {
        assert_fenced(&format!("named_{number}"), &GUARDED.replace("lock_it", name), |_| {
            vec![Way::new("INSERT", &["BEGIN"], query("INSERT INTO queue VALUES (1)"))]
        });
    }
}

#[test]
fn a_lock_of_what_was_sent_before_waits_for_an_early_commit_as_well() {
    assert_fenced("late", GUARDED, |_| of_before());
}

/// Stops a process, until this is over.
struct Stopped(String);

impl Stopped {
    fn stop(process: String) -> Self {
        signal("-STOP", &process);
        Self(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

fn signal(name: &str, process: &str) {
    let status = Command::new("kill").args([name, process]).status().expect("kill runs");
    assert!(status.success(), "kill {name} {process}");
}

/// A backend that does not answer holds up nobody for longer than 5 s, and nobody in other databases.
fn stalls(version: &str, distance: Duration) {
    let server = server(version);
    let name = format!("stall_{version}_{}", distance.as_millis());
    let elsewhere = format!("{name}_too");
    for database in [&name, &elsewhere] {
        administer(server, "postgres", &format!("CREATE DATABASE {database}"));
        administer(server, database, GUARDED);
    }
    let path = Path { server, port: server.at.port, database: &name };
    let gateway = gateway_at(server, server.at.port, distance);
    let stage = Stage::through(&gateway, &path, distance);
    // A login may run functions: nobody logs in once commits are early.
    let mut same = stage.session("same database");
    let mut other = stage.session_with("other database", &[("database", &elsewhere)]);
    let mut reader = stage.session("reader");
    commits_early(&mut reader);
    let process = reader.process();
    commits_early(&mut reader);
    reader.says_all(&["BEGIN", "SELECT id FROM guarded"]);
    stage.thinks();
    let stopped = Stopped::stop(process);
    let committed = reader.says("COMMIT");
    assert_eq!(committed.last().map(|message| message.tag), Some(backend::READY_FOR_QUERY), "{committed:?}");
    let limit = Duration::from_secs(4);
    for text in ["CREATE TABLE made (id int)", "SET work_mem = '2MB'"] {
        let answers = other.exchange_within(text, &query(text), limit);
        assert!(!answers.is_empty(), "PostgreSQL {version}: {text} waits for another database");
    }
    for text in ["CREATE TABLE made (id int)", "SET work_mem = '2MB'"] {
        let answers = same.exchange_within(text, &query(text), PATIENCE);
        let last = answers.last().map(shown);
        assert_eq!(last.as_deref(), Some("Z I"), "PostgreSQL {version}: {text}: {answers:?}");
    }
    assert!(reader.client.ends_within(PATIENCE), "PostgreSQL {version}: the stalled session goes on");
    let ended = errors(&reader.client.so_far());
    let (severity, code, _) = ended.last().expect("an error says why");
    assert_eq!((&**severity, &**code), ("FATAL", "08006"), "PostgreSQL {version}: {ended:?}");
    drop(stopped);
    gateway.stop();
}

#[test]
fn a_backend_that_does_not_answer_holds_up_others_for_five_seconds_at_most() {
    thread::scope(|scope| {
        for version in VERSIONS {
            for distance in DISTANCES_MS {
                scope.spawn(move || stalls(version, Duration::from_millis(distance)));
            }
        }
    });
}
