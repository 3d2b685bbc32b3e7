//! OT011.

use onetrip_ledger::{Analyzer, Code, Evidence, Mutes};

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

#[test]
fn a_look_up_is_avoidable_only_if_its_answer_is_the_one_before() {
    let counted = |ask: &dyn Fn(&mut Traffic, u64)| {
        let mut traffic = Traffic::new();
        (0..10).for_each(|number| ask(&mut traffic, number));
        traffic.avoidable(Code::SessionChatter)
    };
    let database = "select database()";
    let columns = "SELECT column_name FROM information_schema.columns WHERE table_name = $1";
    assert_eq!(counted(&|traffic, _| traffic.answered(database, &[], (1, 8))), 9);
    assert_eq!(counted(&|traffic, _| traffic.answered("SHOW TABLES", &[], (0, 0))), 9, "none, each time");
    let silent = |why: &str, ask: &dyn Fn(&mut Traffic, u64)| assert_eq!(counted(ask), 0, "{why}");
    silent("the database changes", &|traffic, number| {
        traffic.answered(database, &[], (1, 8 + 2 * (number % 2)));
    });
    silent("each is of another table", &|traffic, number| {
        traffic.answered(columns, &[number], (1, 8));
    });
    silent("nothing is known of the answer", &|traffic, _| traffic.answered(database, &[], (1, 0)));
}

#[test]
fn each_connection_may_look_up_for_itself() {
    let mut analyzer = Analyzer::new();
    for stream in 1..=10 {
        let mut traffic = Traffic::new();
        (0..2).for_each(|_| traffic.answered("SELECT version()", &[], (1, 8)));
        analyzer.block(stream, &traffic.block()).unwrap();
    }
    let findings = analyzer.finish(&Mutes::default()).summary.findings;
    assert_eq!(found(&findings), [(Code::SessionChatter, 10)], "the second of each is avoidable");
}

#[test]
fn what_other_sessions_see_is_set_by_work() {
    for text in
        ["SET GLOBAL max_connections = $1", "SET PASSWORD FOR ann = $1", "SET DEFAULT ROLE reader FOR ann"]
    {
        let traffic = requests(10, |traffic| traffic.run(text, &[5]));
        assert_eq!(traffic.avoidable(Code::SessionChatter), 0, "{text}");
    }
}
