//! OT011.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{Traffic, found};

/// So many requests, each with one statement of work behind what `before` sends.
fn requests(count: u64, before: impl Fn(&mut Traffic)) -> Traffic {
    let mut traffic = Traffic::new();
    for number in 0..count {
        before(&mut traffic);
        traffic.shares = false;
        traffic.run("UPDATE visits SET count = count + 1 WHERE page = $1", &[30 + number % 2]);
    }
    traffic
}

#[test]
fn pings_settings_and_repeated_look_ups_are_findings_of_their_own() {
    let counted = |text: &str| requests(10, |traffic| traffic.run(text, &[])).avoidable(Code::SessionChatter);
    for ping in ["", "SELECT 1"] {
        assert_eq!(counted(ping), 10, "{ping}");
    }
    for setting in ["SET search_path TO shop", "SHOW transaction_isolation", "RESET ALL", "DISCARD ALL"] {
        assert_eq!(counted(setting), 10, "{setting}");
    }
    assert_eq!(counted("SELECT oid FROM pg_type WHERE typname = 'hstore'"), 9, "the first has a purpose");
    let mixed = requests(10, |traffic| {
        traffic.run("SELECT 1", &[]);
        traffic.run("SET search_path TO shop", &[]);
    });
    let findings = mixed.findings();
    let chatter: Vec<_> =
        findings.into_iter().filter(|finding| finding.code == Code::SessionChatter).collect();
    assert_eq!(found(&chatter), [(Code::SessionChatter, 10), (Code::SessionChatter, 10)]);
    let evidence = |pings, settings| Evidence::Chatter { pings, settings, lookups: 0 };
    assert!(
        [evidence(10, 0), evidence(0, 10)]
            .iter()
            .all(|wanted| { chatter.iter().any(|finding| finding.evidence == *wanted) })
    );
}

#[test]
fn work_without_chatter_is_no_finding() {
    assert_eq!(requests(10, |_| {}).avoidable(Code::SessionChatter), 0);
}

#[test]
fn four_pings_are_not_worth_a_word() {
    assert_eq!(requests(4, |traffic| traffic.run("SELECT 1", &[])).avoidable(Code::SessionChatter), 0);
}

#[test]
fn what_only_looks_like_chatter_is_not_reported() {
    let silent = |text: &str, why: &str| {
        let traffic = requests(10, |traffic| traffic.run(text, &[]));
        assert_eq!(traffic.avoidable(Code::SessionChatter), 0, "{why}");
    };
    silent("SET onetrip.scope = 'job'", "it labels work for the report");
    silent("SELECT now()", "its answer changes");
    silent("SELECT pg_advisory_lock(5)", "it takes a lock");
    silent("SELECT state FROM pg_stat_activity", "what the server does right now is work");
    silent("SET search_path TO shop; SELECT * FROM orders", "it also reads");
}

#[test]
fn chatter_that_shares_a_trip_or_only_prepares_costs_none() {
    let shared = requests(10, |traffic| {
        traffic.run("UPDATE visits SET count = 0 WHERE page = $1", &[9]);
        traffic.shares = true;
        traffic.run("SELECT 1", &[]);
    });
    assert_eq!(shared.avoidable(Code::SessionChatter), 0);
    let prepared = requests(10, |traffic| traffic.prepare("SELECT 1"));
    assert_eq!(prepared.avoidable(Code::SessionChatter), 0);
}

#[test]
fn the_first_look_up_of_each_kind_has_a_purpose() {
    let mut traffic = Traffic::new();
    for number in 0..10 {
        traffic.run(&format!("SELECT oid, typname FROM pg_type WHERE typlen = {number}"), &[]);
    }
    assert_eq!(traffic.avoidable(Code::SessionChatter), 0);
}
