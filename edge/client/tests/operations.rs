//! Every kind of operation that a block takes, failing in every position, in every mode, in a transaction and out of
//! one, and with each operation's own word on errors: what the outcomes say has to be what the table holds.

mod common;

use std::num::NonZeroU32;

use common::Server;
use onetrip_client::blocking::{Client, Pipeline};
use onetrip_client::core::Request;
use onetrip_client::{Error, OnError, OperationId, Outcome, TransactionStatus};

/// A kind of operation. Each leaves a trace in `kept` if it runs: a row with the id that it is given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    Insert,
    Returning,
    Do,
    Function,
    Procedure,
    Copy,
    /// A portal of which one row is taken now.
    Portal,
    /// Writing into a large object, and reading it.
    LargeObject,
}

const WORKS: [Work; 8] = [
    Work::Insert,
    Work::Returning,
    Work::Do,
    Work::Function,
    Work::Procedure,
    Work::Copy,
    Work::Portal,
    Work::LargeObject,
];

const SETUP: &str = "
    CREATE TEMP TABLE kept (id int PRIMARY KEY CHECK (id >= 0));
    CREATE FUNCTION pg_temp.keep(id int) RETURNS SETOF int LANGUAGE sql AS
        'INSERT INTO kept VALUES (id) RETURNING id; SELECT generate_series(1, 3)';
    CREATE PROCEDURE pg_temp.keep_it(id int) LANGUAGE sql AS 'INSERT INTO kept VALUES (id)';
    CREATE FUNCTION pg_temp.keep_large(object oid, id int) RETURNS bytea LANGUAGE plpgsql AS
        'BEGIN INSERT INTO kept VALUES (id); PERFORM lo_put(object, 0, ''some bytes''); RETURN lo_get(object); END'";

/// Adds the work; with `fails`, one that violates a constraint or is about an object that is not there.
fn push(
    pipeline: &mut Pipeline<'_>,
    work: Work,
    id: i32,
    fails: bool,
    object: u32,
    on_error: Option<OnError>,
) -> OperationId {
    let id = if fails { -1 } else { id };
    let object = if fails { 4_000_000_000 } else { object };
    let request = Request::new;
    match work {
        Work::Insert => pipeline.push(&request("INSERT INTO kept VALUES ($1)", &[&id]), on_error),
        Work::Returning => {
            pipeline.push(&request("INSERT INTO kept VALUES ($1) RETURNING id", &[&id]), on_error)
        }
        Work::Do => {
            let text = format!("DO $$ BEGIN INSERT INTO kept VALUES ({id}); END $$");
            pipeline.push(&request(&text, &[]), on_error)
        }
        Work::Function => pipeline.push(&request("SELECT pg_temp.keep($1)", &[&id]), on_error),
        Work::Procedure => pipeline.push(&request("CALL pg_temp.keep_it($1)", &[&id]), on_error),
        Work::Copy => {
            let data = format!("{id}\n");
            let copy = Some(data.as_bytes());
            pipeline.push(&Request { copy, ..request("COPY kept FROM STDIN", &[]) }, on_error)
        }
        Work::Portal => {
            let portal = format!("portal_{id}");
            let row_limit = NonZeroU32::new(1);
            let text = "SELECT * FROM pg_temp.keep($1)";
            pipeline.push(&Request { portal: &portal, row_limit, ..request(text, &[&id]) }, on_error)
        }
        Work::LargeObject => {
            // The row is written first, and undone with what follows it.
            let id = if fails { 999 } else { id };
            pipeline.push(&request("SELECT pg_temp.keep_large($1, $2)", &[&object, &id]), on_error)
        }
    }
    .unwrap()
}

fn ids(client: &mut Client) -> Vec<i32> {
    let mut rows = client.query("SELECT id FROM kept ORDER BY id", &[]).unwrap();
    let mut ids = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        ids.push(row.get(0).unwrap());
    }
    ids
}

/// The mode of each operation: that of the block, or its own.
type Modes = [OnError; 4];

/// Ends what was begun, and returns what holds.
fn kept_after(client: &mut Client, in_transaction: bool) -> Vec<i32> {
    if in_transaction && client.transaction_status() == TransactionStatus::Active {
        client.commit().unwrap();
    } else if in_transaction {
        client.rollback().unwrap();
    }
    assert_eq!(client.transaction_status(), TransactionStatus::Idle);
    ids(client)
}

