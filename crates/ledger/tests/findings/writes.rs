//! OT002 and OT003.

use onetrip_ledger::Code;

use crate::traffic::{MILLISECOND, Traffic};

#[test]
fn rows_written_one_by_one_in_one_transaction() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for n in 0..20 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    traffic.commit();
    assert_eq!(traffic.found(), [(Code::RowByRow, 19)]);
}

#[test]
fn rows_that_commit_one_by_one_count_their_begin_and_commit_once() {
    let mut traffic = Traffic::new();
    for n in 0..20 {
        traffic.begin();
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
        traffic.commit();
    }
    assert_eq!(traffic.found(), [(Code::CommitPerRow, 57)]);
}

#[test]
fn four_rows_are_not_worth_a_batch() {
    let mut traffic = Traffic::new();
    for n in 0..4 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn the_same_row_again_is_a_retry() {
    let mut traffic = Traffic::new();
    for _ in 0..20 {
        traffic.run("UPDATE jobs SET taken = $1", &[5]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn requests_that_write_with_one_statement_are_no_loop() {
    let mut traffic = Traffic::new();
    for n in 0..50 {
        traffic.request_after(10 * MILLISECOND);
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    assert_eq!(traffic.avoidable(Code::CommitPerRow), 0);
}

/// Jobs of a queue, each done in a transaction of its own.
fn jobs(pick: &str) -> Traffic {
    let mut traffic = Traffic::new();
    for job in 0..12 {
        traffic.begin();
        traffic.value(pick, &[], 300 + job);
        traffic.run("UPDATE job SET state = 'done' WHERE id = $1", &[300 + job]);
        traffic.commit();
    }
    traffic
}

#[test]
fn a_worker_that_picks_jobs_from_a_queue_commits_each() {
    let next = "SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1";
    assert!(jobs(next).avoidable(Code::CommitPerRow) > 0);
    assert_eq!(jobs(&format!("{next} FOR UPDATE SKIP LOCKED")).avoidable(Code::CommitPerRow), 0);
}
