//! Some 470 sessions of real drivers, recorded at test time: each is replayed direct, direct again and through the gateway,
//! and the server's bytes are compared.
//!
//! Programs of `clients/` and psql scripts run against PostgreSQL through a relay that writes down what they send and
//! which replies they waited for. Trust authentication makes the recordings replayable.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use common::messages::ssl_request;
use common::recorder::Recorder;
use common::replay::{Script, Step, assert_faithful};
use common::server::{Server, repository};

/// Runs every act that a program of `clients/` registers, in one process.
const ALL_ACTS: &str = "
import importlib, sys
sys.path.insert(0, 'clients/python')
module, *arguments = sys.argv[1:]
sys.argv = [module, *arguments]
importlib.import_module(module)
import acts
for function in acts.REGISTERED.values():
    function()
";

/// Records what one program run does.
fn record(name: &str, server: &Server, dbname: &str, command: &mut Command, input: &str) -> Vec<Script> {
    let recorder = Recorder::start(server.direct());
    recorder.endpoint().point(command, dbname);
    let running = command.current_dir(repository()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut program = running.unwrap_or_else(|error| panic!("{name}: {error}; run scripts/setup test"));
    program.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads its input");
    let status = program.wait().expect("it ends");
    assert!(status.success(), "{name} failed: {status}");
    let sessions = recorder.stop().into_iter().enumerate().filter(|(_, steps)| !is_cancel(steps));
    sessions.map(|(number, steps)| Script { name: format!("{name} #{number}"), steps }).collect()
}

/// A recorded cancel request would show a key of another time.
fn is_cancel(steps: &[Step]) -> bool {
    matches!(steps.first(), Some(Step::Send(bytes)) if bytes.len() == 16 && bytes[4..8] == [4, 0xd2, 0x16, 0x2e])
}

/// Records a program's acts and replays the sessions; remedies must remove so many trips, or they were not tested.
fn assert_driver_is_faithful(
    server: &Server,
    dbname: &str,
    runs: Vec<Run>,
    sessions_min: usize,
    removed_min: u64,
) {
    let mut scripts = Vec::new();
    server.fresh_database(dbname);
    for Run { name, mut command, input } in runs {
        scripts.extend(record(&name, server, dbname, &mut command, &input));
    }
    assert!(scripts.len() >= sessions_min, "only {} sessions were recorded", scripts.len());
    let removed = assert_faithful(server, dbname, &scripts);
    assert!(removed >= removed_min, "only {removed} trips were removed");
}

struct Run {
    name: String,
    command: Command,
    input: String,
}

/// All acts of a Python program, in one run.
fn python(module: &str, arguments: &[&str]) -> Vec<Run> {
    let mut command = Command::new(repository().join(".venv/bin/python"));
    command.args(["-c", ALL_ACTS, module]).args(arguments);
    vec![Run { name: module.to_owned(), command, input: String::new() }]
}

/// The acts of a program, a run for each; those that `wanted` does not want are left out.
fn program(command: &[&str], wanted: impl Fn(&str) -> bool) -> Vec<Run> {
    let (program, arguments) = command.split_first().expect("a program");
    let prepared = || {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(repository());
        command
    };
    let listed = prepared().arg("--list").output();
    let listed = listed.unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup test"));
    assert!(listed.status.success(), "{program} --list failed; run scripts/setup test");
    let acts = String::from_utf8(listed.stdout).expect("names are text");
    let run = |act: &str| {
        let mut command = prepared();
        command.arg(act);
        Run { name: format!("{} {act}", arguments.join(" ")), command, input: String::new() }
    };
    acts.split_whitespace().filter(|act| wanted(act)).map(run).collect()
}

fn all(_: &str) -> bool {
    true
}

fn go(driver: &str) -> Vec<Run> {
    let client = repository().join("clients/go/go-client");
    program(&[&client.to_string_lossy(), driver], all)
}

fn java(driver: &str, wanted: impl Fn(&str) -> bool) -> Vec<Run> {
    let classes = "clients/java/target/classes:clients/java/target/lib/*";
    let quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"];
    program(&[&["java"], &quick[..], &["-cp", classes, "onetrip.Acts", driver]].concat(), wanted)
}

fn postgres_18() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| Server::with_acts_template("18"))
}

#[test]
fn sessions_of_psycopg2_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(Server::shared(), "fid_psycopg2", python("psycopg2_acts", &[]), 40, 39);
}

#[test]
fn sessions_of_psycopg3_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(Server::shared(), "fid_psycopg3", python("psycopg3_acts", &[]), 47, 36);
}

#[test]
fn sessions_of_psycopg3_with_postgresql_18_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(postgres_18(), "fid_psycopg3", python("psycopg3_acts", &[]), 47, 36);
}

#[test]
fn sessions_of_asyncpg_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(Server::shared(), "fid_asyncpg", python("asyncpg_acts", &[]), 44, 37);
}

#[test]
fn sessions_of_sqlalchemy_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(
        Server::shared(),
        "fid_alchemy",
        python("sqlalchemy_acts", &["psycopg"]),
        36,
        106,
    );
}

