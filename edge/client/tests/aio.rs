//! The client for programs that await: the same conversation, and futures that may be dropped.
#![cfg(feature = "aio")]

mod common;

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use common::{Server, Turns};
use onetrip_client::aio::{Client, Cursor, Lob, LobSource, Pool, Request};
use onetrip_client::core::Fetch;
use onetrip_client::{
    Config, ConnectError, Error, Format, OnError, Outcome, Retry, TransactionStatus, Usage,
};

fn run(test: impl AsyncFnOnce(Client)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(&Server::shared().url()).await.unwrap();
        test(client).await;
    });
}

#[test]
fn statements_rows_and_errors_are_as_with_the_blocking_client() {
    run(async |mut client| {
        for _ in 0..2 {
            let mut rows = client.query("SELECT generate_series(1, $1::int)", &[&3]).await.unwrap();
            let mut read = Vec::new();
            while let Some(row) = rows.next_row().await.unwrap() {
                read.push(row.get::<i32>(0).unwrap());
            }
            assert_eq!(read, [1, 2, 3]);
        }
        assert_eq!(client.execute("SELECT nothing", &[]).await.unwrap_err().sqlstate(), Some("42703"));
        client.execute("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$", &[]).await.unwrap();
        assert_eq!(client.execute("SELECT generate_series(1, $1::int)", &[&3]).await.unwrap(), 3);
    });
}

#[test]
fn a_block_continues_or_aborts() {
    run(async |mut client| {
        client.script("CREATE TEMP TABLE t (a int PRIMARY KEY)").await.unwrap();
        for on_error in [OnError::Abort, OnError::Continue] {
            let mut pipeline = client.pipeline(on_error).await.unwrap();
            let mut operations = Vec::new();
            for id in [1, 2, 2, 3] {
                operations.push(pipeline.execute("INSERT INTO t VALUES ($1)", &[&id]).await.unwrap());
            }
            pipeline.process(operations[1]).await.unwrap();
            // Answered it is; the failure that undoes it may have come along already.
            let first = pipeline.outcome(operations[0]);
            assert!(matches!(first, Some(Outcome::Done(_) | Outcome::Undone { .. })), "{first:?}");
            let mut outcomes = pipeline.end().await.unwrap();
            let last = outcomes.take(operations[3]);
            match on_error {
                OnError::Abort => assert!(matches!(last, Err(Error::Aborted { by }) if by == operations[2])),
                OnError::Continue => assert_eq!(last.unwrap().count(), 1),
            }
        }
        assert_eq!(client.execute("SELECT FROM t", &[]).await.unwrap(), 3);
    });
}

#[test]
fn no_depth_blocks_both_ends() {
    run(async |mut client| {
        let large = "x".repeat(100_000);
        let mut pipeline = client.pipeline(OnError::Abort).await.unwrap();
        for _ in 0..200 {
            pipeline.execute("SELECT $1::text", &[&large]).await.unwrap();
        }
        let outcomes = pipeline.end().await.unwrap();
        outcomes.check().unwrap();
        assert_eq!(outcomes.iter().count(), 200);
        client.script("CREATE TEMP TABLE large (a text)").await.unwrap();
        let larger = "x".repeat(700_000);
        let mut pipeline = client.pipeline(OnError::Abort).await.unwrap();
        for _ in 0..10 {
            // The server keeps these answers back until the end.
            pipeline.execute("INSERT INTO large VALUES ($1)", &[&larger]).await.unwrap();
        }
        pipeline.end().await.unwrap().check().unwrap();
    });
}

