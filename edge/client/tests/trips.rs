//! What each call costs in trips, counted between client and server: a turn is a piece of a conversation that begins
//! with the client after the server has spoken.

mod common;

use std::io::{Read, Write};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use common::{Server, Turns};
use onetrip_client::blocking::{Client, Pool};
use onetrip_client::core::{Fetch, Request};
use onetrip_client::{Config, Error, OnError, Outcome, Usage};

fn client(turns: &Turns) -> Client {
    Client::connect(&Server::shared().url_at(turns.port)).unwrap()
}

#[test]
fn a_statement_is_one_trip_prepared_or_not() {
    let turns = Turns::before(Server::shared());
    let mut client = client(&turns);
    for _ in 0..3 {
        assert_eq!(turns.of(|| client.execute("SELECT $1::int", &[&1]).unwrap()), 1);
    }
    let read = |client: &mut Client| {
        let mut rows = client.query("SELECT generate_series(1, 20000)", &[]).unwrap();
        while rows.next_row().unwrap().is_some() {}
    };
    assert_eq!(turns.of(|| read(&mut client)), 1, "all rows of a query");
}

#[test]
fn a_block_is_one_trip_whatever_happens_to_errors() {
    let turns = Turns::before(Server::shared());
    let mut client = client(&turns);
    client.script("CREATE TEMP TABLE t (a int)").unwrap();
    for on_error in [OnError::Abort, OnError::Continue] {
        let block = |client: &mut Client| {
            let mut pipeline = client.pipeline(on_error).unwrap();
            pipeline.begin().unwrap();
            for id in 0..20 {
                pipeline.execute("INSERT INTO t VALUES ($1)", &[&id]).unwrap();
            }
            pipeline.commit().unwrap();
            pipeline.end().unwrap().check().unwrap();
        };
        assert_eq!(turns.of(|| block(&mut client)), 1, "{on_error:?}");
    }
}

#[test]
fn many_sets_of_parameters_are_one_trip_and_all_or_nothing() {
    let turns = Turns::before(Server::shared());
    let mut client = client(&turns);
    client.script("CREATE TEMP TABLE many (a int PRIMARY KEY, b text)").unwrap();
    let insert = "INSERT INTO many VALUES ($1, $2)";
    let sets: Vec<[&dyn onetrip_client::Param; 2]> = vec![[&1, &"one"], [&2, &"two"], [&3, &None::<&str>]];
    let sets = || sets.iter().map(|set| &set[..]);
    assert_eq!(turns.of(|| assert_eq!(client.execute_many(insert, sets()).unwrap(), 3)), 1);
    client.execute("DELETE FROM many WHERE a < 3", &[]).unwrap();
    assert_eq!(client.execute_many(insert, sets()).unwrap_err().error.sqlstate(), Some("23505"));
    assert_eq!(client.execute("SELECT FROM many", &[]).unwrap(), 1, "the first two are undone");
}

#[test]
fn a_cursor_reads_ahead_as_far_as_memory_goes() {
    let turns = Turns::before(Server::shared());
    let mut client = client(&turns);
    client.begin().unwrap();
    let trips = turns.of(|| {
        let cursor =
            client.open_cursor("SELECT generate_series(1, $1::int)", &[&20_000], Fetch::Auto).unwrap();
        let (mut sum, mut most) = (0i64, 0);
        while let Some(row) = client.next_row(&cursor).unwrap() {
            sum += i64::from(row.get::<i32>(0).unwrap());
            most = most.max(client.cursor_memory());
        }
        assert_eq!(sum, 20_000 * 20_001 / 2);
        assert!(most <= client.core().limits().read_ahead, "{most} bytes");
        client.close_cursor(cursor).unwrap();
    });
    assert!(trips <= 3, "{trips} trips for 20,000 rows");
}

#[test]
fn cursors_are_read_side_by_side() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let series = "SELECT generate_series(1, $1::int)";
    let error = client.open_cursor(series, &[&10], Fetch::Auto).unwrap_err();
    assert!(matches!(error, Error::Usage(Usage::NoTransaction)), "{error}");
    client.begin().unwrap();
    let fetches = [Fetch::Auto, Fetch::Rows(NonZeroU32::new(7).unwrap()), Fetch::Rows(NonZeroU32::MIN)];
    let cursors = fetches.map(|fetch| client.open_cursor(series, &[&2000], fetch).unwrap());
    for expected in 1..=2000 {
        for cursor in &cursors {
            let row = client.next_row(cursor).unwrap().expect("it has more rows");
            assert_eq!(row.get::<i32>(0).unwrap(), expected);
        }
        if expected % 500 == 0 {
            assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1, "other statements are in between");
        }
    }
    for cursor in cursors {
        assert!(client.next_row(&cursor).unwrap().is_none());
        client.close_cursor(cursor).unwrap();
    }
    let failing = client.open_cursor("SELECT 1 / (3 - generate_series(1, 5))", &[], Fetch::Auto).unwrap();
    assert_eq!(loop_until_error(&mut client, &failing).as_deref(), Some("22012"));
    client.rollback().unwrap();
}