/// What has to have become of four operations of which one fails, and the ids that hold.
fn expected(modes: Modes, fails: usize, in_transaction: bool) -> ([&'static str; 4], Vec<i32>) {
    let goes_on = modes[fails] == OnError::Continue;
    let mut became = ["done"; 4];
    became[fails] = "failed";
    if !goes_on {
        became[fails + 1..].fill("aborted");
    }
    // Outside of a transaction, those right before it that share its implicit one, which began after the last that
    // goes on.
    if !in_transaction && !goes_on {
        let shared = modes[..fails].iter().rev().take_while(|mode| **mode == OnError::Abort).count();
        // One that goes on has waited for those before it, and they were committed with that.
        became[fails - shared..fails].fill("undone");
    }
    let holds = |became: &[&str; 4]| (0..4).filter(|id| became[*id as usize] == "done").collect();
    let kept = if in_transaction && !goes_on { Vec::new() } else { holds(&became) };
    (became, kept)
}

fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "done",
        Outcome::Failed(_) => "failed",
        Outcome::Aborted { .. } => "aborted",
        Outcome::Undone { .. } => "undone",
        Outcome::Waiting(_) | Outcome::Taken => "no answer",
    }
}

fn run(client: &mut Client, work: Work, block: OnError, modes: Modes, in_transaction: bool, object: u32) {
    for fails in 0..4 {
        client.script("TRUNCATE kept").unwrap();
        if in_transaction {
            client.begin().unwrap();
        }
        let mut pipeline = client.pipeline(block).unwrap();
        let operations: Vec<_> = (0..4)
            .map(|at| {
                let own = (modes[at] != block).then_some(modes[at]);
                push(&mut pipeline, work, i32::try_from(at).unwrap(), at == fails, object, own)
            })
            .collect();
        let outcomes = pipeline.end().unwrap();
        let became: Vec<_> = operations.iter().map(|id| word(outcomes.get(*id).unwrap())).collect();
        let (wanted, kept) = expected(modes, fails, in_transaction);
        let place =
            format!("{work:?} {modes:?} in {block:?}, fails: {fails}, in a transaction: {in_transaction}");
        assert_eq!(became, wanted, "{place}");
        assert_eq!(kept_after(client, in_transaction), kept, "{place}");
    }
}

fn client_with_object() -> (Client, u32) {
    let mut client = Client::connect(&Server::shared().url()).unwrap();
    client.script(SETUP).unwrap();
    let object = client.create_large_object().unwrap();
    (client, object)
}

#[test]
fn every_kind_of_operation_fails_in_every_position_as_its_block_says() {
    for work in WORKS {
        let (mut client, object) = client_with_object();
        for in_transaction in [false, true] {
            for block in [OnError::Abort, OnError::Continue] {
                run(&mut client, work, block, [block; 4], in_transaction, object);
            }
        }
    }
}

#[test]
fn every_operation_may_have_its_own_word_in_every_position() {
    let (mut client, object) = client_with_object();
    for work in [Work::Insert, Work::Copy, Work::Portal, Work::LargeObject] {
        for in_transaction in [false, true] {
            for block in [OnError::Abort, OnError::Continue] {
                for bits in 0..16u8 {
                    let mode = |at: u8| if bits >> at & 1 == 1 { OnError::Continue } else { OnError::Abort };
                    run(&mut client, work, block, [0, 1, 2, 3].map(mode), in_transaction, object);
                }
            }
        }
    }
}

#[test]
fn the_fetch_of_a_portal_that_failed_fails_for_the_same_reason() {
    let (mut client, _) = client_with_object();
    for block in [OnError::Abort, OnError::Continue] {
        client.begin().unwrap();
        let mut pipeline = client.pipeline(block).unwrap();
        let request = Request {
            portal: "gone",
            row_limit: NonZeroU32::new(1),
            ..Request::new("SELECT * FROM pg_temp.keep($1)", &[&-1])
        };
        let opened = pipeline.push(&request, None).unwrap();
        let fetched = pipeline.fetch(&request, None).unwrap();
        let mut outcomes = pipeline.end().unwrap();
        assert_eq!(outcomes.take(opened).unwrap_err().sqlstate(), Some("23514"));
        match outcomes.take(fetched).unwrap_err() {
            Error::Aborted { by } => assert_eq!((by, block), (opened, OnError::Abort)),
            error => assert_eq!((error.sqlstate(), block), (Some("34000"), OnError::Continue)),
        }
        client.rollback().unwrap();
    }
}
