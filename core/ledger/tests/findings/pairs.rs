//! OT013, OT014 and OT015: two statements that one replaces.

use onetrip_ledger::Code;

use crate::traffic::{MILLISECOND, Traffic};

#[test]
fn no_trip_is_avoidable_twice() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..20).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM accounts", &ids);
    for id in &ids {
        traffic.begin();
        traffic.run("SELECT balance FROM accounts WHERE id = $1", &[*id]);
        traffic.run("UPDATE accounts SET balance = $1 WHERE id = $2", &[7, *id]);
        traffic.commit();
    }
    let summary = traffic.summary();
    let avoidable: u64 = summary.findings.iter().map(|finding| finding.avoidable).sum();
    assert!(avoidable <= summary.trips.total, "{avoidable} of {}", summary.trips.total);
}

const READ: &str = "SELECT balance FROM accounts WHERE id = $1 FOR UPDATE";
const WRITE: &str = "UPDATE accounts SET balance = $1 WHERE id = $2";
const NEXT: &str = "SELECT nextval('tickets_id_seq')";
const TICKET: &str = "INSERT INTO tickets (id, note) VALUES ($1, $2)";
const LOOK_UP: &str = "SELECT id FROM tags WHERE name = $1";
const TAG: &str = "INSERT INTO tags (name) VALUES ($1)";

/// The same so often, in one transaction, each time with another number.
fn times(count: u64, mut work: impl FnMut(&mut Traffic, u64)) -> Traffic {
    let mut traffic = Traffic::new();
    traffic.begin();
    for number in 0..count {
        work(&mut traffic, number);
    }
    traffic.commit();
    traffic
}

#[test]
fn a_row_that_is_read_and_then_written_by_the_same_key_is_a_pair() {
    let updated = times(5, |traffic, number| {
        traffic.run(READ, &[900 - number]);
        traffic.run(WRITE, &[7, 900 - number]);
    });
    assert_eq!(updated.avoidable(Code::ReadBeforeWrite), 5);
    let deleted = times(5, |traffic, number| {
        traffic.run("SELECT state FROM jobs WHERE id = $1", &[900 - number]);
        traffic.run("DELETE FROM jobs WHERE id = $1", &[900 - number]);
    });
    assert_eq!(deleted.avoidable(Code::ReadBeforeWrite), 5);
}

#[test]
fn a_row_that_is_changed_at_once_is_no_pair() {
    let fixed = times(5, |traffic, number| {
        traffic
            .run("UPDATE accounts SET balance = balance + $1 WHERE id = $2 RETURNING balance", &[7, number]);
    });
    assert_eq!(fixed.avoidable(Code::ReadBeforeWrite), 0);
}

#[test]
fn a_read_that_is_not_for_the_write_behind_it_is_no_pair() {
    let silent = |why: &str, count: u64, work: fn(&mut Traffic, u64)| {
        assert_eq!(times(count, work).avoidable(Code::ReadBeforeWrite), 0, "{why}");
    };
    silent("another row is written", 5, |traffic, number| {
        traffic.run(READ, &[900 - number]);
        traffic.run(WRITE, &[7, 901 - number]);
    });
    silent("another table is written", 5, |traffic, number| {
        traffic.run(READ, &[900 - number]);
        traffic.run("UPDATE tills SET balance = $1 WHERE id = $2", &[7, 900 - number]);
    });
    silent("no row was read", 5, |traffic, number| {
        traffic.run_for(READ, &[900 - number], 0);
        traffic.run(WRITE, &[7, 900 - number]);
    });
    silent("several rows were read", 5, |traffic, number| {
        traffic.run_for("SELECT id FROM accounts WHERE owner = $1", &[900 - number], 3);
        traffic.run("UPDATE accounts SET balance = $1 WHERE owner = $2", &[7, 900 - number]);
    });
    silent("something else was done in between", 5, |traffic, number| {
        traffic.run(READ, &[900 - number]);
        traffic.run("SELECT rate FROM rates WHERE id = $1", &[number]);
        traffic.run(WRITE, &[7, 900 - number]);
    });
    silent("twice is chance", 2, |traffic, number| {
        traffic.run(READ, &[900 - number]);
        traffic.run(WRITE, &[7, 900 - number]);
    });
    silent("the write belongs to another request", 5, |traffic, number| {
        traffic.request = 2 * number + 1;
        traffic.run(READ, &[900 - number]);
        traffic.request += 1;
        traffic.run(WRITE, &[7, 900 - number]);
    });
}