fn loop_until_error(client: &mut Client, cursor: &onetrip_client::blocking::Cursor) -> Option<String> {
    loop {
        match client.next_row(cursor) {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return error.sqlstate().map(str::to_owned),
        }
    }
}

#[test]
fn portals_are_fetched_in_a_block() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.begin().unwrap();
    let three = NonZeroU32::new(3);
    let numbers =
        |portal| Request { portal, row_limit: three, ..Request::new("SELECT generate_series(1, 8)", &[]) };
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let mut operations = Vec::new();
    for portal in ["a", "b"] {
        operations.push(pipeline.push(&numbers(portal), None).unwrap());
    }
    for portal in ["a", "b", "a", "b"] {
        operations.push(pipeline.fetch(&numbers(portal), three).unwrap());
    }
    let mut outcomes = pipeline.end().unwrap();
    let mut firsts = Vec::new();
    for operation in operations {
        let done = outcomes.take(operation).unwrap();
        let rows = done.rows.unwrap();
        let first: i32 = rows.rows().next().unwrap().get(0).unwrap();
        firsts.push((first, rows.len(), done.has_more));
    }
    assert_eq!(firsts[..2], [(1, 3, true); 2]);
    assert_eq!(firsts[2..], [(4, 3, true), (4, 3, true), (7, 2, false), (7, 2, false)]);
}

#[test]
fn copy_moves_data_both_ways() {
    let turns = Turns::before(Server::shared());
    let mut client = client(&turns);
    client.script("CREATE TEMP TABLE moved (a int, b text)").unwrap();
    let trips = turns.of(|| {
        let mut copy = client.copy_in("COPY moved FROM STDIN").unwrap();
        for id in 0..10_000 {
            writeln!(copy, "{id}\tsome text of row {id}").unwrap();
        }
        assert_eq!(copy.finish().unwrap(), 10_000);
    });
    assert!(trips <= 2, "{trips}: CopyInResponse may come while data is being sent");
    let mut text = String::new();
    let trips = turns.of(|| drop(client.copy_out("COPY moved TO STDOUT").unwrap().read_to_string(&mut text)));
    assert_eq!((trips, text.lines().count()), (1, 10_000));
    drop(client.copy_in("COPY moved FROM STDIN").unwrap().send(b"1\tgiven up\n"));
    assert_eq!(client.execute("SELECT FROM moved", &[]).unwrap(), 10_000, "what was given up is not kept");
    let mut copy = client.copy_in("COPY moved FROM STDIN").unwrap();
    let late = (0..100_000).try_for_each(|_| copy.send(b"not a number\tx\n"));
    assert_eq!(late.and_then(|()| copy.finish()).unwrap_err().sqlstate(), Some("22P02"));
    let error = client.copy_out("COPY moved FROM STDIN").unwrap().next_piece().unwrap_err();
    assert_eq!(error.sqlstate(), Some("57014"), "{error}");
    assert_eq!(
        client.copy_in("COPY nothing FROM STDIN").unwrap().finish().unwrap_err().sqlstate(),
        Some("42P01")
    );
    assert_eq!(client.execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_pool_makes_no_trip_of_its_own() {
    let turns = Turns::before(Server::shared());
    let config = Config::from_str(&Server::shared().url_at(turns.port)).unwrap();
    let pool = Pool::new(config, 2, Duration::from_secs(60));
    let wait = Duration::from_millis(20);
    let mut first = pool.get(wait).unwrap();
    first.execute("SELECT 1", &[]).unwrap();
    drop(first);
    assert_eq!(turns.of(|| drop(pool.get(wait).unwrap())), 0);
    let mut left_open = pool.get(wait).unwrap();
    left_open.begin().unwrap();
    left_open.execute("CREATE TABLE left_open (a int)", &[]).unwrap();
    drop(left_open);
    let mut again = pool.get(wait).unwrap();
    assert_eq!(again.execute("SELECT FROM pg_class WHERE relname = 'left_open'", &[]).unwrap(), 0);
    let _second = pool.get(wait).unwrap();
    assert!(pool.get(wait).is_err(), "there are two at most");
    assert_eq!(pool.size(), (0, 2));
    // The server ends a session while it is idle: nobody gets that one.
    let id = again.core().cancel_key().unwrap().process_id();
    drop(again);
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    other.execute("SELECT pg_terminate_backend($1::int, 5000)", &[&id]).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(pool.get(wait).unwrap().execute("SELECT 1", &[]).unwrap(), 1);
}

#[test]
fn a_lost_connection_fails_what_it_owes() {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    let mut other = Client::connect(&Server::shared().url()).unwrap();
    let id = client.core().cancel_key().unwrap().process_id();
    other.execute("SELECT pg_terminate_backend($1::int, 5000)", &[&id]).unwrap();
    let mut pipeline = client.pipeline(OnError::Abort).unwrap();
    let first = pipeline.execute("SELECT 1", &[]).unwrap();
    let ended = pipeline.end().map(drop);
    let outcome = client.outcomes().get(first).cloned();
    assert!(ended.is_err() || matches!(outcome, Some(Outcome::Failed(_))), "{ended:?} {outcome:?}");
    assert!(client.is_closed());
    assert!(matches!(client.execute("SELECT 1", &[]), Err(Error::Closed)));
}