#[test]
fn a_future_that_is_dropped_leaves_the_connection_usable() {
    run(async |mut client| {
        let slow =
            tokio::time::timeout(Duration::from_millis(20), client.execute("SELECT pg_sleep(0.3)", &[]));
        assert!(slow.await.is_err());
        let mut rows = client.query("SELECT generate_series(1, 100000)", &[]).await.unwrap();
        assert!(rows.next_row().await.unwrap().is_some());
        let mut pipeline = client.pipeline(OnError::Continue).await.unwrap();
        pipeline.execute("SELECT 1", &[]).await.unwrap();
        // The block was not ended: the next call does it.
        assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1);
        let canceller = client.canceller().unwrap();
        let sleeping = client.execute("SELECT pg_sleep(60)", &[]);
        let cancelling = tokio::task::spawn_blocking(move || {
            std::thread::sleep(Duration::from_millis(100));
            canceller.cancel()
        });
        let (slept, cancelled) = tokio::join!(sleeping, cancelling);
        cancelled.unwrap().unwrap();
        assert_eq!(slept.unwrap_err().sqlstate(), Some("57014"));
    });
}

#[test]
fn notifications_are_awaited() {
    run(async |mut client| {
        client.script("LISTEN awaited").await.unwrap();
        let mut other = Client::connect(&Server::shared().url()).await.unwrap();
        let (heard, sent) =
            tokio::join!(client.notification(), other.execute("SELECT pg_notify('awaited', 'x')", &[]));
        sent.unwrap();
        assert_eq!(heard.unwrap().payload, "x");
    });
}

#[test]
fn a_cursor_reads_ahead_as_far_as_memory_goes() {
    run(async |_| {
        let turns = Turns::before(Server::shared());
        let mut client = Client::connect(&Server::shared().url_at(turns.port)).await.unwrap();
        client.begin().await.unwrap();
        let series = "SELECT generate_series(1, $1::int)";
        let before = turns.so_far();
        let cursor = client.open_cursor(series, &[&20_000], Fetch::Auto).await.unwrap();
        let (mut sum, mut most) = (0i64, 0);
        while let Some(row) = client.next_row(&cursor).await.unwrap() {
            sum += i64::from(row.get::<i32>(0).unwrap());
            most = most.max(client.cursor_memory());
        }
        assert_eq!(sum, 20_000 * 20_001 / 2);
        assert!(most <= client.core().limits().read_ahead, "{most} bytes");
        client.close_cursor(cursor).await.unwrap();
        let trips = turns.so_far() - before;
        assert!(trips <= 3, "{trips} trips for 20,000 rows");
    });
}

