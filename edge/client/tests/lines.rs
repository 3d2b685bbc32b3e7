//! What statements print arrives with the answer of the call that printed it.

mod common;

use common::{Server, Turns};
use onetrip_client::OnError;
use onetrip_client::blocking::Client;
use onetrip_client::core::OutputSource;

fn with_orafce() -> &'static Server {
    static SERVER: std::sync::OnceLock<Server> = std::sync::OnceLock::new();
    SERVER.get_or_init(|| {
        let server = Server::start(&["--auth", "trust"]);
        Client::connect(&server.url()).unwrap().script("CREATE EXTENSION orafce").unwrap();
        server
    })
}

const PRINT: &str = "DO $$ BEGIN
    RAISE NOTICE 'a notice';
    PERFORM dbms_output.put_line('first'), dbms_output.put_line('');
    PERFORM dbms_output.put_line('third \\ \"ü\"');
END $$";
const PRINTED: [&str; 4] = ["a notice", "first", "", "third \\ \"ü\""];

#[test]
fn lines_ride_in_the_trip_of_the_call_that_printed_them() {
    let server = with_orafce();
    let turns = Turns::before(server);
    let mut client = Client::connect(&server.url_at(turns.port)).unwrap();
    assert!(client.collect_output(OutputSource::DbmsOutput).unwrap());
    for _ in 0..2 {
        let mut lines = Vec::new();
        let trips = turns.of(|| {
            client.execute(PRINT, &[]).unwrap();
            lines = client.lines().unwrap();
        });
        assert_eq!((trips, &lines[..]), (1, &PRINTED.map(str::to_owned)[..]));
    }
    let trips = turns.of(|| client.script(&format!("{PRINT}; {PRINT}")).unwrap());
    assert_eq!(trips, 1);
    assert_eq!(client.lines().unwrap().len(), 8);
    let mut rows =
        client.query("SELECT dbms_output.put_line('of a row') FROM generate_series(1, 3)", &[]).unwrap();
    while rows.next_row().unwrap().is_some() {}
    assert_eq!(client.lines().unwrap(), ["of a row"; 3]);
    assert!(client.lines().unwrap().is_empty());
}

#[test]
fn a_block_gives_its_lines_whatever_happens_in_it() {
    let server = with_orafce();
    let turns = Turns::before(server);
    let mut client = Client::connect(&server.url_at(turns.port)).unwrap();
    assert!(client.collect_output(OutputSource::DbmsOutput).unwrap());
    for on_error in [OnError::Abort, OnError::Continue] {
        for in_transaction in [false, true] {
            if in_transaction {
                client.begin().unwrap();
            }
            let trips = turns.of(|| {
                let mut pipeline = client.pipeline(on_error).unwrap();
                let printing = pipeline.execute("SELECT dbms_output.put_line('before')", &[]).unwrap();
                let failing = pipeline.execute("SELECT 1/0", &[]).unwrap();
                let mut outcomes = pipeline.end().unwrap();
                assert_eq!(outcomes.take(failing).unwrap_err().sqlstate(), Some("22012"));
                let is_kept = on_error == OnError::Continue || in_transaction;
                assert_eq!(outcomes.take(printing).is_ok(), is_kept);
            });
            assert_eq!(trips, 1);
            if in_transaction {
                client.rollback().unwrap();
            }
            // A failed transaction answers nothing: then the next call brings them.
            assert_eq!(client.lines().unwrap(), ["before"], "{on_error:?} {in_transaction}");
        }
    }
}

#[test]
fn lines_that_nobody_takes_stay_on_the_server() {
    let mut config: onetrip_client::Config = with_orafce().url().parse().unwrap();
    config.limits.lines = 5;
    let mut client = Client::connect_with(config).unwrap();
    assert!(client.collect_output(OutputSource::DbmsOutput).unwrap());
    for number in 0..8 {
        client.execute("SELECT dbms_output.put_line($1::text)", &[&format!("line {number}")]).unwrap();
    }
    assert_eq!(client.lines().unwrap().len(), 5);
    client.execute("SELECT 1", &[]).unwrap();
    assert_eq!(client.lines().unwrap().len(), 3);
}

#[test]
fn a_server_without_output_says_so_and_a_transaction_goes_on() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    assert!(!client.collect_output(OutputSource::DbmsOutput).unwrap());
    client.begin().unwrap();
    assert!(!client.collect_output(OutputSource::Functions).unwrap());
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
    client.commit().unwrap();
    // What goes away later fails nothing, and is told.
    let mut client = Client::connect(&with_orafce().url()).unwrap();
    assert!(client.collect_output(OutputSource::DbmsOutput).unwrap());
    client.script("CREATE SCHEMA other; SET search_path TO other").unwrap();
    client.execute("SELECT dbms_output.put_line('still')", &[]).unwrap();
    assert_eq!(client.lines().unwrap(), ["still"], "the package is found by its own name");
}

#[test]
#[cfg(feature = "aio")]
fn the_client_that_awaits_collects_lines_as_well() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut client = onetrip_client::aio::Client::connect(&with_orafce().url()).await.unwrap();
        assert!(client.collect_output(OutputSource::DbmsOutput).await.unwrap());
        client.execute(PRINT, &[]).await.unwrap();
        assert_eq!(client.lines().await.unwrap(), PRINTED);
    });
}
