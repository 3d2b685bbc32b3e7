//! `--isolation repeatable-read`: the upsert loop of PostgreSQL's manual never ends there, and that is told.

use std::thread;
use std::time::{Duration, Instant};

use onetrip_gateway::{Gateway, GatewayConfig, IsolationLevel};
use onetrip_ledger::Mutes;
use onetrip_wire::pg::backend;

use super::stage::{Path, Session, Stage, VERSIONS, administer, server};
use crate::common::messages::*;
use crate::common::server::config;

const SETUP: &str = "CREATE TABLE counts (id int PRIMARY KEY, n int); \
     CREATE FUNCTION upsert(which int) RETURNS void LANGUAGE plpgsql AS 'BEGIN LOOP \
     UPDATE counts SET n = n + 1 WHERE id = which; IF found THEN RETURN; END IF; \
     BEGIN INSERT INTO counts VALUES (which, 1); RETURN; EXCEPTION WHEN unique_violation THEN NULL; END; \
     END LOOP; END'";

/// A transaction that has its snapshot, behind which another session inserts the row.
fn collides(program: &mut Session<'_>, other: &mut Session<'_>, id: u32) {
    program.says_all(&["BEGIN", "SELECT count(*) FROM counts"]);
    other.says(&format!("INSERT INTO counts VALUES ({id}, 1)"));
}

/// The loop as statements of the program: how often it went round before it was told, if it was.
fn by_statements(stage: &Stage, told: &dyn Fn() -> u64) -> usize {
    let (mut program, mut other) = (stage.session("program"), stage.elsewhere("other"));
    collides(&mut program, &mut other, 1);
    for round in 0..40 {
        if program.says("UPDATE counts SET n = n + 1 WHERE id = 1")[0].body.starts_with(b"UPDATE 1") {
            return round;
        }
        program.says_all(&["SAVEPOINT again", "INSERT INTO counts VALUES (1, 1)", "ROLLBACK TO again"]);
        if told() > 0 {
            return round + 1;
        }
    }
    panic!("it goes round for ever, and nobody says so");
}

/// The loop inside a function: whether it was told, or ended by itself.
fn in_a_function(stage: &Stage, told: &dyn Fn() -> u64) -> bool {
    let (mut program, mut other) = (stage.session("program"), stage.elsewhere("other"));
    collides(&mut program, &mut other, 2);
    let (process, before) = (program.process(), told());
    let ready = program.client.count(backend::READY_FOR_QUERY);
    program.client.send(&query("SELECT upsert(2)"));
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until && told() == before {
        if program.client.waits_for(backend::READY_FOR_QUERY, ready + 1, Duration::from_millis(100)) {
            return false;
        }
    }
    other.says(&format!("SELECT pg_terminate_backend({process})"));
    assert_eq!(told(), before + 1, "once");
    true
}

#[test]
fn an_upsert_that_never_ends_at_a_raised_level_is_told() {
    thread::scope(|scope| {
        for version in VERSIONS {
            for isolation in [None, Some(IsolationLevel::RepeatableRead)] {
                scope.spawn(move || {
                    let server = server(version);
                    let database = format!("raised_{version}_{}", isolation.is_some());
                    administer(server, "postgres", &format!("CREATE DATABASE {database}"));
                    administer(server, &database, SETUP);
                    let upstream = server.upstream_by(server.at.port);
                    let gateway = Gateway::start(GatewayConfig { isolation, ..config(upstream) })
                        .expect("the gateway starts");
                    let common = gateway.common();
                    let told = || common.tally.counts().endless;
                    let path = Path { server, port: server.at.port, database: &database };
                    let stage = Stage::through(&gateway, &path, Duration::ZERO);
                    let (rounds, in_function) = (by_statements(&stage, &told), in_a_function(&stage, &told));
                    match isolation {
                        None => {
                            assert_eq!((rounds, in_function, told()), (0, false, 0), "PostgreSQL {version}")
                        }
                        Some(_) => {
                            assert_eq!((rounds, in_function, told()), (10, true, 2), "PostgreSQL {version}")
                        }
                    }
                    let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
                    let reported: Vec<u64> = summary.may_not_end.iter().map(|it| it.failures).collect();
                    let expected: &[u64] = if isolation.is_some() { &[10, 0] } else { &[] };
                    assert_eq!(reported, expected, "{:?}", summary.may_not_end);
                    assert!(summary.may_not_end.iter().all(|it| !it.statement.is_empty()));
                });
            }
        }
    });
}
