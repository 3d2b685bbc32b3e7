//! Remedies change nothing: generated programs of several sessions (`rig/`), and what single sessions see at the edges.

mod common;
mod rig;

use std::time::{Duration, Instant};

use common::client::{Endpoint, PATIENCE, RawClient};
use common::messages::*;
use common::pgbouncer::PgBouncer;
use common::replay::{Script, assert_faithful};
use common::server::{RunningGateway, Server};
use common::transcript::{Message, Transcript};
use onetrip_ledger::{Mutes, Remedy};
use onetrip_wire::pg::backend;
use rig::compare::{Masked, difference};
use rig::family::{self, FAMILIES};
use rig::perturb::PERTURBS;
use rig::prove::{Source, prove, prove_behind, prove_of};
use rig::run::{DEADLOCK_TIMEOUT, NO_INLINING, Outcome, Place, Seen, Taken, run};
use rig::schema;
use rig::shrink::cut_down;
use rig::smith::Smith;
use rig::state::Observer;
use rig::step::{Program, Step, Wait};
use rig::{recorded, regress};

/// Programs of the short form.
const PROGRAMS: u64 = 70;
/// The same of random queries.
const QUERIES: u64 = 8;

fn stop(gateway: RunningGateway) -> onetrip_ledger::Summary {
    gateway.stop().analyzer.finish(&Mutes::default()).summary
}

fn rig_server(version: &str) -> Server {
    Server::with_acts_template_and(&["--version", version, "--set", DEADLOCK_TIMEOUT, "--set", NO_INLINING])
}

#[test]
fn programs_see_the_same_on_postgresql_15() {
    prove(&rig_server("15"), PROGRAMS);
}

#[test]
fn programs_see_the_same_on_postgresql_18() {
    prove(&rig_server("18"), PROGRAMS);
}

/// In session mode PgBouncer gives a program a session of its own, which others have used before, and takes messages apart and
/// puts them together as it likes.
#[test]
fn programs_behind_pgbouncer_see_the_same() {
    let server = rig_server("15");
    let pooler = PgBouncer::start_in("session", 20, &server);
    prove_behind(&server, pooler.port, PROGRAMS);
}

/// Random queries over the catalogue of this server.
fn queries_over_the_catalogue(version: &str) {
    let server = rig_server(version);
    server.psql("postgres", &schema::create_role());
    server.psql("postgres", "CREATE DATABASE rig_catalogue");
    server.psql("rig_catalogue", &schema::create());
    let smith = Smith::of(&server, "rig_catalogue");
    println!("functions, operators, tables: {:?}", smith.size());
    let program = |seed| (0, family::SMITH.of_queries(seed, &smith));
    let rows = &[family::SMITH];
    let source = Source {
        rows,
        program: Box::new(program),
        template: None,
        masked_max: 0.02,
        removed_min: 2.0,
        has_minima: false,
        pooler: None,
    };
    prove_of(&server, &source, QUERIES);
}

#[test]
fn random_queries_see_the_same_on_postgresql_15() {
    queries_over_the_catalogue("15");
}

#[test]
fn random_queries_see_the_same_on_postgresql_18() {
    queries_over_the_catalogue("18");
}

/// PostgreSQL's own regression files.
fn regression_files(version: &str) {
    let directory = std::env::var(regress::DIRECTORY)
        .unwrap_or_else(|_| panic!("{} names a directory", regress::DIRECTORY));
    let (setup, files) = regress::read(std::path::Path::new(&directory));
    let server = rig_server(version);
    server.psql("postgres", "CREATE DATABASE rig_template");
    {
        let mut client = RawClient::session(&server.direct(), "rig_template");
        setup.iter().for_each(|text| drop(client.query(text)));
    }
    server.psql("rig_template", regress::FILLED);
    println!("{} files", files.len());
    let program = |seed: u64| (0, regress::program(seed, &files[seed as usize % files.len()]));
    let rows = &[family::REGRESS];
    let template = Some("rig_template");
    let source = Source {
        rows,
        program: Box::new(program),
        template,
        masked_max: 0.02,
        removed_min: 2.0,
        has_minima: false,
        pooler: None,
    };
    prove_of(&server, &source, files.len() as u64);
}

#[test]
#[ignore = "needs PostgreSQL's regression files: ONETRIP_REGRESS"]
fn regression_files_see_the_same_on_postgresql_15() {
    regression_files("15");
}

