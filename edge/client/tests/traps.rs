//! Traps of the protocol that others have fallen into, and that no other file has a test for. docs/client.md has the
//! list.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::str::FromStr;
use std::time::Duration;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::core::{Event, Opening, Request, Security, Step};
use onetrip_client::{Config, Error, OnError, Outcome};
use onetrip_wire::pg::{Authentication, TransactionStatus, backend, encode_ready_for_query, frame};

#[test]
fn a_script_behind_a_failure_is_kept_apart_by_a_sync() {
    let config = Config::from_str(&Server::shared().url()).unwrap();
    let host = config.conninfo.hosts[0].clone();
    let mut socket = TcpStream::connect((host.name().as_ref(), host.port)).unwrap();
    let login = config.login(&host).unwrap();
    let mut opening = Opening::new(host, login, Security::Plain, config.limits).unwrap();
    loop {
        let sent = socket.write(opening.output()).unwrap();
        opening.sent(sent);
        let count = socket.read(opening.input_space()).unwrap();
        if opening.received(count).unwrap() == Step::Open {
            break;
        }
    }
    let mut core = opening.into_connection();
    // A server that skips everything up to a Sync skips a simple Query, too, and never answers it.
    core.submit(&Request::new("SELECT 1/0", &[])).unwrap();
    core.submit_script("SELECT 1").unwrap();
    let bytes = core.output().to_vec();
    socket.write_all(&bytes).unwrap();
    core.sent(bytes.len());
    let mut heard = String::new();
    while !core.is_settled() {
        let count = socket.read(core.input_space()).unwrap();
        core.received(count).unwrap();
        while let Some(event) = core.next_event().unwrap() {
            heard.push(match event {
                Event::Failed { .. } => 'F',
                Event::Complete { .. } => 'C',
                Event::Ready(_) => 'Z',
                _ => '.',
            });
        }
    }
    assert_eq!(heard.replace('.', ""), "FZCZ");
}

/// A server that lets everybody in, and then says what it is told for each Sync that it hears.
fn pretend(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 1 << 16];
        // The startup packet, all of it at once.
        let _ = socket.read(&mut buffer).unwrap();
        let mut welcome = Vec::new();
        Authentication::Ok.encode(&mut welcome);
        encode_ready_for_query(&mut welcome, TransactionStatus::Idle);
        socket.write_all(&welcome).unwrap();
        for answer in answers {
            while !buffer.starts_with(b"S\0\0\0\x04") {
                let count = socket.read(&mut buffer).unwrap();
                let from = count.saturating_sub(5);
                buffer.copy_within(from..count, 0);
            }
            buffer.fill(0);
            socket.write_all(&answer).unwrap();
        }
    });
    format!("postgres://ann@127.0.0.1:{port}/shop?sslmode=disable")
}

fn failing(bodies: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for body in bodies {
        frame(&mut out, backend::ERROR_RESPONSE, |out| out.extend_from_slice(body));
    }
    encode_ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

#[test]
fn an_error_without_a_code_and_two_errors_for_one_failure_are_taken_as_they_are() {
    let nameless = failing(&[b"Mno code\0\0"]);
    let doubled = failing(&[b"SERROR\0C42601\0Mfirst\0\0", b"SERROR\0CXX000\0Msecond\0\0"]);
    let url = pretend(vec![nameless.clone(), doubled, nameless]);
    let mut client = Client::connect(&url).unwrap();
    let error = client.execute("SELECT 1", &[]).unwrap_err();
    assert_eq!((error.sqlstate(), error.server().unwrap().message()), (Some(""), "no code"));
    let error = client.execute("SELECT 1", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("42601"), "the first tells most");
    let error = client.execute("SELECT 1", &[]).unwrap_err();
    assert_eq!(error.server().unwrap().message(), "no code", "nothing is out of step");
}

#[test]
fn a_dead_connection_fails_everything_that_waits() {
    let url = pretend(Vec::new());
    let mut client = Client::connect(&url).unwrap();
    let mut pipeline = client.pipeline(OnError::Continue).unwrap();
    let operations: Vec<_> = (0..50).map(|_| pipeline.execute("SELECT 1", &[]).unwrap()).collect();
    drop(pipeline.end());
    let outcomes = client.outcomes();
    for operation in operations {
        assert!(matches!(outcomes.get(operation), Some(Outcome::Failed(_))), "{operation}");
    }
}

#[test]
fn what_the_server_says_by_itself_comes_between_any_two_answers() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script("LISTEN self").unwrap();
    let mut pipeline = client.pipeline(OnError::Continue).unwrap();
    let mut read = Vec::new();
    for number in 0..30 {
        let named = format!("SET application_name = 'name {number}'");
        pipeline.execute(&named, &[]).unwrap();
        pipeline.execute("DO $$ BEGIN RAISE NOTICE 'amid'; END $$", &[]).unwrap();
        pipeline.execute("SELECT pg_notify('self', 'x')", &[]).unwrap();
        read.push(pipeline.execute("SELECT generate_series(1, 500)", &[]).unwrap());
    }
    let mut outcomes = pipeline.end().unwrap();
    for operation in read {
        assert_eq!(outcomes.take(operation).unwrap().count(), 500);
    }
    assert_eq!(client.setting("application_name"), Some("name 29"));
    assert_eq!(client.lines().unwrap().len(), 30);
    for _ in 0..30 {
        assert!(client.notification(Duration::from_secs(10)).unwrap().is_some());
    }
}

