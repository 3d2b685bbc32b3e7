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
fn updates_have_advice_of_their_own() {
    let fix_of = |text: &str| {
        let mut traffic = Traffic::new();
        traffic.begin();
        for n in 0..20 {
            traffic.run(text, &[1000 + n]);
        }
        traffic.commit();
        traffic.findings()[0].fix.clone()
    };
    assert!(fix_of("INSERT INTO log VALUES ($1)").contains("multi-row VALUES"));
    for text in ["UPDATE log SET seen = true WHERE id = $1", "DELETE FROM log WHERE id = $1"] {
        let fix = fix_of(text);
        assert!(fix.contains("UPDATE or DELETE") && !fix.contains("INSERT"), "{fix}");
    }
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
fn statements_of_many_rows_are_batches() {
    for commits in [false, true] {
        for (rows, found) in [(3, 1), (9, 1), (10, 0), (1000, 0)] {
            let mut traffic = Traffic::new();
            traffic.begin();
            for n in 0..20 {
                traffic.run_for("INSERT INTO log VALUES ($1), ($2)", &[n, 1000 + n], rows);
                if commits {
                    traffic.commit();
                    traffic.begin();
                }
            }
            traffic.commit();
            let of_rows = |(code, _): &(Code, u64)| matches!(code, Code::RowByRow | Code::CommitPerRow);
            assert_eq!(traffic.found().iter().filter(|it| of_rows(it)).count(), found, "{rows} rows");
        }
    }
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
    traffic.think = 10 * MILLISECOND;
    for n in 0..50 {
        traffic.run("INSERT INTO log VALUES ($1)", &[1000 + n]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn single_rows_that_are_undone_each_time_are_no_loop() {
    let mut traffic = Traffic::new();
    for id in 0..10 {
        traffic.begin();
        traffic.run("INSERT INTO orders VALUES ($1)", &[id]);
        traffic.rollback();
    }
    assert!(
        traffic.findings().iter().all(|finding| !matches!(finding.code, Code::CommitPerRow | Code::RowByRow))
    );
    // Many rows of one transaction are, also if they are undone.
    let mut traffic = Traffic::new();
    traffic.begin();
    (0..10).for_each(|id| traffic.run("INSERT INTO orders VALUES ($1)", &[id]));
    traffic.rollback();
    assert_eq!(traffic.avoidable(Code::RowByRow), 9);
}

#[test]
fn rows_that_need_what_the_row_before_gave_back_cannot_be_written_at_once() {
    let mut chained = Traffic::new();
    let mut parallel = Traffic::new();
    for id in 100..110 {
        chained.value("INSERT INTO nodes (parent) VALUES ($1) RETURNING id", &[id], id + 1);
        parallel.value("INSERT INTO nodes (parent) VALUES ($1) RETURNING id", &[id], id + 500);
    }
    assert_eq!(chained.avoidable(Code::CommitPerRow), 0);
    assert_eq!(parallel.avoidable(Code::CommitPerRow), 9);
}
