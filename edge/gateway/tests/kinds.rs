//! Kinds of faults that come from outside, each on a stub and on PostgreSQL: a server that stands still, is killed, is slow
//! or talks nonsense; a gateway that is out of descriptors, or told to end. Others are never hit, and nothing is lost.

mod common;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::client::{PATIENCE, RawClient};
use common::messages::*;
use common::process;
use common::server::{RunningGateway, Server, config, conninfo, endpoint_of};
use common::stub::{Manner, Stub};
use common::wait_until;
use onetrip_gateway::{Gateway, GatewayConfig};
use onetrip_ledger::Mutes;
use onetrip_wire::pg::{DataRow, ErrorResponse, backend};

/// Long enough that an answer would have come.
const A_WHILE: Duration = Duration::from_millis(400);

fn session(gateway: &RunningGateway) -> RawClient {
    RawClient::session(&gateway.endpoint(), "postgres")
}

/// The one value that this statement gives.
fn value(client: &mut RawClient, text: &str) -> String {
    let reply = client.query(text);
    let row = reply.iter().find(|message| message.tag == backend::DATA_ROW);
    let body = &row.unwrap_or_else(|| panic!("{text}: {reply:?}")).body;
    let row = DataRow::decode(body).expect("a row");
    String::from_utf8_lossy(row.columns.iter().next().flatten().expect("a value")).into_owned()
}

fn is_served(client: &mut RawClient) {
    assert_eq!(value(client, "SELECT 'served'"), "served");
}

/// Sends a statement to a server that stands still, lets it go on, and gets the answer.
fn assert_waited_for(client: &mut RawClient, goes_on: impl FnOnce()) {
    let rows = client.count(backend::DATA_ROW);
    client.send(&query("SELECT 'late'"));
    assert!(!client.waits_for(backend::DATA_ROW, rows + 1, A_WHILE), "it stands still");
    goes_on();
    client.await_count(backend::DATA_ROW, rows + 1);
    assert_eq!(client.errors(), []);
    is_served(client);
}

#[test]
fn a_stub_that_stands_still_is_waited_for_and_nothing_is_lost() {
    let stub = Stub::start();
    let gateway = RunningGateway::start(config(stub.upstream()));
    let mut client = session(&gateway);
    stub.becomes(Manner::StandsStill);
    assert_waited_for(&mut client, || stub.becomes(Manner::Answers));
    is_served(&mut session(&gateway));
}

#[test]
fn a_postgresql_that_stands_still_is_waited_for_and_nothing_is_lost() {
    let gateway = Server::shared().gateway();
    let (mut client, mut other) = (session(&gateway), session(&gateway));
    let pid = value(&mut client, "SELECT pg_backend_pid()");
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    };
    signal("-STOP");
    is_served(&mut other);
    assert_waited_for(&mut client, || signal("-CONT"));
}

#[test]
fn a_stub_that_hangs_up_in_an_answer_ends_that_session_and_no_other() {
    let stub = Stub::start();
    let gateway = RunningGateway::start(config(stub.upstream()));
    let (mut client, mut other) = (session(&gateway), session(&gateway));
    stub.becomes(Manner::HangsUp);
    client.send(&query("SELECT 'cut'"));
    let received = client.transcript();
    assert_eq!(
        received.count(backend::READY_FOR_QUERY),
        1,
        "the cut message is not made whole: {received:?}"
    );
    stub.becomes(Manner::Answers);
    is_served(&mut other);
    is_served(&mut session(&gateway));
}

#[test]
fn a_postgresql_that_is_ended_ends_that_session_and_no_other() {
    let server = Server::shared();
    let gateway = server.gateway();
    let (mut client, mut other) = (session(&gateway), session(&gateway));
    let pid = value(&mut client, "SELECT pg_backend_pid()");
    client.send(&query("SELECT pg_sleep(600)"));
    server.psql("postgres", &format!("SELECT pg_terminate_backend({pid})"));
    assert!(client.ends_within(PATIENCE));
    assert_eq!(client.errors()[0].1, "57P01");
    is_served(&mut other);
    is_served(&mut session(&gateway));
}

#[test]
fn a_stub_that_answers_byte_by_byte_is_put_together() {
    let stub = Stub::start();
    let gateway = RunningGateway::start(config(stub.upstream()));
    let mut client = session(&gateway);
    stub.becomes(Manner::IsSlow);
    for _ in 0..5 {
        is_served(&mut client);
    }
    let counted = gateway.stop().analyzer.finish(&Mutes::default()).summary;
    assert_eq!((counted.statements, counted.trips.work()), (5, 5));
}

