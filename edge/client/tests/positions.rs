//! An error in every position of every kind of pipeline, in a transaction and out of one: each outcome has to say what
//! the table says.

mod common;

use common::Server;
use onetrip_client::blocking::Client;
use onetrip_client::core::Request;
use onetrip_client::{OnError, OperationId, Outcome, TransactionStatus};

const OPERATIONS: i32 = 6;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// In the Parse of a statement of its own.
    Parse,
    /// In the Bind: a parameter that is no number.
    Bind,
    /// While it runs.
    Execute,
    /// When the operation is committed, which is in a transaction not before its end.
    Commit,
    /// In the data of a COPY.
    Copy,
}

const FAULTS: [Fault; 5] = [Fault::Parse, Fault::Bind, Fault::Execute, Fault::Commit, Fault::Copy];

/// A kind of pipeline.
#[derive(Debug, Clone, Copy)]
struct Way {
    on_error: OnError,
    in_transaction: bool,
    /// The statements have been prepared before.
    is_warm: bool,
    /// After each operation its answer is waited for.
    processes: bool,
}

fn ways() -> impl Iterator<Item = Way> {
    [OnError::Abort, OnError::Continue].into_iter().flat_map(|on_error| {
        (0..8).map(move |bits| Way {
            on_error,
            in_transaction: bits & 1 != 0,
            is_warm: bits & 2 != 0,
            processes: bits & 4 != 0,
        })
    })
}

fn fresh(server: &Server, parameters: &str) -> Client {
    let mut client = Client::connect(&format!("{}{parameters}", server.url())).unwrap();
    client
        .script(
            "CREATE TEMP TABLE kept (id int PRIMARY KEY CHECK (id >= 0),
             late int UNIQUE DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO kept VALUES (1000, 1000)",
        )
        .unwrap();
    client
}

const INSERT: &str = "INSERT INTO kept VALUES ($1, $2)";

/// Adds operation `id`, or the faulty one.
fn push(
    pipeline: &mut onetrip_client::blocking::Pipeline<'_>,
    id: i32,
    fault: Option<Fault>,
    on_error: Option<OnError>,
) -> OperationId {
    let request = |text, parameters| Request::new(text, parameters);
    match fault {
        None => pipeline.push(&request(INSERT, &[&id, &id]), on_error),
        Some(Fault::Parse) => pipeline.push(&request("INSERT INTO nowhere VALUES (1)", &[]), on_error),
        Some(Fault::Bind) => pipeline.push(&request(INSERT, &[&"none", &id]), on_error),
        Some(Fault::Execute) => pipeline.push(&request(INSERT, &[&-1, &id]), on_error),
        Some(Fault::Commit) => pipeline.push(&request(INSERT, &[&id, &1000]), on_error),
        Some(Fault::Copy) => {
            let text = "COPY kept FROM STDIN";
            pipeline.push(&Request { copy: Some(b"x\ty\n"), ..request(text, &[]) }, on_error)
        }
    }
    .unwrap()
}

fn ids(client: &mut Client) -> Vec<i32> {
    let mut rows = client.query("SELECT id FROM kept WHERE id < 1000 ORDER BY id", &[]).unwrap();
    let mut ids = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        ids.push(row.get(0).unwrap());
    }
    ids
}

/// Runs one pipeline and returns what became of the operations, and what is in the table at the end.
fn run(client: &mut Client, way: Way, fault: Fault, position: i32) -> (Vec<Outcome>, Vec<i32>) {
    if way.is_warm {
        client.begin().unwrap();
        client.execute(INSERT, &[&999, &999]).unwrap();
        client.rollback().unwrap();
    }
    if way.in_transaction {
        client.begin().unwrap();
    }
    let mut pipeline = client.pipeline(way.on_error).unwrap();
    let mut operations = Vec::new();
    for id in 0..OPERATIONS {
        operations.push(push(&mut pipeline, id, (id == position).then_some(fault), None));
        if way.processes {
            pipeline.process(operations[id as usize]).unwrap();
        }
    }
    let outcomes = pipeline.end().unwrap();
    let of = |id: &OperationId| outcomes.get(*id).unwrap().clone();
    let became = operations.iter().map(of).collect();
    if way.in_transaction {
        if client.transaction_status() == TransactionStatus::Active {
            // Deferred constraints speak here.
            let _ = client.commit();
        } else {
            client.rollback().unwrap();
        }
    }
    assert_eq!(client.transaction_status(), TransactionStatus::Idle);
    (became, ids(client))
}