#[test]
fn a_row_that_a_person_may_have_looked_at_is_no_pair() {
    let mut traffic = Traffic::new();
    for number in 0..5 {
        traffic.run(READ, &[900 - number]);
        traffic.think = 10 * MILLISECOND;
        traffic.run(WRITE, &[7, 900 - number]);
        traffic.think = MILLISECOND / 10;
    }
    assert_eq!(traffic.avoidable(Code::ReadBeforeWrite), 0);
    let mut traffic = Traffic::new();
    for number in 0..5 {
        traffic.run(READ, &[900 - number]);
        traffic.think = 10 * MILLISECOND;
        traffic.begin();
        traffic.think = MILLISECOND / 10;
        traffic.run(WRITE, &[7, 900 - number]);
        traffic.commit();
    }
    assert_eq!(traffic.avoidable(Code::ReadBeforeWrite), 0);
}

#[test]
fn a_value_of_a_sequence_that_is_inserted_next_is_a_pair() {
    let bad = times(5, |traffic, number| {
        traffic.value(NEXT, &[], 4_000 + number);
        traffic.run(TICKET, &[4_000 + number, 77 - number]);
    });
    assert_eq!(bad.avoidable(Code::SequenceTrip), 5);
    let fixed = times(5, |traffic, number| {
        traffic.value("INSERT INTO tickets (note) VALUES ($1) RETURNING id", &[77 - number], 4_000 + number);
    });
    assert_eq!(fixed.avoidable(Code::SequenceTrip), 0);
}

#[test]
fn values_of_sequences_that_a_default_could_not_replace_are_no_pairs() {
    let silent = |why: &str, count: u64, work: fn(&mut Traffic, u64)| {
        assert_eq!(times(count, work).avoidable(Code::SequenceTrip), 0, "{why}");
    };
    silent("no row got the value", 5, |traffic, number| {
        traffic.value(NEXT, &[], 4_000 + number);
        traffic.run(TICKET, &[9_000 + number, 77]);
    });
    silent("the value went into an UPDATE", 5, |traffic, number| {
        traffic.value(NEXT, &[], 4_000 + number);
        traffic.run("UPDATE counters SET value = $1", &[4_000 + number]);
    });
    silent("each value serves ten rows", 50, |traffic, number| {
        if number % 10 == 0 {
            traffic.value(NEXT, &[], 4_000 + number);
        }
        traffic.run(TICKET, &[4_000 + number, 77 - number]);
    });
    silent("many values came in one trip", 5, |traffic, number| {
        let ids: Vec<u64> = (0..10).map(|id| 4_000 + 10 * number + id).collect();
        traffic.list("SELECT nextval('tickets_id_seq') FROM generate_series(1, 10)", &ids);
        traffic.run(TICKET, &[ids[0], 77 - number]);
    });
    silent("twice is chance", 2, |traffic, number| {
        traffic.value(NEXT, &[], 4_000 + number);
        traffic.run(TICKET, &[4_000 + number, 77 - number]);
    });
}

#[test]
fn a_row_that_is_looked_for_not_found_and_inserted_is_a_pair() {
    let bad = times(5, |traffic, number| {
        traffic.run_for(LOOK_UP, &[600 - number], 0);
        traffic.run(TAG, &[600 - number]);
    });
    assert_eq!(bad.avoidable(Code::ExistsThenInsert), 5);
    let fixed = times(5, |traffic, number| {
        traffic.run("INSERT INTO tags (name) VALUES ($1) ON CONFLICT DO NOTHING", &[600 - number]);
    });
    assert_eq!(fixed.avoidable(Code::ExistsThenInsert), 0);
}

#[test]
fn a_look_up_that_the_insert_does_not_repeat_is_no_pair() {
    let silent = |why: &str, count: u64, work: fn(&mut Traffic, u64)| {
        assert_eq!(times(count, work).avoidable(Code::ExistsThenInsert), 0, "{why}");
    };
    silent("the row was there", 5, |traffic, number| {
        traffic.run_for(LOOK_UP, &[600 - number], 1);
        traffic.run(TAG, &[600 - number]);
    });
    silent("another table is filled", 5, |traffic, number| {
        traffic.run_for("SELECT id FROM banned WHERE name = $1", &[600 - number], 0);
        traffic.run(TAG, &[600 - number]);
    });
    silent("another value is inserted", 5, |traffic, number| {
        traffic.run_for(LOOK_UP, &[600 - number], 0);
        traffic.run(TAG, &[700 - number]);
    });
    silent("something else was written in between", 5, |traffic, number| {
        traffic.run_for(LOOK_UP, &[600 - number], 0);
        traffic.run("INSERT INTO log (message) VALUES ($1)", &[number]);
        traffic.run(TAG, &[600 - number]);
    });
    silent("twice is chance", 2, |traffic, number| {
        traffic.run_for(LOOK_UP, &[600 - number], 0);
        traffic.run(TAG, &[600 - number]);
    });
}

const TAKE: &str = "SELECT id FROM job WHERE state = $1 ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED";
const DONE: &str = "UPDATE job SET state = $1 WHERE id = $2";