#[test]
fn cursors_are_read_side_by_side() {
    run(async |mut client| {
        let series = "SELECT generate_series(1, $1::int)";
        let error = client.open_cursor(series, &[&10], Fetch::Auto).await.unwrap_err();
        assert!(matches!(error, Error::Usage(Usage::NoTransaction)), "{error}");
        client.begin().await.unwrap();
        let mut cursors: Vec<Cursor> = Vec::new();
        for fetch in [Fetch::Auto, Fetch::Rows(NonZeroU32::new(7).unwrap()), Fetch::Rows(NonZeroU32::MIN)] {
            cursors.push(client.open_cursor(series, &[&2000], fetch).await.unwrap());
        }
        for expected in 1..=2000 {
            for cursor in &cursors {
                let row = client.next_row(cursor).await.unwrap().expect("it has more rows");
                assert_eq!(row.get::<i32>(0).unwrap(), expected);
            }
            if expected % 500 == 0 {
                assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1, "others are in between");
            }
        }
        for cursor in cursors {
            assert!(client.next_row(&cursor).await.unwrap().is_none());
            client.close_cursor(cursor.clone()).await.unwrap();
            let closed = client.next_row(&cursor).await.unwrap_err();
            assert!(matches!(closed, Error::Usage(Usage::UnknownOperation)), "{closed}");
        }
        let query = "SELECT 1 / (3 - generate_series(1, 5))";
        let failing = client.open_cursor(query, &[], Fetch::Auto).await.unwrap();
        let error = loop {
            match client.next_row(&failing).await {
                Ok(row) => assert!(row.is_some(), "it ends without its error"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.sqlstate(), Some("22012"));
        client.rollback().await.unwrap();
    });
}

#[test]
fn a_dropped_wait_loses_no_row_of_a_cursor() {
    run(async |mut client| {
        client.begin().await.unwrap();
        let slow = "SELECT id, pg_sleep(0.05) FROM generate_series(1, 6) AS id";
        let cursor = client.open_cursor(slow, &[], Fetch::Rows(NonZeroU32::new(2).unwrap())).await.unwrap();
        let (mut read, mut dropped) = (Vec::new(), 0);
        while read.last() != Some(&6) {
            match tokio::time::timeout(Duration::from_millis(10), client.next_row(&cursor)).await {
                Ok(row) => read.push(row.unwrap().unwrap().get::<i32>(0).unwrap()),
                Err(_) => dropped += 1,
            }
        }
        assert_eq!(read, [1, 2, 3, 4, 5, 6]);
        assert!(dropped > 0, "nothing was waited for");
    });
}

#[test]
fn copy_moves_data_both_ways() {
    run(async |_| {
        let turns = Turns::before(Server::shared());
        let mut client = Client::connect(&Server::shared().url_at(turns.port)).await.unwrap();
        client.script("CREATE TEMP TABLE moved (a int, b text)").await.unwrap();
        let before = turns.so_far();
        let mut copy = client.copy_in("COPY moved FROM STDIN").await.unwrap();
        for id in 0..10_000 {
            copy.send(format!("{id}\tsome text of row {id}\n").as_bytes()).await.unwrap();
        }
        assert_eq!(copy.finish().await.unwrap(), 10_000);
        let trips = turns.so_far() - before;
        assert!(trips <= 2, "{trips}: CopyInResponse may come while data is being sent");
        let before = turns.so_far();
        let mut copy = client.copy_out("COPY moved TO STDOUT").await.unwrap();
        let (mut lines, mut bytes) = (0, 0);
        while let Some(piece) = copy.next_piece().await.unwrap() {
            (lines, bytes) = (lines + 1, bytes + piece.len());
        }
        assert_eq!((lines, copy.rows(), turns.so_far() - before), (10_000, Some(10_000), 1));
        assert!(bytes > 200_000);
        client.copy_in("COPY moved FROM STDIN").await.unwrap().send(b"1\tgiven up\n").await.unwrap();
        assert_eq!(client.execute("SELECT FROM moved", &[]).await.unwrap(), 10_000, "that is not kept");
        let mut copy = client.copy_out("COPY moved TO STDOUT").await.unwrap();
        assert!(copy.next_piece().await.unwrap().is_some());
        assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1, "what nobody reads is in nobody's way");
        let mut copy = client.copy_in("COPY moved FROM STDIN").await.unwrap();
        let mut sent = Ok(());
        for _ in 0..10_000 {
            sent = copy.send(&b"not a number\tx\n".repeat(10)).await;
            if sent.is_err() {
                break;
            }
        }
        let refused = match sent {
            Ok(()) => copy.finish().await.unwrap_err(),
            Err(error) => {
                drop(copy);
                error
            }
        };
        assert_eq!(refused.sqlstate(), Some("22P02"));
        let error = client.copy_out("COPY moved FROM STDIN").await.unwrap().next_piece().await.unwrap_err();
        assert_eq!(error.sqlstate(), Some("57014"), "{error}");
        let absent = client.copy_in("COPY nothing FROM STDIN").await.unwrap().finish().await.unwrap_err();
        assert_eq!(absent.sqlstate(), Some("42P01"));
        let no_copy = client.copy_in("SELECT 1").await.unwrap_err();
        assert!(matches!(no_copy, Error::Usage(Usage::NotCopy)), "{no_copy}");
        assert_eq!(client.execute("SELECT 1", &[]).await.unwrap(), 1);
    });
}

