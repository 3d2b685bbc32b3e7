//! OT007.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{Traffic, found};

const COUNTRY: &str = "SELECT name FROM country WHERE iso = $1";

/// Runs of one statement, prepared before every so many of them.
fn runs(count: u64, per_prepare: u64) -> Traffic {
    let mut traffic = Traffic::new();
    for number in 0..count {
        if number % per_prepare == 0 {
            traffic.prepare(COUNTRY);
        }
        traffic.run(COUNTRY, &[(number * 7) % 5]);
    }
    traffic
}

#[test]
fn all_trips_that_only_prepare_but_the_first_are_avoidable() {
    let findings = runs(9, 1).findings();
    assert_eq!(found(&findings), [(Code::PreparePerRun, 8)]);
    assert_eq!(findings[0].evidence, Evidence::Prepares { prepares: 9, runs: 9 });
}

#[test]
fn a_statement_that_stays_prepared_is_no_finding() {
    assert_eq!(runs(9, 9).found(), []);
    assert_eq!(runs(9, 5).found(), [], "twice is chance");
}

#[test]
fn a_prepare_whose_statement_shares_its_trip_is_no_trip_for_preparing() {
    let mut traffic = Traffic::new();
    for number in 0..9 {
        traffic.shares = false;
        traffic.prepare(COUNTRY);
        traffic.shares = true;
        traffic.run(COUNTRY, &[(number * 7) % 5]);
    }
    assert_eq!(traffic.avoidable(Code::PreparePerRun), 0);
}

#[test]
fn preparing_different_statements_is_no_finding() {
    let mut traffic = Traffic::new();
    for number in 0..9 {
        traffic.prepare(&format!("SELECT a{number} FROM country WHERE iso = $1"));
    }
    assert_eq!(traffic.found(), []);
}