#[test]
#[ignore = "needs PostgreSQL's regression files: ONETRIP_REGRESS"]
fn regression_files_see_the_same_on_postgresql_18() {
    regression_files("18");
}

/// What drivers' own tests and applications have sent, each connection by itself.
fn recorded_traffic(version: &str) {
    let directory = std::env::var(recorded::DIRECTORY)
        .unwrap_or_else(|_| panic!("{} names a directory", recorded::DIRECTORY));
    let directory = std::path::Path::new(&directory);
    let recordings = recorded::read(directory);
    assert!(!recordings.is_empty(), "{}: no recordings", directory.display());
    let server = rig_server(version);
    server.psql("postgres", &schema::create_role());
    server.psql("postgres", "CREATE DATABASE rig_template");
    if let Ok(schema) = std::fs::read_to_string(directory.join(recorded::SCHEMA)) {
        server.psql("rig_template", &schema);
    }
    println!("{} connections", recordings.len());
    let program = |seed: u64| (0, recorded::program(seed, &recordings[seed as usize % recordings.len()]));
    let source = Source {
        rows: &[family::RECORDED],
        program: Box::new(program),
        template: Some("rig_template"),
        masked_max: 0.02,
        removed_min: 0.2,
        has_minima: false,
        pooler: None,
    };
    prove_of(&server, &source, recordings.len() as u64);
}

#[test]
#[ignore = "needs what scripts/record has recorded: ONETRIP_RECORDINGS"]
fn recorded_traffic_sees_the_same_on_postgresql_15() {
    recorded_traffic("15");
}