#[test]
fn a_pool_makes_no_trip_of_its_own() {
    run(async |mut other| {
        let turns = Turns::before(Server::shared());
        let config = Config::from_str(&Server::shared().url_at(turns.port)).unwrap();
        let pool = Pool::new(config, 2, Duration::from_secs(60));
        let wait = Duration::from_millis(20);
        let mut first = pool.get(wait).await.unwrap();
        first.execute("SELECT 1", &[]).await.unwrap();
        drop(first);
        let before = turns.so_far();
        drop(pool.get(wait).await.unwrap());
        assert_eq!(turns.so_far() - before, 0);
        let mut left_open = pool.get(wait).await.unwrap();
        left_open.begin().await.unwrap();
        left_open.execute("CREATE TABLE left_by_a_task (a int)", &[]).await.unwrap();
        let cursor =
            left_open.open_cursor("SELECT generate_series(1, 5000)", &[], Fetch::Auto).await.unwrap();
        assert!(left_open.next_row(&cursor).await.unwrap().is_some());
        drop(left_open);
        let mut again = pool.get(wait).await.unwrap();
        let gone = "SELECT FROM pg_class WHERE relname = 'left_by_a_task'";
        assert_eq!(again.execute(gone, &[]).await.unwrap(), 0);
        assert_eq!(again.cursor_memory(), 0, "the last user's cursors went with its transaction");
        let second = pool.get(wait).await.unwrap();
        let third = pool.get(wait).await.unwrap_err();
        assert!(matches!(&third, Error::Connect(error) if matches!(**error, ConnectError::TimedOut { .. })));
        assert_eq!(pool.size(), (0, 2));
        let waiting = pool.get(Duration::from_secs(10));
        let giving = async { drop(second) };
        assert!(tokio::join!(waiting, giving).0.is_ok(), "who waits gets what is given back");
        assert_eq!(pool.size(), (1, 1));
        // The server ends a session while it is idle: nobody gets that one.
        let id = again.core().cancel_key().unwrap().process_id();
        drop(again);
        other.execute("SELECT pg_terminate_backend($1::int, 5000)", &[&id]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(pool.get(wait).await.unwrap().execute("SELECT 1", &[]).await.unwrap(), 1);
        let old = Pool::new(Config::from_str(&Server::shared().url()).unwrap(), 1, Duration::ZERO);
        let of = async |pool: &Pool| pool.get(wait).await.unwrap().core().cancel_key().unwrap().process_id();
        assert_ne!(of(&old).await, of(&old).await, "one that was idle for too long is closed");
    });
}

#[test]
fn a_call_takes_no_longer_than_it_may() {
    run(async |mut client| {
        client.set_timeout(Some(Duration::from_millis(50)));
        let error = client.execute("SELECT pg_sleep(60)", &[]).await.unwrap_err();
        assert_eq!(error.sqlstate(), Some("57014"), "{error}");
        let mut rows = client.query("SELECT pg_sleep(60) FROM generate_series(1, 3)", &[]).await.unwrap();
        assert_eq!(rows.next_row().await.map(|row| row.is_some()).unwrap_err().sqlstate(), Some("57014"));
        let mut pipeline = client.pipeline(OnError::Abort).await.unwrap();
        let sleep = pipeline.execute("SELECT pg_sleep(60)", &[]).await.unwrap();
        let mut outcomes = pipeline.end().await.unwrap();
        assert_eq!(outcomes.take(sleep).unwrap_err().sqlstate(), Some("57014"));
        client.set_timeout(None);
        assert_eq!(client.execute("SELECT pg_sleep(0.1)", &[]).await.unwrap(), 1);
    });
}

#[test]
fn a_cancel_request_that_is_late_hits_nobody_else() {
    run(async |_| {
        // The session is near, and its cancel requests take 200 ms to their server.
        let paths = |number| Duration::from_millis(if number == 0 { 0 } else { 200 });
        let late = Turns::by_paths(Server::shared(), paths);
        let pool = Pool::new(
            Config::from_str(&Server::shared().url_at(late.port)).unwrap(),
            1,
            Duration::from_secs(60),
        );
        let give_up_on = async |client: &mut Client| {
            client.set_timeout(Some(Duration::from_millis(20)));
            let slow = client.execute("SELECT pg_sleep(0.05)", &[]);
            assert!(tokio::time::timeout(Duration::from_millis(60), slow).await.is_err());
            client.set_timeout(None);
        };
        let wait = Duration::from_secs(10);
        let mut client = pool.get(wait).await.unwrap();
        give_up_on(&mut client).await;
        assert_eq!(client.execute("SELECT pg_sleep(0.4)", &[]).await.unwrap(), 1);
        give_up_on(&mut client).await;
        let of = |client: &Client| client.core().cancel_key().unwrap().process_id();
        let before = of(&client);
        drop(client);
        assert_ne!(of(&pool.get(wait).await.unwrap()), before, "the next user is not hit either");
    });
}

#[test]
fn a_server_that_cannot_even_cancel_is_given_up() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 1000]);
        socket.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").unwrap();
        while socket.read(&mut [0; 1000]).is_ok_and(|count| count > 0) {}
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let url = format!("postgres://ann@127.0.0.1:{port}/shop?sslmode=disable");
        let mut client = Client::connect(&url).await.unwrap();
        client.set_timeout(Some(Duration::from_millis(10)));
        let error = client.execute("SELECT 1", &[]).await.unwrap_err();
        assert!(matches!(error, Error::TimedOut { retry: Retry::Unknown }), "{error:?}");
        assert!(client.is_closed());
    });
}

