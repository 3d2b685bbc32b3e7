//! The rig: generated programs of several sessions on a fixed schedule, run direct, direct again and through a gateway
//! with remedies. Every byte that a session sees is compared, and the tables afterwards.
//!
//! `ONETRIP_PROGRAMS=5000` runs more, `ONETRIP_SEED=N` runs the one program that a failure names. A program that fails is
//! cut down before it is shown.

mod common;

use std::time::{Duration, Instant};

use common::client::{Endpoint, PATIENCE, RawClient};
use common::messages::*;
use common::replay::{Script, assert_faithful};
use common::server::{RunningGateway, Server};
use common::transcript::Transcript;
use onetrip_ledger::{Mutes, Remedy};
use onetrip_wire::pg::backend;

const DATABASE: &str = "rig";
const PROGRAMS: u64 = 120;
const SESSIONS: usize = 3;
/// Trips that must have been removed for each program, on average, for the rig to have tested anything.
const REMOVED_PER_PROGRAM_MIN: u64 = 2;

/// What one session does next; the others wait.
#[derive(Debug, Clone)]
struct Step {
    session: usize,
    bytes: Vec<u8>,
    /// ReadyForQuery messages that answer it.
    ready: usize,
    shown: String,
}

struct Random(u64);

impl Random {
    /// SplitMix64.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Ways to begin, whether or not they are answered early.
const BEGINS: [&str; 14] = [
    "BEGIN",
    "begin;",
    "START TRANSACTION",
    "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
    "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "BEGIN READ ONLY",
    "START TRANSACTION READ WRITE, NOT DEFERRABLE;",
    "/* app */ BEGIN",
    "BEGIN; SELECT count(*) FROM r",
    "BEGIN ISOLATION LEVEL SNAPSHOT",
    "BEGIN READ",
    "BEGIN WORK READ ONLY,,DEFERRABLE",
];

const ENDS: [&str; 6] = ["COMMIT", "ROLLBACK", "END", "COMMIT AND CHAIN", "ABORT", "ROLLBACK AND CHAIN"];

/// Statements that wait for no other session: each writes rows of its own.
const STATEMENTS: [&str; 33] = [
    "SELECT count(*), sum(v) FROM r",
    "SELECT id, v FROM r ORDER BY id",
    "INSERT INTO r VALUES (@ + 100 * (SELECT count(*) FROM r), 1)",
    "UPDATE r SET v = v + 1 WHERE id = @ RETURNING v",
    "DELETE FROM r WHERE id % 100 = @ AND id >= 100",
    "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')",
    "SHOW transaction_isolation",
    "SELECT pg_current_xact_id_if_assigned() IS NULL",
    "SELECT 1 / 0",
    "SELECT no_such_column",
    "SELEKT",
    "SAVEPOINT s1",
    "SAVEPOINT s1",
    "SAVEPOINT \"S2\"",
    "RELEASE s1",
    "RELEASE SAVEPOINT \"S2\"",
    "ROLLBACK TO s1",
    "SAVEPOINT s1; SELECT 1; RELEASE s1",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET LOCAL TimeZone = 'Asia/Tokyo'",
    "SET TimeZone = 'Asia/Tokyo'",
    "SET DateStyle = 'German'",
    "RESET TimeZone",
    "SET default_transaction_isolation = 'repeatable read'",
    "RESET ALL",
    "DISCARD ALL",
    "SELECT now() = statement_timestamp() OR true",
    "CREATE TEMP TABLE IF NOT EXISTS mine (id int) ON COMMIT DROP",
    "",
    "SELECT count(*) FROM pg_prepared_statements UNION ALL SELECT count(*) FROM pg_cursors",
];

/// A program of a seed.
fn program(seed: u64) -> Vec<Step> {
    let mut random = Random(seed);
    let length = 10 + random.below(50);
    (0..length).map(|_| step(&mut random)).collect()
}

fn step(random: &mut Random) -> Step {
    let session = random.below(SESSIONS);
    let text = match random.below(10) {
        0..=2 => "BEGIN".to_owned(),
        3 => (*random.pick(&BEGINS)).to_owned(),
        4..=6 => (*random.pick(&ENDS)).to_owned(),
        _ => random.pick(&STATEMENTS).replace('@', &session.to_string()),
    };
    let (bytes, ready, form) = match random.below(12) {
        0 => ([run_unnamed(&text), sync()].concat(), 1, "extended"),
        1 => ([parse("s", &text), bind("p", "s", &[]), sync()].concat(), 1, "prepared"),
        2 => ([bind("", "s", &[]), execute("", 0), close_statement("s"), sync()].concat(), 1, "run s"),
        3 => ([query(&text), query("SELECT 'behind'")].concat(), 2, "pipelined"),
        4 => ([run_unnamed(&text), sync(), run_unnamed("SELECT 7"), sync()].concat(), 2, "groups"),
        5 => ([bind("", "", &[]), execute("", 0), sync()].concat(), 1, "run unnamed"),
        _ => (query(&text), 1, "simple"),
    };
    Step { session, bytes, ready, shown: format!("{session}: {form} {text}") }
}

/// What the sessions saw, and what the table held afterwards.
struct Seen {
    transcripts: Vec<Transcript>,
    rows: Transcript,
}

impl Seen {
    fn difference(&self, other: &Self) -> Option<String> {
        let sessions = self.transcripts.iter().zip(&other.transcripts).enumerate();
        let mut differences = sessions.filter_map(|(number, (one, two))| {
            one.difference(two).map(|difference| format!("session {number}, {difference}"))
        });
        let rows = || self.rows.difference(&other.rows).map(|difference| format!("table r, {difference}"));
        differences.next().or_else(rows)
    }
}

fn run(steps: &[Step], endpoint: &Endpoint, server: &Server) -> Seen {
    let mut direct = RawClient::session(&server.direct(), DATABASE);
    direct.query("TRUNCATE r; INSERT INTO r SELECT id, 0 FROM generate_series(0, 2) id");
    let mut clients: Vec<RawClient> = (0..SESSIONS).map(|_| RawClient::session(endpoint, DATABASE)).collect();
    for step in steps {
        let client = &mut clients[step.session];
        let ready = client.count(backend::READY_FOR_QUERY) + step.ready;
        client.send(&step.bytes);
        client.await_count(backend::READY_FOR_QUERY, ready);
    }
    let transcripts = clients
        .into_iter()
        .map(|mut client| {
            client.send(&terminate());
            client.finish()
        })
        .collect();
    let mut rows = RawClient::session(&server.direct(), DATABASE);
    rows.query("SELECT * FROM r ORDER BY id");
    rows.send(&terminate());
    Seen { transcripts, rows: rows.finish() }
}

/// How the gateway differs from the server; `None` also where the server differs from itself.
fn difference(steps: &[Step], gateway: &Endpoint, server: &Server) -> Option<String> {
    let direct = server.direct();
    let (first, second) = (run(steps, &direct, server), run(steps, &direct, server));
    assert_eq!(first.difference(&second), None, "the schedule leaves nothing to chance");
    first.difference(&run(steps, gateway, server))
}

/// The program without whatever its failure does not need.
fn cut_down(mut steps: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let mut at = 0;
    while at < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(at);
        if fails(&fewer) {
            steps = fewer;
        } else {
            at += 1;
        }
    }
    steps
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text}: a number is needed")))
}

