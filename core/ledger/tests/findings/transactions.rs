//! OT006 and OT016.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{Traffic, found};

#[test]
fn a_transaction_of_one_statement_spends_two_trips_for_nothing() {
    let mut traffic = Traffic::new();
    for n in 0..10 {
        traffic.begin();
        traffic.run("SELECT * FROM books WHERE id = $1", &[100 - n]);
        traffic.commit();
    }
    let findings = traffic.findings();
    assert_eq!(found(&findings), [(Code::TransactionAlone, 20)]);
    assert_eq!(findings[0].evidence, Evidence::Alone { begins: 10, commits: 10, transactions: 10 });
}

const READS: [&str; 2] = ["SELECT count(*) FROM authors", "SELECT max(price) FROM books"];

/// Ten transactions: what each begins with, what it does, and how it ends.
fn ten_transactions(begin: &str, work: impl Fn(&mut Traffic), end: impl Fn(&mut Traffic)) -> Traffic {
    let mut traffic = Traffic::new();
    for _ in 0..10 {
        traffic.begin_as(begin);
        work(&mut traffic);
        end(&mut traffic);
    }
    traffic
}

fn two_reads(traffic: &mut Traffic) {
    READS.iter().for_each(|read| traffic.run(read, &[]));
}

#[test]
fn a_rollback_after_reads_only_is_counted_once_and_not_as_transaction_control() {
    let findings = ten_transactions("BEGIN", two_reads, Traffic::rollback).findings();
    let mut counted = found(&findings);
    counted.sort();
    assert_eq!(counted, [(Code::TransactionAlone, 10), (Code::RollbackOfRead, 10)]);
    let evidence = Evidence::CheckIns { rollbacks: 10, reads: 20 };
    assert!(findings.iter().any(|finding| finding.evidence == evidence));
}

#[test]
fn a_transaction_that_begins_by_itself_needs_no_rollback_after_reads_either() {
    let avoidable = |first: &str| {
        let mut traffic = Traffic::new();
        if !first.is_empty() {
            traffic.run(first, &[]);
        }
        for _ in 0..10 {
            traffic.begin_by_itself();
            two_reads(&mut traffic);
            traffic.rollback();
        }
        traffic.avoidable(Code::RollbackOfRead)
    };
    assert_eq!(avoidable("SET autocommit = 0"), 10);
    // Before its first statement that was seen, the first transaction may have written.
    assert_eq!(avoidable(""), 9);
}

#[test]
fn reads_in_autocommit_have_nothing_to_roll_back() {
    let mut traffic = Traffic::new();
    for id in 0..10 {
        traffic.run("SELECT * FROM authors WHERE id = $1", &[100 - id]);
        traffic.run("SELECT * FROM books WHERE id = $1", &[200 - id]);
    }
    assert_eq!(traffic.avoidable(Code::RollbackOfRead), 0);
}

#[test]
fn a_rollback_that_has_a_purpose_is_not_reported() {
    type Work = fn(&mut Traffic);
    let traps: [(&str, &str, Work); 6] = [
        ("BEGIN", "it undoes a write", |traffic| traffic.run("INSERT INTO log VALUES ($1)", &[5])),
        ("BEGIN", "the transaction failed", |traffic| traffic.fail("SELECT * FROM authors")),
        ("BEGIN", "it releases a lock", |traffic| traffic.run("SELECT * FROM authors FOR SHARE", &[])),
        ("BEGIN", "it undoes a setting", |traffic| {
            traffic.run("SELECT set_config($1, $2, true)", &[8, 9]);
        }),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", "its reads see one state", |_| {}),
        ("BEGIN", "a function may write", |traffic| traffic.run("SELECT refresh_prices()", &[])),
    ];
    for (begin, why, work) in traps {
        let traffic = ten_transactions(
            begin,
            |traffic| {
                two_reads(traffic);
                work(traffic);
            },
            Traffic::rollback,
        );
        assert_eq!(traffic.avoidable(Code::RollbackOfRead), 0, "{why}");
    }
    let committed = ten_transactions("BEGIN", two_reads, Traffic::commit);
    assert_eq!(committed.avoidable(Code::RollbackOfRead), 0, "it is a COMMIT");
}

#[test]
fn two_rollbacks_are_chance() {
    let mut traffic = Traffic::new();
    for _ in 0..2 {
        traffic.begin();
        two_reads(&mut traffic);
        traffic.rollback();
    }
    assert_eq!(traffic.found(), []);
}