/// A worker that takes so many jobs, each in a transaction of its own; `work` is done for each.
fn worker(jobs: u64, mut work: impl FnMut(&mut Traffic, u64)) -> Traffic {
    let mut traffic = Traffic::new();
    for job in 0..jobs {
        traffic.begin();
        traffic.list_of(TAKE, &[5, 1], &[900 + job]);
        work(&mut traffic, 900 + job);
        traffic.commit();
    }
    traffic
}

#[test]
fn a_worker_that_takes_jobs_one_by_one_has_its_own_advice() {
    let findings = worker(12, |traffic, job| traffic.run(DONE, &[6, job])).findings();
    let pair = findings.iter().find(|finding| finding.code == Code::ReadBeforeWrite).expect("it is there");
    assert_eq!(pair.avoidable, 12);
    assert!(pair.fix.contains("SKIP LOCKED"), "{}", pair.fix);
    let codes: Vec<Code> = findings.iter().map(|finding| finding.code).collect();
    assert!(!codes.contains(&Code::CommitPerRow), "jobs are no rows of one import: {codes:?}");
}

#[test]
fn a_worker_that_works_on_its_job_has_no_pair() {
    let working = |traffic: &mut Traffic, job: u64| {
        traffic.run("SELECT payload FROM payloads WHERE job = $1", &[job]);
        traffic.run("INSERT INTO results (job, value) VALUES ($1, $2)", &[job, 3 * job]);
        traffic.run(DONE, &[6, job]);
    };
    let codes = |traffic: Traffic| -> Vec<Code> { traffic.found().iter().map(|found| found.0).collect() };
    let found = codes(worker(12, working));
    let wrong = [Code::ReadBeforeWrite, Code::CommitPerRow, Code::RowByRow];
    assert!(wrong.iter().all(|code| !found.contains(code)), "{found:?}");
    let other = codes(worker(12, |traffic, job| traffic.run(DONE, &[6, job + 1])));
    assert!(wrong.iter().all(|code| !other.contains(code)), "another job is changed: {other:?}");
}

#[test]
fn what_a_worker_writes_row_by_row_for_one_job_is_found() {
    let importing = |traffic: &mut Traffic, job: u64| {
        for row in 0..20 {
            traffic.run("INSERT INTO results (job, value) VALUES ($1, $2)", &[job, 31 * row]);
        }
    };
    assert_eq!(worker(2, importing).avoidable(Code::RowByRow), 2 * 19);
}

/// A trip is one finding's, and so is the line of the program that sent it.
#[test]
fn an_exchange_that_becomes_a_pairs_is_no_spot_of_one_query_per_value_any_more() {
    const LOOKED_AT: &str = "SELECT state FROM jobs WHERE id = $1";
    let mut traffic = Traffic::new();
    traffic.begin();
    for round in 0..4 {
        for number in 0..12 {
            traffic.run(LOOKED_AT, &[5000 + 37 * (12 * round + number)]);
        }
        traffic.run("DELETE FROM jobs WHERE id = $1", &[5000 + 37 * (12 * round + 11)]);
    }
    traffic.commit();
    let summary = traffic.summary();
    let of = |code: Code| summary.findings.iter().find(|finding| finding.code == code).expect("it is found");
    let (values, pairs) = (of(Code::OnePerValue), of(Code::ReadBeforeWrite));
    assert_eq!((values.trips, pairs.trips), (44, 4));
    assert_eq!(pairs.spots.len(), 4);
    assert!(pairs.spots.iter().all(|spot| !values.spots.contains(spot)), "{:?}", values.spots);
}

/// As TypeORM's `save()` writes it.
#[test]
fn a_list_of_one_value_is_a_comparison() {
    let avoidable = |read: &str, write: &str, rows: u64, code: Code| {
        let mut traffic = Traffic::new();
        for n in 0..4 {
            traffic.run_for(read, &[50_000 + n], rows);
            traffic.begin_as("START TRANSACTION");
            traffic.run(write, &[50_000 + n, 7]);
            traffic.commit();
        }
        traffic.avoidable(code)
    };
    let one = r#"SELECT "a"."id" AS "a_id" FROM "accounts" "a" WHERE "a"."id" IN ($1)"#;
    let change = r#"UPDATE "accounts" SET "balance" = $2 WHERE "id" IN ($1)"#;
    let insert = r#"INSERT INTO "accounts"("id", "balance") VALUES ($1, $2)"#;
    assert_eq!(avoidable(one, change, 1, Code::ReadBeforeWrite), 4);
    assert_eq!(avoidable(one, insert, 0, Code::ExistsThenInsert), 4);
    let many = r#"SELECT "a"."id" AS "a_id" FROM "accounts" "a" WHERE "a"."id" IN ($1, ...)"#;
    assert_eq!(avoidable(many, change, 1, Code::ReadBeforeWrite), 0);
}
