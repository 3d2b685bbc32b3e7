//! What remedies would have removed of traffic that had none.

use std::collections::BTreeMap;

use onetrip_ledger::{Code, Remedy, Summary, Would};

use crate::traffic::{CHILD, MILLISECOND, Traffic};

const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ";

fn exact(trips: u64) -> Would {
    Would { exact: trips, isolated: 0 }
}

fn isolated(trips: u64) -> Would {
    Would { exact: 0, isolated: trips }
}

/// A list and a query for each of its rows.
fn walk(traffic: &mut Traffic, rows: u64) {
    let ids: Vec<u64> = (0..rows).map(|n| 1_000 + 7 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    ids.iter().for_each(|id| traffic.run(CHILD, &[*id]));
}

fn would(summary: &Summary, code: Code) -> Would {
    summary.findings.iter().find(|finding| finding.code == code).map_or(Would::default(), |found| found.would)
}

/// Transactions that begin so, each with a walk of so many rows.
fn walked(begin: &str, rows: &[u64]) -> Summary {
    let mut traffic = Traffic::new();
    for rows in rows {
        traffic.begin_as(begin);
        walk(&mut traffic, *rows);
        traffic.commit();
    }
    traffic.summary()
}

#[test]
fn begins_are_answered_and_ends_of_what_was_proven_before() {
    let of = |text: &str| {
        let mut traffic = Traffic::new();
        for n in 0..10 {
            traffic.begin();
            traffic.run(text, &[100 + n * n]);
            traffic.commit();
        }
        traffic.summary()
    };
    let reads = of("SELECT v FROM t WHERE id = $1");
    assert_eq!(reads.would, BTreeMap::from([(Remedy::Begin, exact(10)), (Remedy::Commit, exact(9))]));
    assert_eq!(would(&reads, Code::TransactionAlone), exact(19));
    assert_eq!(reads.would_remove(), exact(19));
    for text in [
        "SELECT v FROM t WHERE id = $1 FOR UPDATE",
        "SELECT price_of(v) FROM t WHERE id = $1",
        "SELECT relname FROM pg_class WHERE oid = $1",
        "UPDATE t SET v = 1 WHERE id = $1",
    ] {
        assert_eq!(of(text).would, BTreeMap::from([(Remedy::Begin, exact(10))]), "{text}");
    }
}

#[test]
fn a_server_that_is_slow_is_not_asked_what_ends_depend_on() {
    let mut traffic = Traffic::new();
    traffic.reply_after = 11 * MILLISECOND;
    for n in 0..10 {
        traffic.begin();
        traffic.run("SELECT v FROM t WHERE id = $1", &[100 + n * n]);
        traffic.commit();
    }
    assert_eq!(traffic.summary().would, BTreeMap::from([(Remedy::Begin, exact(10))]));
}

#[test]
fn a_loop_is_removed_in_one_snapshot_once_it_is_learned() {
    let loops = |begin: &str, rows: &[u64]| {
        let summary = walked(begin, rows);
        let of_loops = summary.would.get(&Remedy::Loops).copied().unwrap_or_default();
        assert_eq!(of_loops, would(&summary, Code::Loop));
        of_loops
    };
    assert_eq!(loops(REPEATABLE, &[40]), exact(17));
    assert_eq!(loops("BEGIN", &[40]), isolated(17));
    assert_eq!(loops(REPEATABLE, &[40, 40]), exact(17 + 36), "it is known by then");
    assert_eq!(loops(REPEATABLE, &[10]), Would::default(), "over before it is learned");
    assert_eq!(loops("BEGIN ISOLATION LEVEL SERIALIZABLE", &[40]), Would::default());
}

#[test]
fn nothing_is_removed_outside_of_transactions_or_after_a_write() {
    let mut outside = Traffic::new();
    walk(&mut outside, 40);
    assert_eq!(outside.summary().would, BTreeMap::new());
    let mut writing = Traffic::new();
    writing.begin_as(REPEATABLE);
    writing.run("INSERT INTO log (id) VALUES ($1)", &[5]);
    walk(&mut writing, 40);
    writing.commit();
    assert_eq!(writing.summary().would, BTreeMap::from([(Remedy::Begin, exact(1))]));
}

#[test]
fn a_repeated_read_is_answered_from_memory_in_one_snapshot() {
    let mut traffic = Traffic::new();
    for _ in 0..2 {
        traffic.begin_as(REPEATABLE);
        (0..6).for_each(|_| traffic.run("SELECT name FROM shops WHERE id = $1", &[4711]));
        traffic.commit();
    }
    let summary = traffic.summary();
    assert_eq!(would(&summary, Code::Repeated), exact(5), "in the second transaction");
    assert_eq!(summary.would.get(&Remedy::Repeats), Some(&exact(5)));
}

#[test]
fn a_statement_that_takes_as_long_as_the_way_is_not_guessed() {
    let mut traffic = Traffic::new();
    traffic.distance_us(2_000);
    traffic.begin_as(REPEATABLE);
    // Each trip takes a millisecond: all of it is the way.
    walk(&mut traffic, 40);
    traffic.commit();
    assert_eq!(would(&traffic.summary(), Code::Loop), exact(17));
    let mut traffic = Traffic::new();
    traffic.distance_us(500);
    traffic.begin_as(REPEATABLE);
    walk(&mut traffic, 40);
    traffic.commit();
    assert_eq!(would(&traffic.summary(), Code::Loop), Would::default());
    // One that is as slow as all the others together makes the average long.
    let mut traffic = Traffic::new();
    traffic.distance_us(1_000);
    traffic.begin_as(REPEATABLE);
    traffic.reply_after = 50 * MILLISECOND;
    traffic.run("SELECT sum(price) FROM books", &[]);
    traffic.reply_after = MILLISECOND;
    walk(&mut traffic, 40);
    traffic.commit();
    assert_eq!(would(&traffic.summary(), Code::Loop), Would::default());
}

#[test]
fn savepoints_are_answered_whose_names_are_no_keywords() {
    let of = |name: &str| {
        let mut traffic = Traffic::new();
        traffic.begin();
        traffic.run(&format!("SAVEPOINT {name}"), &[]);
        traffic.run("INSERT INTO log (id) VALUES ($1)", &[5]);
        traffic.run(&format!("RELEASE SAVEPOINT {name}"), &[]);
        traffic.commit();
        traffic.summary().would_remove()
    };
    assert_eq!(of("\"_pg3_1\""), exact(3));
    assert_eq!(of("s1"), exact(3));
    assert_eq!(of("work"), exact(1), "the BEGIN alone");
}

#[test]
fn where_remedies_were_on_nothing_would_be_removed() {
    let mut traffic = Traffic::new();
    traffic.begin_as(REPEATABLE);
    walk(&mut traffic, 40);
    traffic.think = MILLISECOND;
    traffic.remedy = Some(Remedy::Commit);
    traffic.commit();
    let summary = traffic.summary();
    assert_eq!(summary.would, BTreeMap::new());
    assert!(summary.findings.iter().all(|finding| finding.would.is_nothing()));
}