#[test]
fn a_stub_that_talks_nonsense_loses_that_session_and_no_other() {
    let stub = Stub::start();
    let gateway = RunningGateway::start(config(stub.upstream()));
    let (mut client, mut other) = (session(&gateway), session(&gateway));
    stub.becomes(Manner::TalksNonsense);
    client.send(&query("SELECT 1"));
    assert!(client.ends_within(PATIENCE));
    assert_eq!(client.errors()[0].1, "08P01");
    assert_eq!(client.count(backend::DATA_ROW), 0);
    stub.becomes(Manner::Answers);
    is_served(&mut other);
}

#[test]
fn a_gateway_before_a_stub_drains_when_it_is_told_to_end() {
    let stub = Stub::start();
    let gateway = Gateway::start(config(stub.upstream())).expect("it starts");
    let endpoint = endpoint_of(&gateway);
    let session = || RawClient::session(&endpoint, "postgres");
    let (idle, mut busy) = (session(), session());
    stub.becomes(Manner::StandsStill);
    busy.send(&query("SELECT 'answered'"));
    assert!(!busy.waits_for(backend::DATA_ROW, 1, A_WHILE));
    gateway.drain();
    assert!(idle.ends_within(PATIENCE));
    assert_eq!(idle.errors()[0].1, "57P01");
    assert!(!busy.ends_within(A_WHILE), "its statement is under way");
    stub.becomes(Manner::Answers);
    assert!(busy.ends_within(PATIENCE));
    assert_eq!((busy.count(backend::DATA_ROW), &*busy.errors()[0].1), (1, "57P01"));
    gateway.stop();
}

/// Waits until so many of these backends sleep.
fn await_sleepers(server: &Server, pids: &str, count: usize) {
    let asks =
        format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({pids}) AND wait_event = 'PgSleep'");
    wait_until("the statements' sleep", || server.psql("postgres", &asks).trim() == count.to_string());
}

/// The hint of the session's last word.
fn hint(client: &RawClient) -> Option<String> {
    let transcript = client.so_far();
    let last = transcript.with_tag(backend::ERROR_RESPONSE).last().expect("it was told something");
    let error = ErrorResponse::decode(&last.body).expect("an error");
    error.field(b'H').map(|hint| String::from_utf8_lossy(hint).into_owned())
}

#[test]
fn what_runs_when_a_gateway_stops_is_cancelled_and_with_it_what_was_sent_behind() {
    let server = Server::shared();
    let dbname = "stopped";
    server.fresh_database(dbname);
    server.psql(dbname, "CREATE TABLE written (way text)");
    let gateway = RunningGateway::start(GatewayConfig { threads: Some(1), ..config(server.upstream()) });
    let session = || RawClient::session(&gateway.endpoint(), dbname);
    let insert = |way: &str| query(&format!("INSERT INTO written SELECT '{way}' FROM pg_sleep(5)"));
    let (mut alone, mut piped, mut open, mut idle) = (session(), session(), session(), session());
    let pids = [&mut alone, &mut piped].map(|client| value(client, "SELECT pg_backend_pid()")).join(",");
    open.query("BEGIN");
    open.query("INSERT INTO written VALUES ('open')");
    is_served(&mut idle);
    alone.send(&insert("alone"));
    piped.send(&[insert("first"), insert("second"), insert("third")].concat());
    await_sleepers(server, &pids, 2);
    gateway.stop();
    for client in [&alone, &piped, &open, &idle] {
        assert!(client.ends_within(PATIENCE));
        let errors = client.errors();
        assert_eq!((&*errors.last().expect("its last word").1, hint(client)), ("57P01", None), "{errors:?}");
    }
    for (client, count) in [(&alone, 1), (&open, 1), (&idle, 1), (&piped, 3)] {
        assert_eq!(client.errors().len(), count, "each statement has its own, and 57P01 is the last one's");
    }
    let are_there = format!("SELECT count(*) FROM pg_stat_activity WHERE pid IN ({pids})");
    wait_until("the sessions' end", || server.psql(dbname, &are_there).trim() == "0");
    assert_eq!(server.psql(dbname, "SELECT count(*) FROM written").trim(), "0");
}

#[test]
fn what_was_sent_behind_a_cancelled_statement_and_is_done_is_told() {
    let server = Server::shared();
    let dbname = "stopped_behind";
    server.fresh_database(dbname);
    server.psql(dbname, "CREATE TABLE written (way text)");
    let gateway = RunningGateway::start(GatewayConfig { threads: Some(1), ..config(server.upstream()) });
    let mut client = RawClient::session(&gateway.endpoint(), dbname);
    let mut others: Vec<_> = (0..3).map(|_| RawClient::session(&gateway.endpoint(), dbname)).collect();
    others.iter_mut().for_each(is_served);
    let pid = value(&mut client, "SELECT pg_backend_pid()");
    let quick = (0..3).map(|_| query("INSERT INTO written VALUES ('quick')"));
    let all: Vec<_> = [query("SELECT pg_sleep(5)")].into_iter().chain(quick).collect();
    client.send(&all.concat());
    await_sleepers(server, &pid, 1);
    let told_before = client.count(backend::COMMAND_COMPLETE);
    gateway.stop();
    assert!(client.ends_within(PATIENCE));
    let told = client.count(backend::COMMAND_COMPLETE) - told_before;
    let errors = client.errors();
    assert_eq!((&*errors.last().expect("its last word").1, hint(&client)), ("57P01", None), "{errors:?}");
    assert_eq!(server.psql(dbname, "SELECT count(*) FROM written").trim(), told.to_string());
}