fn prove(server: &Server, programs: u64) {
    server.fresh_database(DATABASE);
    server.psql(DATABASE, "CREATE TABLE r (id int PRIMARY KEY, v int NOT NULL)");
    let gateway = server.remedied_gateway();
    let only = from_environment("ONETRIP_SEED");
    let seeds =
        only.map_or(0..from_environment("ONETRIP_PROGRAMS").unwrap_or(programs), |seed| seed..seed + 1);
    for seed in seeds.clone() {
        let steps = program(seed);
        let endpoint = gateway.endpoint();
        if let Some(found) = difference(&steps, &endpoint, server) {
            let steps = cut_down(steps, |steps| difference(steps, &endpoint, server).is_some());
            let shown: Vec<&str> = steps.iter().map(|step| step.shown.as_str()).collect();
            panic!("ONETRIP_SEED={seed}: {found}\n{}", shown.join("\n"));
        }
    }
    let summary = stop(gateway);
    let removed = summary.removed.get(&Remedy::Begin).copied().unwrap_or(0);
    let programs = seeds.end - seeds.start;
    assert!(only.is_some() || removed >= REMOVED_PER_PROGRAM_MIN * programs, "only {removed} removed");
}

fn stop(gateway: RunningGateway) -> onetrip_ledger::Summary {
    gateway.stop().analyzer.finish(&Mutes::default()).summary
}