#[test]
#[ignore = "needs what scripts/record has recorded: ONETRIP_RECORDINGS"]
fn recorded_traffic_sees_the_same_on_postgresql_18() {
    recorded_traffic("18");
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

#[test]
fn a_program_is_cut_down_to_what_its_failure_needs() {
    let fails = |program: &Program| {
        let at = |text: &str| program.steps.iter().position(|step| step.shown.contains(text));
        at("BEGIN").is_some_and(|begin| at("COMMIT").is_some_and(|commit| begin < commit))
    };
    let mut programs = (0..1000).map(|seed| FAMILIES[1].program(seed));
    let program = programs.find(|program| fails(program) && program.steps.len() > 20);
    let program = program.expect("a program of this family is like that");
    assert_eq!(cut_down(program, fails).steps.len(), 2);
}

#[test]
fn a_seed_gives_the_same_program_again() {
    for row in &FAMILIES {
        assert_eq!(row.program(5).shown(), row.program(5).shown());
        assert_ne!(row.program(5).shown(), row.program(6).shown());
    }
}

#[test]
fn a_run_that_differs_is_told_from_one_that_repeats() {
    let seen = |text: &str, outcome: Outcome| {
        let body = format!("{text}\0").into_bytes();
        let messages = vec![Message { tag: backend::COMMAND_COMPLETE, body }];
        let taken = vec![Taken { shown: String::new(), outcome, messages }];
        Seen { taken, state: vec![text.to_owned()], raced_at: None }
    };
    let (one, two) = (seen("UPDATE 1", Outcome::Done), seen("UPDATE 2", Outcome::Done));
    let nothing = Masked::between(&one, &one);
    assert_eq!(difference(&one, &one, &nothing), None);
    assert!(difference(&one, &two, &nothing).is_some());
    assert!(difference(&one, &seen("UPDATE 1", Outcome::Blocked), &nothing).is_some());
    assert!(difference(&one, &seen("UPDATE 1", Outcome::Hung), &nothing).is_some());
    let hung = seen("UPDATE 1", Outcome::Hung);
    assert_eq!(difference(&hung, &hung, &Masked::between(&hung, &hung)), None);
    let masked = Masked::between(&one, &two);
    assert_eq!((masked.steps.len(), difference(&one, &two, &masked)), (1, None));
}

/// A program ends where two of its sessions wait: what a run shows from there on is compared with one that ends there, too.
#[test]
fn a_race_in_one_run_is_a_difference_unless_a_direct_run_has_it() {
    let run = |outcomes: &[Outcome], raced_at| {
        let taken = |outcome: &Outcome| Taken {
            shown: "0: SELECT 1".to_owned(),
            outcome: *outcome,
            messages: Vec::new(),
        };
        Seen { taken: outcomes.iter().map(taken).collect(), state: Vec::new(), raced_at }
    };
    let whole = run(&[Outcome::Done; 5], None);
    let race = run(&[Outcome::Done, Outcome::Done, Outcome::Blocked, Outcome::PassedOver], Some(2));
    // It ends a step earlier than the other race, and all of it is like the run without any.
    let shorter = run(&[Outcome::Done; 3], Some(2));
    let nothing = Masked::default();
    assert_eq!(difference(&race, &race, &nothing), None);
    for through in [&race, &shorter] {
        assert!(difference(&whole, through, &nothing).is_some());
        assert_eq!(difference(&whole, through, &Masked::between(&whole, &race)), None);
    }
    let late = run(&[Outcome::Done; 5], Some(4));
    assert!(difference(&whole, &race, &Masked::between(&whole, &late)).is_some(), "it races earlier");
}

/// Behind a BEGIN that was answered early the server reports what a reload has changed with the next answer.
#[test]
fn a_report_of_a_reload_may_come_later_and_must_not_be_lost() {
    let parameter = |name: &str, value: &str| Message {
        tag: backend::PARAMETER_STATUS,
        body: format!("{name}\0{value}\0").into_bytes(),
    };
    let report = |zone: &str| parameter("TimeZone", zone);
    let run = |reload: &str, reports: [Option<Message>; 2]| {
        let shown = ["1: SELECT 1", "0: BEGIN", "0: SELECT 1"].map(str::to_owned);
        let taken = |shown, messages| Taken { shown, outcome: Outcome::Done, messages };
        let [first, begin, select] = shown;
        let [early, late] = reports.map(|report| report.into_iter().collect());
        let taken =
            vec![taken(format!("{first}{reload}"), Vec::new()), taken(begin, early), taken(select, late)];
        Seen { taken, state: Vec::new(), raced_at: None }
    };
    let differs = |reload: &str, through: [Option<Message>; 2]| {
        let direct = run(reload, [Some(report("UTC")), None]);
        difference(&direct, &run(reload, through), &Masked::between(&direct, &direct)).is_some()
    };
    let reload = ", pg_reload_conf()";
    assert!(!differs(reload, [Some(report("UTC")), None]));
    assert!(!differs(reload, [None, Some(report("UTC"))]));
    assert!(differs(reload, [None, Some(report("GMT"))]));
    assert!(differs(reload, [None, None]));
    assert!(
        differs(reload, [Some(report("UTC")), Some(parameter("DateStyle", "German"))]),
        "nobody has reported it directly"
    );
    assert!(differs("", [None, Some(report("UTC"))]));
}

/// When a session notices another one's change of the catalogue is chance, and the rig has a direct run that shows it.
#[test]
fn a_change_of_the_catalogue_that_spreads_is_another_direct_run() {
    let server = rig_server("15");
    let database = "spread";
    server.psql("postgres", &format!("CREATE DATABASE {database}"));
    server.psql(database, "CREATE TYPE mood AS ENUM ('ok'); CREATE TABLE k AS SELECT 'ok'::mood AS mood");
    let step = |session, text: &str| Step::new(session, query(text), Wait::Ready(1), text);
    let perturbed = |session, text: &str| Step { shown: format!("{PERTURBS}{text}"), ..step(session, text) };
    let steps = vec![
        step(0, "PREPARE q AS SELECT mood FROM k"),
        step(0, "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        step(0, "EXECUTE q"),
        perturbed(1, "ALTER TYPE mood RENAME VALUE 'ok' TO 'fine'"),
        step(0, "EXECUTE q"),
        step(0, "COMMIT"),
        perturbed(1, "ALTER TYPE mood RENAME VALUE 'fine' TO 'ok'"),
    ];
    let program = Program { sessions: 2, steps };
    let direct = server.direct();
    let run = |spreads| {
        let place = Place { endpoint: &direct, direct: &direct, database, is_pooled: false, spreads };
        run(&program, &place, &mut Observer::open(&direct, database), None)
    };
    let (one, two, spread) = (run(None), run(None), run(Some(&server)));
    assert_eq!(difference(&one, &two, &Masked::default()), None);
    assert!(difference(&one, &spread, &Masked::default()).is_some());
    let masked = Masked::between(&one, &spread);
    assert_eq!(masked.steps.iter().collect::<Vec<_>>(), [&4]);
}
