//! What the gateway asks for itself: no program sees it, or waits for it.

use std::thread;
use std::time::{Duration, Instant};

use onetrip_gateway::Gateway;
use onetrip_wire::pg::backend;

use super::harmless::reads_ahead;
use super::messages::shown;
use super::stage::{DISTANCES_MS, Hole, Session, Stage, VERSIONS, administer, gateway_at, rows, server};
use crate::common::client::{PATIENCE, RawClient};
use crate::common::messages::*;
use crate::common::server::endpoint_of;

const REPORTS: (&str, &str) = (
    "options",
    "-c default_transaction_isolation=serializable -c default_transaction_read_only=on \
     -c default_transaction_deferrable=on",
);
const WRITER: [&str; 2] = ["BEGIN ISOLATION LEVEL SERIALIZABLE", "UPDATE kept SET v = 1 WHERE id = 1"];
const READER: [&str; 3] =
    ["BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY", "SELECT v FROM kept WHERE id = 1", "COMMIT"];

/// A serializable write is open before the reporting session is there.
fn from_the_start(stage: &Stage) {
    reads_ahead(&mut stage.session("harmless"), "SELECT id FROM kept");
    let mut writer = stage.elsewhere("writer");
    writer.says_all(&WRITER);
    let mut program = stage.session_with("program", &[REPORTS]);
    for _ in 0..3 {
        program.says("SHOW transaction_isolation");
        program.says_all(&READER);
        stage.thinks();
    }
    writer.says("ROLLBACK");
}

/// It is opened when the session is known, and something makes the gateway ask again.
fn later(stage: &Stage) {
    let mut program = stage.session_with("program", &[REPORTS]);
    for _ in 0..3 {
        program.says_all(&READER);
        stage.thinks();
    }
    let mut writer = stage.elsewhere("writer");
    writer.says_all(&WRITER);
    for _ in 0..3 {
        program.says("SET work_mem = '8MB'");
        program.says_all(&READER);
        stage.thinks();
    }
    writer.says("ROLLBACK");
}

/// What waits for the safe snapshot itself is cancelled as it is directly.
fn cancelled(stage: &Stage) {
    reads_ahead(&mut stage.session("harmless"), "SELECT id FROM kept");
    let mut writer = stage.elsewhere("writer");
    writer.says_all(&WRITER);
    let mut program = stage.session_with("program", &[REPORTS]);
    program.says_all(&READER);
    let ready = program.client.count(backend::READY_FOR_QUERY);
    program.client.send(&query("SELECT v FROM kept WHERE id = 1"));
    let request = program.client.cancel_request();
    for _ in 0..40 {
        // A cancel that comes before the statement hits nothing.
        RawClient::connect(&stage.endpoint()).send(&request);
        if program.client.waits_for(backend::READY_FOR_QUERY, ready + 1, Duration::from_millis(250)) {
            break;
        }
    }
    stage.note(format!("{:?}", program.client.errors()));
    program.says_all(&READER);
    writer.says("ROLLBACK");
}

#[test]
fn questions_wait_for_no_safe_snapshot() {
    Hole {
        name: "safe_snapshots",
        setup: "CREATE TABLE kept (id int PRIMARY KEY, v int); \
                INSERT INTO kept SELECT g, 0 FROM generate_series(1, 40) AS g; ANALYZE kept",
        programs: &[
            ("from the start", &from_the_start),
            ("later", &later),
            ("a statement that is cancelled", &cancelled),
        ],
    }
    .assert_shut();
}

