//! What transactions see of each other is the same through a gateway with remedies as directly: the scenarios of
//! Hermitage, and histories of lists that are read in loops.
//!
//! `ONETRIP_HISTORIES=50` makes more histories.

mod anomalies;
mod common;
mod rig;

use std::collections::BTreeMap;

use anomalies::history::{Level, anomalies};
use anomalies::lists::{self, Load};
use anomalies::scenarios::{Answer, LEVELS, SCENARIOS, Scenario};
use common::client::Endpoint;
use common::server::Server;
use onetrip_ledger::{Mutes, Remedy};
use rig::run::{DEADLOCK_TIMEOUT, NO_INLINING, Place, run};
use rig::state::Observer;

/// Times that each scenario goes through the gateway: what it learns must not change the outcome.
const REPEATS: usize = 2;
/// Histories of each level and way.
const HISTORIES: u64 = 2;
/// Trips that must have been removed for the histories to have tested anything, for each transaction.
const REMOVED_MIN: [(&str, f64); 2] = [("begin", 0.9), ("loops", 0.03)];

fn isolation_server(version: &str) -> Server {
    Server::with_acts_template_and(&["--version", version, "--set", DEADLOCK_TIMEOUT, "--set", NO_INLINING])
}

/// One row of the outcome table.
fn outcome(
    scenario: &Scenario,
    level: &str,
    is_extended: bool,
    endpoint: &Endpoint,
    server: &Server,
) -> Vec<Answer> {
    const DATABASE: &str = "hermitage";
    let mut observer = Observer::open(&server.direct(), DATABASE);
    observer.rows("TRUNCATE test; INSERT INTO test VALUES (1, 10), (2, 20)");
    let place =
        Place { endpoint, direct: &server.direct(), database: DATABASE, is_pooled: false, spreads: None };
    scenario.answers(&run(&scenario.program(level, is_extended), &place, &mut observer, None))
}

fn assert_scenarios_are_equal(server: &Server) {
    server.psql("postgres", "CREATE DATABASE hermitage");
    server.psql("hermitage", "CREATE TABLE test (id int PRIMARY KEY, value int)");
    let gateway = server.remedied_gateway();
    let mut differences = Vec::new();
    for scenario in &SCENARIOS {
        for (strength, level) in LEVELS.into_iter().enumerate() {
            for is_extended in [false, true] {
                let run = |endpoint: &Endpoint| outcome(scenario, level, is_extended, endpoint, server);
                let direct = run(&server.direct());
                let allowed = strength < scenario.levels_allowing;
                if scenario.shows(&direct) != allowed {
                    differences.push(format!(
                        "{}, {level}: the published outcome is another: {direct:?}",
                        scenario.name
                    ));
                }
                for _ in 0..REPEATS {
                    let through = run(&gateway.endpoint());
                    if through != direct {
                        let name = scenario.name;
                        differences
                            .push(format!("{name}, {level}: {direct:?}\nthrough the gateway: {through:?}"));
                    }
                }
            }
        }
    }
    let removed = gateway.stop().analyzer.finish(&Mutes::default()).summary.removed.values().sum::<u64>();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(removed as usize > SCENARIOS.len() * LEVELS.len() * REPEATS, "only {removed} trips were removed");
}

#[test]
fn the_scenarios_of_hermitage_end_the_same_on_postgresql_15() {
    assert_scenarios_are_equal(&isolation_server("15"));
}

#[test]
fn the_scenarios_of_hermitage_end_the_same_on_postgresql_18() {
    assert_scenarios_are_equal(&isolation_server("18"));
}

fn assert_histories_have_no_anomalies(server: &Server) {
    const DATABASE: &str = "lists";
    let gateway = server.verified_gateway();
    let count = std::env::var("ONETRIP_HISTORIES").map_or(HISTORIES, |text| text.parse().expect("a number"));
    let mut committed = BTreeMap::new();
    let mut through = 0;
    for seed in 0..count {
        for (level, kept) in [("REPEATABLE READ", Level::Snapshot), ("READ COMMITTED", Level::ReadCommitted)]
        {
            for (way, endpoint) in [("direct", server.direct()), ("through the gateway", gateway.endpoint())]
            {
                server.psql("postgres", &format!("DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)"));
                server.psql("postgres", &format!("CREATE DATABASE {DATABASE}"));
                server.psql(DATABASE, &lists::schema());
                let load = Load { sessions: 6, transactions: 25, level, seed };
                let history = lists::record(load, &endpoint, DATABASE);
                let found = anomalies(&history, kept);
                assert!(found.is_empty(), "{way}, {level}, seed {seed}: {found:?}\n{history:?}");
                *committed.entry(way).or_insert(0) += history.iter().filter(|one| one.is_committed).count();
                through += if way == "direct" { 0 } else { history.len() };
            }
        }
    }
    let summary = gateway.stop().analyzer.finish(&Mutes::default()).summary;
    assert!(summary.verified > 0 && summary.differed == 0, "wrong answers: {:?}", summary.differences);
    let removed = summary.removed;
    println!("committed: {committed:?}; removed {removed:?} of {through} transactions");
    for (name, least) in REMOVED_MIN {
        let Ok(remedy) = name.parse::<Remedy>() else { continue };
        let is = removed.get(&remedy).copied().unwrap_or(0);
        assert!(is as f64 >= least * through as f64, "{name} removed {is} in {through} transactions");
    }
    assert!(committed.values().all(|committed| *committed * 4 > through), "too few committed: {committed:?}");
}

#[test]
fn histories_of_loops_have_no_anomalies_on_postgresql_15() {
    assert_histories_have_no_anomalies(&isolation_server("15"));
}

#[test]
fn histories_of_loops_have_no_anomalies_on_postgresql_18() {
    assert_histories_have_no_anomalies(&isolation_server("18"));
}