fn check(way: Way, fault: Fault, position: i32, outcomes: &[Outcome], ids: &[i32]) {
    let place = format!("{way:?}, {fault:?} at {position}: {outcomes:?}, {ids:?}");
    let is_late = fault == Fault::Commit;
    if is_late && way.in_transaction {
        // Nobody can know before the commit, and the commit told.
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Outcome::Done(_))), "{place}");
        assert!(ids.is_empty(), "{place}");
        return;
    }
    for (id, outcome) in (0..).zip(outcomes) {
        match (way.on_error, id.cmp(&position)) {
            (_, std::cmp::Ordering::Equal) => assert!(matches!(outcome, Outcome::Failed(_)), "{id}: {place}"),
            (OnError::Continue, _) => assert!(matches!(outcome, Outcome::Done(_)), "{id}: {place}"),
            // The one commit of all of them has failed.
            (OnError::Abort, _) if is_late => assert!(matches!(outcome, Outcome::Failed(_)), "{id}: {place}"),
            (OnError::Abort, std::cmp::Ordering::Less) if way.in_transaction => {
                assert!(matches!(outcome, Outcome::Done(_)), "{id}: {place}");
            }
            (OnError::Abort, std::cmp::Ordering::Less) => {
                assert!(matches!(outcome, Outcome::Undone { .. }), "{id}: {place}");
            }
            (OnError::Abort, std::cmp::Ordering::Greater) => {
                assert!(matches!(outcome, Outcome::Aborted { .. }), "{id}: {place}");
            }
        }
    }
    let expected: Vec<i32> = match way.on_error {
        OnError::Continue => (0..OPERATIONS).filter(|id| *id != position).collect(),
        OnError::Abort => Vec::new(),
    };
    assert_eq!(ids, expected, "{place}");
}

fn every_position(server: &Server, parameters: &str) {
    for way in ways() {
        for fault in FAULTS {
            let mut client = fresh(server, parameters);
            for position in 0..OPERATIONS {
                let (outcomes, ids) = run(&mut client, way, fault, position);
                check(way, fault, position, &outcomes, &ids);
                client.script("TRUNCATE kept; INSERT INTO kept VALUES (1000, 1000)").unwrap();
            }
            let none = run(&mut client, way, fault, -1);
            assert_eq!(none.1, (0..OPERATIONS).collect::<Vec<_>>(), "{way:?} without a fault");
        }
    }
}

#[test]
fn outcomes_are_true_wherever_an_error_happens() {
    every_position(Server::shared(), "");
}

#[test]
fn outcomes_are_true_without_a_statement_cache() {
    every_position(Server::shared(), "&statement_cache=0");
}

#[test]
fn outcomes_are_true_with_a_cache_too_small_for_the_statements() {
    every_position(Server::shared(), "&statement_cache=1");
}

#[test]
fn outcomes_are_true_on_postgresql_18() {
    every_position(&Server::start(&["--version", "18", "--auth", "trust"]), "&max_protocol_version=3.2");
}

