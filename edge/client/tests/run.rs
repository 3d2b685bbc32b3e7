//! Results that are kept whole, and blocks by the numbers of their operations.

mod common;

use common::{Server, Turns};
use onetrip_client::blocking::Client;
use onetrip_client::core::Request;
use onetrip_client::{Error, OnError, Place, TransactionStatus, Usage};

fn client() -> Client {
    Client::connect(&Server::shared().url()).expect("the server lets us in")
}

#[test]
fn begin_travels_with_the_first_statement() {
    let turns = Turns::before(Server::shared());
    let mut client = Client::connect(&Server::shared().url_at(turns.port)).unwrap();
    let request = Request::new("SELECT generate_series(1, 3)", &[]);
    let mut done = None;
    assert_eq!(turns.of(|| done = client.run(&request, true).ok()), 1);
    assert_eq!(client.transaction_status(), TransactionStatus::Active);
    let rows = done.and_then(|done| done.rows).expect("it returns rows");
    let mut place = Place::default();
    let mut read = Vec::new();
    while let Some(row) = rows.next_row(&mut place) {
        read.push(row.get::<i32>(0).unwrap());
    }
    assert_eq!((read, place.row()), (vec![1, 2, 3], 3));
    assert_eq!(turns.of(|| drop(client.run(&request, true))), 1, "the transaction is open");
    client.commit().unwrap();
}

#[test]
fn a_script_keeps_the_rows_of_each_statement() {
    let mut client = client();
    let done = client.run_script("SELECT 1; CREATE TEMP TABLE t (id int); SELECT 2, 3", true).unwrap();
    let rows = |at: usize| done[at].rows.as_ref().map(|rows| rows.columns().len());
    assert_eq!((done.len(), rows(0), rows(1), rows(2)), (3, Some(1), None, Some(2)));
    assert_eq!(client.transaction_status(), TransactionStatus::Active);
    let error = client.run_script("SELECT 1; SELECT 1/0", false).unwrap_err();
    assert_eq!(error.sqlstate(), Some("22012"));
    client.rollback().unwrap();
}

#[test]
fn a_script_with_a_copy_is_refused_and_waits_for_no_data() {
    let mut client = client();
    client.script("CREATE TEMP TABLE t (id int)").unwrap();
    let copy = "SELECT 1; COPY t FROM STDIN; SELECT 2";
    let errors = [client.script(copy).unwrap_err(), client.run_script(copy, false).unwrap_err()];
    for error in errors {
        assert_eq!(error.sqlstate(), Some("57014"), "{error}");
    }
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_statement_that_the_server_lost_is_repeated_with_its_begin() {
    let mut client = client();
    let request = Request::new("SELECT 1", &[]);
    client.run(&request, false).unwrap();
    client.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", &[]).unwrap();
    assert_eq!(client.run(&request, true).unwrap().count(), 1);
    assert_eq!(client.transaction_status(), TransactionStatus::Active);
}

#[test]
fn a_block_can_be_come_back_to() {
    let mut client = client();
    assert!(matches!(client.open_pipeline(), Err(Error::Usage(Usage::OutsideBlock))));
    let first = client.pipeline(OnError::Continue).unwrap().execute("SELECT 1", &[]).unwrap();
    let second = client.open_pipeline().unwrap().execute("SELECT 1/0", &[]).unwrap();
    let mut outcomes = client.open_pipeline().unwrap().end().unwrap();
    assert_eq!(outcomes.operation(first.number()), Some(first));
    assert_eq!(outcomes.operation(second.number() + 1), None);
    assert_eq!(outcomes.take(first).unwrap().count(), 1);
    assert_eq!(client.core().first_failed(&[]), Some(second));
}

#[test]
fn a_statement_that_is_too_large_leaves_no_transaction_open() {
    let mut config: onetrip_client::Config = Server::shared().url().parse().unwrap();
    config.limits.bytes = 1 << 20;
    let mut client = Client::connect_with(config).unwrap();
    let large = "x".repeat(2 << 20);
    let error = client.run(&Request::new("SELECT $1::text", &[&large]), true).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let done = client.run(&Request::new("SELECT generate_series(1, 3)", &[]), false).unwrap();
    assert_eq!((done.count(), client.transaction_status()), (3, TransactionStatus::Idle));
}
