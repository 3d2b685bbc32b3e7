//! The client for programs that await: the same conversation, and futures that may be dropped.
#![cfg(feature = "aio")]

mod common;

use std::time::Duration;

use common::Server;
use onetrip_client::aio::Client;
use onetrip_client::{Error, OnError, Outcome};

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