#[test]
fn sessions_of_django_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(Server::shared(), "fid_django", python("django_acts", &[]), 38, 21);
}

#[test]
fn sessions_of_pgx_are_the_same_through_the_gateway() {
    let runs = go("pgx").into_iter().chain(go("pgx-sql")).collect();
    assert_driver_is_faithful(Server::shared(), "fid_pgx", runs, 100, 42);
}

#[test]
fn sessions_of_lib_pq_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(Server::shared(), "fid_libpq", go("libpq"), 39, 39);
}

#[test]
fn sessions_of_node_pg_are_the_same_through_the_gateway() {
    assert_driver_is_faithful(
        Server::shared(),
        "fid_node",
        program(&["node", "clients/node/acts.js"], all),
        30,
        36,
    );
}

#[test]
fn sessions_of_pgjdbc_are_the_same_through_the_gateway() {
    // A virtual machine for each act is slow: those whose protocol differs from one another.
    let wanted =
        |act: &str| !act.starts_with("select_") && !act.starts_with("txn_") && !act.contains("fixed");
    assert_driver_is_faithful(Server::shared(), "fid_pgjdbc", java("pgjdbc", wanted), 25, 0);
}

#[test]
fn sessions_of_hibernate_are_the_same_through_the_gateway() {
    let wanted = |act: &str| act.starts_with("bad_OT001");
    assert_driver_is_faithful(Server::shared(), "fid_hibern", java("hibernate", wanted), 1, 0);
}

/// What psql can do that the drivers above do not.
const PSQL_SCRIPTS: [(&str, &str); 12] = [
    (
        "copy in and out",
        "COPY t FROM STDIN;\n901\tnew\n902\tnewer\n\\.\nCOPY (SELECT * FROM t WHERE id > 900) TO STDOUT;\n",
    ),
    ("copy with a bad row", "COPY t FROM STDIN;\nno number\tx\n\\.\nSELECT 1;\n"),
    ("a cursor in pieces", "\\set FETCH_COUNT 7\nSELECT * FROM t ORDER BY id;\n"),
    ("errors inside a transaction", "BEGIN;\nSELECT 1/0;\nSELECT 1;\nROLLBACK;\nSELECT 2;\n"),
    ("several statements in one query", "SELECT 1 \\; SELECT 2 \\; SELECT no_such_column \\; SELECT 3;\n"),
    (
        "notices",
        "DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$;\nSET client_min_messages = debug1;\nSELECT 1;\n",
    ),
    (
        "changed parameters",
        "SET timezone = 'Asia/Tokyo';\nSET client_encoding = 'LATIN1';\nSELECT E'\\u00e9';\nRESET ALL;\n",
    ),
    ("notifications to itself", "LISTEN here;\nNOTIFY here, 'payload';\nSELECT 1;\nUNLISTEN *;\n"),
    ("descriptions", "\\d books\n\\dt\n\\df+ lower\n\\dn+\n"),
    (
        "a function with an error and its context",
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1 / $1; END $$;\nSELECT f(0);\nSELECT f(1);\n",
    ),
    (
        "savepoints that are rolled back to",
        "\\set ON_ERROR_ROLLBACK on\nBEGIN;\nINSERT INTO t VALUES (1, 'twice');\nINSERT INTO t VALUES (950, 'once');\nCOMMIT;\nTABLE t;\n",
    ),
    (
        "large objects",
        "SELECT lo_from_bytes(4711, 'large');\n\\lo_export 4711 /dev/null\n\\lo_unlink 4711\n\\lo_unlink 4711\n",
    ),
];

#[test]
fn sessions_of_psql_are_the_same_through_the_gateway() {
    let run = |(name, input): &(&str, &str)| {
        let mut command = Command::new("psql");
        command.arg("-X").stderr(Stdio::null());
        Run { name: format!("psql, {name}"), command, input: (*input).to_owned() }
    };
    assert_driver_is_faithful(Server::shared(), "fid_psql", PSQL_SCRIPTS.iter().map(run).collect(), 12, 5);
}

#[test]
fn a_recording_keeps_the_points_at_which_the_driver_waited() {
    let server = Server::shared();
    server.fresh_database("fid_recording");
    let mut command = Command::new("psql");
    command.args(["-X", "-c", "SELECT 1", "-c", "SELECT 2"]);
    let scripts = record("psql", server, "fid_recording", &mut command, "");
    let waits = |step: &Step| matches!(step, Step::Await { .. });
    let shape: Vec<bool> = scripts[0].steps.iter().map(waits).collect();
    // SSLRequest (and GSSENCRequest where a credential is cached), startup, two queries, Terminate.
    let opening =
        scripts[0].steps.iter().filter(|step| matches!(step, Step::Send(sent) if sent.len() == 8)).count();
    assert!(matches!(&scripts[0].steps[0], Step::Send(sent) if opening == 2 || *sent == ssl_request()));
    assert_eq!(shape.iter().filter(|waits| **waits).count(), opening + 3);
    assert!(shape.chunks(2).all(|pair| pair[0] != *pair.get(1).unwrap_or(&!pair[0])), "{shape:?}");
}