#[test]
fn a_session_behind_tls_is_cancelled() {
    let server = Server::start(&["--ssl"]);
    let url = server.url().replace("sslmode=disable", "sslmode=require");
    let mut client = Client::connect(&url).unwrap();
    client.set_timeout(Some(Duration::from_millis(100)));
    let error = client.execute("SELECT pg_sleep(60)", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("57014"), "the cancel request needs no login and no TLS");
    client.set_timeout(None);
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_statement_means_what_the_search_path_says_now() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client
        .script(
            "CREATE SCHEMA trap_a; CREATE TABLE trap_a.found AS SELECT 1 AS id;
             CREATE SCHEMA trap_b; CREATE TABLE trap_b.found AS SELECT 'two' AS name, 2 AS id",
        )
        .unwrap();
    for (path, columns) in [("trap_a", 1), ("trap_b", 2), ("trap_a", 1)] {
        client.script(&format!("SET search_path TO {path}")).unwrap();
        let mut rows = client.query("SELECT * FROM found", &[]).unwrap();
        assert_eq!(rows.columns().len(), columns, "{path}");
        let row = rows.next_row().unwrap().unwrap();
        assert_eq!(row.get::<i32>(columns - 1).unwrap(), i32::try_from(columns).unwrap(), "{path}");
    }
}

#[test]
fn a_script_that_drops_all_statements_is_heard() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    for drops in ["DEALLOCATE ALL", "DISCARD ALL"] {
        client.execute("SELECT $1::int", &[&1]).unwrap();
        client.script(drops).unwrap();
        client.begin().unwrap();
        // In a transaction it could not be healed afterwards.
        assert_eq!(client.execute("SELECT $1::int", &[&1]).unwrap(), 1, "{drops}");
        client.commit().unwrap();
    }
    client.execute("PREPARE onetrip AS SELECT 1", &[]).unwrap();
    assert_eq!(client.execute("EXECUTE onetrip", &[]).unwrap(), 1, "names do not meet");
}

#[test]
fn a_copy_that_fails_or_is_given_up_leaves_nothing_half_said() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script("CREATE TEMP TABLE copied (a int)").unwrap();
    for statement in ["COPY copied FROM STDIN", "COPY nowhere FROM STDIN", "COPY copied TO STDOUT"] {
        let mut copy = client.copy_in(statement).unwrap();
        let sent = (0..1000).try_for_each(|_| copy.send(b"no number\n"));
        let done = sent.and_then(|()| copy.finish());
        assert_eq!(done.is_err(), statement != "COPY copied TO STDOUT", "{statement}: {done:?}");
        assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1, "{statement}");
    }
    let error = client.execute("COPY copied FROM STDIN", &[]).unwrap_err();
    assert!(matches!(error, Error::Usage(_)), "{error}");
}
