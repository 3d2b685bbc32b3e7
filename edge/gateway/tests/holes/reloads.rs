//! A configuration that the server reads anew. These tests have servers of their own: a configuration is one for all.

use std::thread;
use std::time::{Duration, Instant};

use super::harmless::serves_repeat;
use super::stage::{
    DISTANCES_MS, Path, Session, Stage, VERSIONS, administer, difference, gateway_at, start_server,
};
use crate::common::client::PATIENCE;

/// Answers from memory are no older than this after a reload.
const OLD: Duration = Duration::from_secs(2);

/// Changes the configuration, and waits until new sessions have the value. A backend that is idle has the signal by then.
fn configure(stage: &Stage, setting: &str, value: &str, shown: &str) {
    administer(stage.server, &stage.database, &format!("ALTER SYSTEM SET {setting} TO {value}"));
    administer(stage.server, &stage.database, "SELECT pg_reload_conf()");
    let deadline = Instant::now() + PATIENCE;
    while stage.server.psql(&stage.database, &format!("SHOW {setting}")) != shown {
        assert!(Instant::now() < deadline, "{setting} stays as it was");
    }
    thread::sleep(Duration::from_millis(200));
}

/// Housekeeping that changes nothing is answered from memory.
fn answers_housekeeping(program: &mut Session<'_>, set: &str, reset: &str) {
    program.settles(&format!("{set}, {reset}"), |program| {
        program.says(set);
        program.stage.thinks();
        for _ in 0..3 {
            program.says(reset);
            program.stage.thinks();
        }
        let is_told = program.is_told(reset);
        program.stage.thinks();
        is_told
    });
}

/// SHOW of one default, where another one was set.
fn shows_a_default(stage: &Stage) {
    let set = "SET default_transaction_isolation = 'read committed'";
    let mut program = stage.session("program");
    answers_housekeeping(&mut program, set, "SHOW default_transaction_isolation");
    for _ in 0..3 {
        program.says(set);
        stage.thinks();
        program.says_all(&["SHOW default_transaction_read_only", "SHOW default_transaction_read_only"]);
        stage.thinks();
    }
    configure(stage, "default_transaction_read_only", "on", "on");
    program.says_all(&[
        "SHOW default_transaction_read_only",
        "SELECT 1",
        "SHOW default_transaction_read_only",
    ]);
    configure_by_force(stage, "default_transaction_read_only", "off");
}

/// A session whose default is READ ONLY says first that it writes.
fn configure_by_force(stage: &Stage, setting: &str, shown: &str) {
    let mut admin = stage.elsewhere("admin");
    admin.client.query("SET default_transaction_read_only = off");
    admin.client.query(&format!("ALTER SYSTEM RESET {setting}"));
    admin.client.query("SELECT pg_reload_conf()");
    let deadline = Instant::now() + PATIENCE;
    while stage.server.psql(&stage.database, &format!("SHOW {setting}")) != shown {
        assert!(Instant::now() < deadline, "{setting} stays as it was");
    }
    thread::sleep(Duration::from_millis(200));
}

/// Resets a parameter to a default that has changed.
fn resets(stage: &Stage, set: &str, reset: &str, [setting, value, shown, before]: [&str; 4]) {
    let mut program = stage.session("program");
    answers_housekeeping(&mut program, set, reset);
    program.says(set);
    stage.thinks();
    configure(stage, setting, value, shown);
    program.says_all(&[reset, "SELECT 1", &format!("SHOW {setting}")]);
    configure_by_force(stage, setting, before);
}

type Program<'a> = &'a dyn Fn(&Stage);

/// All that a direct session and the sessions through the gateways see, one after the other.
fn assert_same_after_a_reload(name: &str, setup: &str, programs: &[(&str, Program<'_>)], version: &str) {
    let server: &'static _ = Box::leak(Box::new(start_server(version)));
    administer(server, "postgres", &format!("CREATE DATABASE {name}"));
    if !setup.is_empty() {
        administer(server, name, setup);
    }
    let path = Path { server, port: server.at.port, database: name };
    for (what, program) in programs {
        let alone = Stage::direct(&path);
        program(&alone);
        let direct = alone.take_seen();
        for distance in DISTANCES_MS.map(Duration::from_millis) {
            let gateway = gateway_at(server, server.at.port, distance);
            let through = Stage::through(&gateway, &path, distance);
            program(&through);
            let difference = difference(&direct, &through.take_seen());
            assert_eq!(difference, None, "PostgreSQL {version}, {distance:?}, {what}");
            gateway.stop();
        }
    }
}

fn on_all_versions(run: impl Fn(&str) + Sync) {
    thread::scope(|scope| {
        for version in VERSIONS {
            let run = &run;
            scope.spawn(move || run(version));
        }
    });
}

#[test]
fn housekeeping_says_what_a_reload_has_changed() {
    let interval = ["IntervalStyle", "'iso_8601'", "iso_8601", "postgres"];
    let style = ["DateStyle", "'German'", "German, DMY", "ISO, MDY"];
    let standard = "SET IntervalStyle = 'sql_standard'";
    on_all_versions(|version| {
        let programs: [(&str, Program<'_>); 4] = [
            ("SHOW", &shows_a_default),
            ("RESET ALL", &|stage| resets(stage, standard, "RESET ALL", interval)),
            ("RESET IntervalStyle", &|stage| resets(stage, standard, "RESET IntervalStyle", interval)),
            ("DISCARD ALL", &|stage| resets(stage, "SET DateStyle = 'SQL, DMY'", "DISCARD ALL", style)),
        ];
        assert_same_after_a_reload("housekeeping", "", &programs, version);
    });
}

/// Reads a value before a reload and, when that is long enough ago, after it, in one snapshot.
fn reads_twice(stage: &Stage) {
    let mut program = stage.session("program");
    serves_repeat(&mut program, "SELECT b FROM bytes WHERE id = 1");
    program.says("BEGIN ISOLATION LEVEL REPEATABLE READ");
    stage.thinks();
    program.says("SELECT b FROM bytes WHERE id = 1");
    stage.thinks();
    program.says("SELECT b FROM bytes WHERE id = 1");
    configure(stage, "bytea_output", "escape", "escape");
    thread::sleep(OLD);
    program.says_all(&["SELECT b FROM bytes WHERE id = 1", "COMMIT"]);
    configure_by_force(stage, "bytea_output", "hex");
}

#[test]
fn an_answer_from_before_a_reload_is_not_given_two_seconds_after_it() {
    let setup = "CREATE TABLE bytes (id int PRIMARY KEY, b bytea); \
                 INSERT INTO bytes SELECT g, 'abc'::bytea FROM generate_series(1, 40) AS g; ANALYZE bytes";
    on_all_versions(|version| {
        assert_same_after_a_reload("bytes", setup, &[("bytea_output", &reads_twice)], version);
    });
}