/// Programs that give the gateway reason to ask: its own messages are counted, with what they are.
fn asked_with(settings: &'static [&'static str]) -> impl Fn(&Stage) + Sync {
    move |stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, "SELECT id FROM noted");
        // What they say of themselves tells how long they took.
        settings.iter().for_each(|text| drop(program.client.query(text)));
        let notices = |program: &mut Session<'_>, text: &str| {
            let seen = program.client.query(text);
            stage.thinks();
            seen.iter().filter(|message| message.tag == backend::NOTICE_RESPONSE).count()
        };
        for _ in 0..3 {
            for text in [
                "SELECT 1",
                "SET work_mem = '5MB'",
                "SELECT id FROM noted WHERE id = 1",
                "SHOW work_mem",
                "SELECT count(*) FROM noted",
            ] {
                let count = notices(&mut program, text);
                stage.note(format!("{text}: {count} notices"));
            }
        }
        // Process ids and plans apart, each is one of the program's.
        for notice in program.client.so_far().with_tag(backend::NOTICE_RESPONSE) {
            let text = shown(notice);
            stage.note(
                text.split(" D=")
                    .next()
                    .unwrap_or_default()
                    .split("duration:")
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
}

#[test]
fn what_the_server_says_of_questions_stays_at_the_gateway() {
    let explained = asked_with(&[
        "LOAD 'auto_explain'",
        "SET auto_explain.log_level = notice",
        "SET auto_explain.log_min_duration = 0",
    ]);
    let printed = asked_with(&["SET client_min_messages = log", "SET debug_print_plan = on"]);
    let logged = asked_with(&["SET client_min_messages = log", "SET log_statement = 'all'"]);
    // Each statement of the program tells its duration, and none of the session's own does.
    let timed = asked_with(&["SET client_min_messages = log", "SET log_duration = on"]);
    Hole {
        name: "own_notices",
        setup: "CREATE TABLE noted AS SELECT g AS id FROM generate_series(1, 100) AS g; ANALYZE noted",
        programs: &[
            ("auto_explain", &explained),
            ("debug_print_plan", &printed),
            ("log_statement", &logged),
            ("log_duration", &timed),
        ],
    }
    .assert_shut();
}

#[test]
fn questions_make_no_temporary_schema() {
    let program = |stage: &Stage| {
        for path in ["pg_temp", "pg_temp, public"] {
            let mut program = stage.session("program");
            reads_ahead(&mut program, "SELECT id FROM public.noted");
            program.says(&format!("SET search_path TO {path}"));
            for _ in 0..3 {
                program.says_all(&[
                    "SELECT 1",
                    "BEGIN",
                    "SELECT id FROM public.noted WHERE id = 1",
                    "COMMIT",
                ]);
                stage.thinks();
            }
            program.says_all(&["SELECT pg_my_temp_schema()", "BEGIN"]);
            program.says_all(&["SELECT current_schema() ~ 'pg_temp'", "ROLLBACK"]);
        }
    };
    Hole {
        name: "temporary_schemas",
        setup: "CREATE TABLE noted AS SELECT g AS id FROM generate_series(1, 100) AS g; ANALYZE noted",
        programs: &[("a search path of pg_temp", &program)],
    }
    .assert_shut();
}

/// Whether this process holds a snapshot at any moment of a while.
fn holds_snapshot(other: &mut Session<'_>, process: &str) -> bool {
    let asks = format!("SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = {process}");
    let until = Instant::now() + Duration::from_millis(200);
    let mut held = false;
    while Instant::now() < until {
        held |= rows(&other.client.query(&asks)) == [["t"]];
    }
    held
}

/// CREATE INDEX CONCURRENTLY and DETACH PARTITION wait for the end of each transaction that holds a snapshot when they look.
#[test]
fn a_question_holds_no_snapshot_of_a_transaction_that_has_none() {
    let program = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, "SELECT id FROM noted");
        let (process, mut other) = (program.process(), stage.elsewhere("other"));
        for table in ["first", "second", "third"] {
            program.says_all(&["BEGIN", &format!("SELECT count(*) FROM {table}")]);
            stage.note(format!("a snapshot: {}", holds_snapshot(&mut other, &process)));
            program.says("COMMIT");
        }
    };
    Hole {
        name: "snapshots_of_questions",
        setup: "CREATE TABLE noted AS SELECT g AS id FROM generate_series(1, 100) AS g; \
                CREATE TABLE first (id int); CREATE TABLE second (id int); CREATE TABLE third (id int); ANALYZE",
        programs: &[("tables that are new to the gateway", &program)],
    }
    .assert_shut();
}

