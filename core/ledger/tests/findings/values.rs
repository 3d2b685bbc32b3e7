//! OT009.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{CHILD, MILLISECOND, Traffic, found};

/// Values in no order.
fn values(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|number| 1_000 + (number * 37) % 101)
}

/// One query for each of so many values.
fn asked_one_by_one(count: u64, mut before_each: impl FnMut(&mut Traffic)) -> Traffic {
    let mut traffic = Traffic::new();
    for value in values(count) {
        before_each(&mut traffic);
        traffic.run(CHILD, &[value]);
    }
    traffic
}

#[test]
fn twelve_values_asked_one_by_one_need_one_trip() {
    let findings = asked_one_by_one(12, |_| {}).findings();
    assert_eq!(found(&findings), [(Code::OnePerValue, 11)]);
    assert_eq!(findings[0].evidence, Evidence::Values { distinct: 12, runs: 12 });
}

#[test]
fn values_that_are_asked_together_are_no_finding() {
    let mut traffic = Traffic::new();
    traffic.run("SELECT * FROM books WHERE author_id = ANY($1)", &[77]);
    assert_eq!(traffic.found(), []);
    let pipelined = asked_one_by_one(12, |traffic| traffic.shares = true);
    assert_eq!(pipelined.found(), []);
}

#[test]
fn nine_values_are_too_few() {
    assert_eq!(asked_one_by_one(9, |_| {}).found(), []);
}

#[test]
fn values_of_separate_requests_are_not_one_list() {
    let spread = asked_one_by_one(30, |traffic| traffic.think = 10 * MILLISECOND);
    assert_eq!(spread.found(), [], "time between them");
    let told_apart = asked_one_by_one(30, |traffic| traffic.request += 1);
    assert_eq!(told_apart.found(), [], "other requests");
}

#[test]
fn values_that_the_run_before_returned_are_a_chain() {
    let mut traffic = Traffic::new();
    for value in 0..20 {
        let page = [5_000 + value, 6_000 + value];
        traffic.list_of("SELECT id, parent FROM nodes WHERE id = $1", &[page[0]], &[page[0] + 1, page[1]]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn a_parameter_that_finds_no_rows_cannot_become_a_list() {
    let mut traffic = Traffic::new();
    for offset in values(20) {
        traffic.run("SELECT * FROM books WHERE shop = $1 ORDER BY id OFFSET $2", &[5, offset]);
    }
    assert_eq!(traffic.found(), []);
}