#[test]
fn who_has_a_statement_that_cannot_be_cancelled_is_told_so() {
    let stub = Stub::start();
    let gateway = RunningGateway::start(config(stub.upstream()));
    let (mut busy, idle) = (session(&gateway), session(&gateway));
    stub.becomes(Manner::StandsStill);
    busy.send(&query("SELECT 1"));
    assert!(!busy.waits_for(backend::DATA_ROW, 1, A_WHILE));
    gateway.stop();
    assert!(busy.ends_within(PATIENCE) && idle.ends_within(PATIENCE));
    assert_eq!((&*busy.errors()[0].1, &*idle.errors()[0].1), ("57P01", "57P01"));
    let told = hint(&busy).expect("there is a hint");
    assert!(told.contains("could not be cancelled"), "{told}");
    assert_eq!(hint(&idle), None);
}

const SCARCE_UPSTREAM: &str = "ONETRIP_TEST_SCARCE_UPSTREAM";

/// Not a test by itself: the process that has few descriptors.
#[test]
#[ignore = "run by another test"]
fn a_gateway_with_few_descriptors() {
    let Ok(upstream) = std::env::var(SCARCE_UPSTREAM) else { return };
    let gateway = RunningGateway::start(GatewayConfig { threads: Some(1), ..config(conninfo(&upstream)) });
    process::serve(&gateway);
}

/// More clients come than there are descriptors for; some are served, and the others once these have gone. Who got the
/// last descriptor is told that there is none for the database.
fn assert_outlives_scarcity(port: u16) {
    // With one more or less, a client gets the last one even if each is let in before the next comes.
    let refused = [64, 65].map(|descriptors| refused_for_scarcity(port, descriptors)).concat();
    assert!(!refused.is_empty());
    for (severity, sqlstate, message) in refused {
        assert_eq!((&*severity, &*sqlstate), ("FATAL", "53300"), "{message}");
        assert!(message.contains("out of file descriptors"), "{message}");
    }
}

fn refused_for_scarcity(port: u16, descriptors: u32) -> Vec<(String, String, String)> {
    let (mut process, endpoint) = process::start(
        Command::new("sh")
            .args([
                "-c",
                &format!(
                    "ulimit -n {descriptors}; exec \"$0\" --exact a_gateway_with_few_descriptors --ignored --nocapture"
                ),
            ])
            .arg(std::env::current_exe().expect("this program"))
            .env(SCARCE_UPSTREAM, format!("postgres://onetrip@127.0.0.1:{port}/postgres?sslmode=disable")),
    );
    let mut first = RawClient::session(&endpoint, "postgres");
    let clients: Vec<RawClient> = (0..80)
        .map(|_| {
            let mut client = RawClient::connect(&endpoint);
            client.send(&startup("postgres"));
            client
        })
        .collect();
    let served = || clients.iter().filter(|client| client.count(backend::READY_FOR_QUERY) > 0).count();
    let deadline = Instant::now() + PATIENCE;
    while served() < 5 {
        assert!(Instant::now() < deadline, "{} of 80 are served", served());
        thread::sleep(Duration::from_millis(20));
    }
    thread::sleep(A_WHILE);
    assert!(served() < 40, "there are descriptors for {}", served());
    is_served(&mut first);
    let refused = clients.iter().flat_map(RawClient::errors).collect();
    for mut client in clients {
        client.send(&terminate());
    }
    is_served(&mut first);
    let deadline = Instant::now() + PATIENCE;
    let mut next = loop {
        // The gateway may not have seen yet that they have left.
        if let Some(client) = RawClient::connect(&endpoint).greeted("postgres") {
            break client;
        }
        assert!(Instant::now() < deadline, "nobody is let in behind those who left");
        thread::sleep(Duration::from_millis(20));
    };
    is_served(&mut next);
    process.kill().expect("it runs");
    process.wait().expect("it ends");
    refused
}

#[test]
fn a_gateway_before_a_stub_outlives_that_descriptors_run_out() {
    assert_outlives_scarcity(Stub::start().port);
}

#[test]
fn a_gateway_before_postgresql_outlives_that_descriptors_run_out() {
    assert_outlives_scarcity(Server::shared().at.port);
}