#[test]
fn requests_scripts_and_blocks_have_the_blocking_clients_words() {
    run(async |mut client| {
        let text = Request { format: Format::Text, ..Request::sync("SELECT $1::int AS n", &[&7]) };
        let mut rows = client.query_request(&text).await.unwrap();
        assert_eq!(rows.next_row().await.unwrap().unwrap().text(0).unwrap(), Some("7"));
        assert_eq!(client.execute_request(&text).await.unwrap().rows(), 1);
        let done = client.run(&text, true).await.unwrap();
        assert_eq!((done.count(), client.transaction_status()), (1, TransactionStatus::Active));
        let three = NonZeroU32::new(3);
        let numbers =
            Request { portal: "p", row_limit: three, ..Request::sync("SELECT generate_series(1, 5)", &[]) };
        let mut pipeline = client.pipeline(OnError::Abort).await.unwrap();
        let first = pipeline.push(&numbers, None).await.unwrap();
        let rest = pipeline.fetch(&numbers, three).await.unwrap();
        let called = pipeline.call("length", &[&"fünf!"]).await.unwrap();
        pipeline.commit().await.unwrap();
        pipeline.begin().await.unwrap();
        pipeline.rollback().await.unwrap();
        assert_eq!(client.open_pipeline().unwrap().operation(called.number()), Some(called));
        let mut outcomes = client.open_pipeline().unwrap().end().await.unwrap();
        let counts = [first, rest].map(|id| outcomes.take(id).unwrap().count());
        assert_eq!(counts, [3, 2]);
        let five: i32 = outcomes.take(called).unwrap().rows.unwrap().rows().next().unwrap().get(0).unwrap();
        assert_eq!(five, 5);
        let done = client.run_script("SELECT 1; SELECT 2 WHERE false", false).await.unwrap();
        assert_eq!(done.iter().map(|done| done.count()).collect::<Vec<_>>(), [1, 0]);
        assert!(client.open_pipeline().is_err() && client.setting("server_version").is_some());
        client.close_portal("nothing");
        client.forget_statements();
        assert_eq!(client.execute("SELECT $1::int AS n", &[&1]).await.unwrap(), 1);
        client.close();
    });
}

#[test]
fn what_is_awaited_may_move_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    run(async |mut client| {
        let request = Request::sync("SELECT $1::int", &[&1]);
        is_send(&client.execute_request(&request));
        is_send(&client.run(&request, true));
        is_send(&client.create_large_object());
        let mut lob = Lob::new(LobSource::Object(1));
        is_send(&client.prefetch(&[(LobSource::Object(1), None)], None));
        is_send(&client.read_lob(&mut lob).fill());
        let mut pipeline = client.pipeline(OnError::Abort).await.unwrap();
        is_send(&pipeline.push(&request, None));
        is_send(&pipeline.fetch(&request, None));
    });
}