#[test]
fn programs_see_the_same_on_postgresql_15() {
    prove(Server::shared(), PROGRAMS);
}

#[test]
fn programs_see_the_same_on_postgresql_18() {
    prove(&Server::with_acts_template("18"), PROGRAMS / 2);
}

/// What a session gets that goes on after its backend was ended between BEGIN and the first statement.
fn ended_behind_begin(through: &Endpoint, server: &Server) -> Transcript {
    let mut client = RawClient::session(through, "postgres");
    let pid =
        String::from_utf8(client.query("SELECT pg_backend_pid()")[1].body[6..].to_vec()).expect("digits");
    client.query("BEGIN");
    RawClient::session(&server.direct(), "postgres").query(&format!("SELECT pg_terminate_backend({pid})"));
    client.send(&query("INSERT INTO t VALUES (1)"));
    client.transcript()
}

#[test]
fn a_backend_that_is_ended_behind_a_begin_says_so_in_its_own_words() {
    let server = Server::shared();
    let gateway = server.remedied_gateway();
    let direct = ended_behind_begin(&server.direct(), server);
    let through = ended_behind_begin(&gateway.endpoint(), server);
    assert_eq!(direct.difference(&through), None);
    assert_eq!(common::client::errors(&through)[0].1, "57P01");
    assert_eq!(stop(gateway).removed.get(&Remedy::Begin), Some(&1));
}

#[test]
fn a_cancel_hits_the_statement_behind_the_begin_and_not_the_begin() {
    let server = Server::shared();
    let gateway = server.remedied_gateway();
    for _ in 0..20 {
        let mut client = RawClient::session(&gateway.endpoint(), "postgres");
        client.query("BEGIN");
        client.send(&query("SELECT pg_sleep(20)"));
        // A cancel that finds the backend before it has read the statement is lost, directly connected or not.
        let deadline = Instant::now() + PATIENCE;
        while client.count(backend::READY_FOR_QUERY) < 3 && Instant::now() < deadline {
            RawClient::connect(&gateway.endpoint()).send(&client.cancel_request());
            client.waits_for(backend::READY_FOR_QUERY, 3, Duration::from_millis(200));
        }
        assert_eq!(client.errors()[0].1, "57014");
        client.query("ROLLBACK");
    }
    assert_eq!(stop(gateway).removed.get(&Remedy::Begin), Some(&20));
}

#[test]
fn a_replication_connection_begins_as_it_does_directly() {
    // What a subscriber says before it copies a table.
    let opening = [("user", "onetrip"), ("database", "replicated"), ("replication", "database")];
    let script = Script::new("replication")
        .send(startup_with(&opening))
        .awaits(backend::READY_FOR_QUERY, 1)
        .exchange(query("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ"))
        .exchange(query("SELECT count(*) FROM t"))
        .exchange(query("COMMIT"));
    assert_eq!(assert_faithful(Server::shared(), "replicated", &[script]), 0);
}

#[test]
fn a_client_that_leaves_behind_its_begin_leaves_nothing_on_the_server() {
    let server = Server::shared();
    let (gateway, database) = (server.remedied_gateway(), "left_behind");
    server.fresh_database(database);
    for sent in [vec![], query("SELECT 1"), [query("SELECT 1"), query("SELECT 2"), terminate()].concat()] {
        let mut client = RawClient::session(&gateway.endpoint(), database);
        client.query("BEGIN");
        client.send(&sent);
        let seen = client.finish();
        assert!(common::client::errors(&seen).is_empty(), "{seen:?}");
    }
    let left = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
    let deadline = Instant::now() + PATIENCE;
    while server.psql("postgres", &left) != "0" {
        assert!(Instant::now() < deadline, "a session stays");
    }
    assert_eq!(stop(gateway).removed.get(&Remedy::Begin), Some(&3));
}