#[test]
fn an_operation_may_differ_from_its_block() {
    for in_transaction in [false, true] {
        for own in [OnError::Abort, OnError::Continue] {
            let block = if own == OnError::Abort { OnError::Continue } else { OnError::Abort };
            let mut client = fresh(Server::shared(), "");
            if in_transaction {
                client.begin().unwrap();
            }
            let mut pipeline = client.pipeline(block).unwrap();
            let first = push(&mut pipeline, 0, None, None);
            let different = push(&mut pipeline, 1, Some(Fault::Execute), Some(own));
            let after = push(&mut pipeline, 2, None, None);
            let last = push(&mut pipeline, 3, None, None);
            let mut outcomes = pipeline.end().unwrap();
            let place = format!("{own:?} in {block:?}, in a transaction: {in_transaction}");
            assert!(outcomes.take(first).is_ok(), "{place}");
            assert_eq!(outcomes.take(different).unwrap_err().sqlstate(), Some("23514"), "{place}");
            for later in [after, last] {
                let outcome = outcomes.get(later).unwrap();
                match own {
                    OnError::Continue => assert!(matches!(outcome, Outcome::Done(_)), "{place}: {outcome:?}"),
                    OnError::Abort => {
                        assert!(
                            matches!(outcome, Outcome::Aborted { by } if *by == different),
                            "{place}: {outcome:?}"
                        );
                    }
                }
            }
            if in_transaction && client.commit().is_err() {
                continue; // a transaction with a failed statement that nobody shielded
            }
            let expected = if own == OnError::Continue { vec![0, 2, 3] } else { vec![0] };
            assert_eq!(ids(&mut client), expected, "{place}");
        }
    }
}

#[test]
fn transactions_begin_and_end_within_a_block() {
    for on_error in [OnError::Abort, OnError::Continue] {
        let mut client = fresh(Server::shared(), "");
        let mut pipeline = client.pipeline(on_error).unwrap();
        let before = push(&mut pipeline, 0, None, None);
        let begin = pipeline.begin().unwrap();
        let first = push(&mut pipeline, 1, None, None);
        let commit = pipeline.commit().unwrap();
        pipeline.begin().unwrap();
        push(&mut pipeline, 2, None, None);
        let rollback = pipeline.rollback().unwrap();
        let after = push(&mut pipeline, 3, None, None);
        let failing = push(&mut pipeline, 4, Some(Fault::Execute), None);
        let last = push(&mut pipeline, 5, None, None);
        let mut outcomes = pipeline.end().unwrap();
        for operation in [before, begin, first, commit, rollback] {
            assert!(outcomes.take(operation).is_ok(), "{on_error:?} {operation}");
        }
        assert!(outcomes.take(failing).is_err());
        let (after, last) = (outcomes.take(after), outcomes.take(last));
        match on_error {
            OnError::Abort => {
                assert!(after.is_err() && last.is_err());
                assert_eq!(ids(&mut client), [0, 1], "the transaction before the failure stays");
            }
            OnError::Continue => {
                assert!(after.is_ok() && last.is_ok());
                assert_eq!(ids(&mut client), [0, 1, 3, 5]);
            }
        }
    }
}

#[test]
fn a_block_in_a_failed_transaction_runs_nothing_and_says_so() {
    for on_error in [OnError::Abort, OnError::Continue] {
        let mut client = fresh(Server::shared(), "");
        client.begin().unwrap();
        client.execute("SELECT 1/0", &[]).unwrap_err();
        let mut pipeline = client.pipeline(on_error).unwrap();
        let first = push(&mut pipeline, 0, None, None);
        let second = push(&mut pipeline, 1, None, None);
        let mut outcomes = pipeline.end().unwrap();
        assert_eq!(outcomes.take(first).unwrap_err().sqlstate(), Some("25P02"), "{on_error:?}");
        assert!(
            matches!(outcomes.get(second), Some(Outcome::Aborted { by }) if *by == first),
            "{on_error:?}"
        );
        client.rollback().unwrap();
        assert!(ids(&mut client).is_empty());
    }
}

#[test]
fn shielded_operations_leave_no_savepoint_behind() {
    let mut client = fresh(Server::shared(), "");
    client.begin().unwrap();
    for _ in 0..2 {
        let mut pipeline = client.pipeline(OnError::Continue).unwrap();
        for id in 0..3 {
            push(&mut pipeline, id, Some(Fault::Execute), None);
        }
        pipeline.end().unwrap();
        assert_eq!(client.transaction_status(), TransactionStatus::Active);
    }
    let error = client.execute("RELEASE SAVEPOINT onetrip_pipeline", &[]).unwrap_err();
    assert_eq!(error.sqlstate(), Some("3B001"));
}