/// A BEGIN, a COMMIT, a Parse and a loop that would be answered early, with what the server says of them.
#[test]
fn what_the_server_says_of_a_statement_comes_with_its_answer() {
    let program = |settings: &'static [&'static str]| {
        move |stage: &Stage| {
            let mut program = stage.session("program");
            reads_ahead(&mut program, "SELECT id FROM noted");
            settings.iter().for_each(|text| drop(program.client.query(text)));
            for _ in 0..3 {
                let prepare =
                    [parse("", "SELECT id FROM noted WHERE id = $1"), describe_statement(""), sync()];
                for message in [
                    query("BEGIN ISOLATION LEVEL REPEATABLE READ"),
                    query("SELECT id FROM noted WHERE id = 7"),
                    query("SELECT id FROM noted WHERE id = 7"),
                    query("SAVEPOINT s1"),
                    query("COMMIT"),
                    prepare.concat(),
                ] {
                    let seen = program.client.len();
                    let ready = program.client.count(backend::READY_FOR_QUERY);
                    program.client.send(&message);
                    program.client.await_count(backend::READY_FOR_QUERY, ready + 1);
                    let said = program.client.messages_from(seen);
                    let notices = said.iter().filter(|one| one.tag == backend::NOTICE_RESPONSE).map(shown);
                    let texts = notices.map(|text| {
                        let untimed = text.split("duration:").collect::<Vec<_>>();
                        untimed.first().map_or(String::new(), |text| (*text).to_owned())
                    });
                    stage.note(texts.collect::<Vec<_>>().join("; "));
                    stage.thinks();
                }
            }
        }
    };
    let timed = program(&["SET client_min_messages = log", "SET log_duration = on"]);
    let logged = program(&["SET client_min_messages = log", "SET log_statement = 'all'"]);
    let begins = program(&["SET client_min_messages TO 'debug1'", "SET log_statement = 'all'"]);
    Hole {
        name: "their_notices",
        setup: "CREATE TABLE noted AS SELECT g AS id FROM generate_series(1, 100) AS g; ANALYZE noted",
        programs: &[("log_duration", &timed), ("log_statement", &logged), ("debug1", &begins)],
    }
    .assert_shut();
}

/// Trips of a transaction that reads, in a session of its own.
fn trips_of_first(gateway: &Gateway, database: &str) -> u64 {
    let mut client = RawClient::session(&endpoint_of(gateway), database);
    let before = gateway.common().tally.counts().work_trips;
    for text in ["BEGIN", "SELECT id FROM first WHERE id = 1", "COMMIT"] {
        client.query(text);
    }
    assert!(client.errors().is_empty(), "{:?}", client.errors());
    let trips = gateway.common().tally.counts().work_trips - before;
    // What it has had looked up comes before it leaves.
    thread::sleep(Duration::from_millis(4 * DISTANCES_MS[0]));
    trips
}

#[test]
fn the_first_transaction_of_a_session_takes_one_trip_where_its_tables_are_known() {
    for version in VERSIONS {
        let (server, database) = (server(version), format!("first_{version}"));
        administer(server, "postgres", &format!("CREATE DATABASE {database}"));
        administer(server, &database, "CREATE TABLE first AS SELECT g AS id FROM generate_series(1, 9) AS g");
        let gateway = gateway_at(server, server.at.port, Duration::from_millis(DISTANCES_MS[0]));
        // The first sessions have the tables looked up, and a machine may be busy.
        let deadline = Instant::now() + PATIENCE;
        while trips_of_first(&gateway, &database) > 1 {
            assert!(Instant::now() < deadline, "PostgreSQL {version}: no first transaction takes one trip");
        }
        gateway.stop();
    }
}
