//! Whole reports beside the files in `golden/`. `UPDATE_GOLDEN=1 cargo test` writes them anew, to be looked at.

mod common;

use std::path::Path;

use common::page::story_prices;
use common::{calm, crowded, rules, story};
use onetrip_ledger::judge::{Allow, Limit, Measure, Rules, Ruling, Snapshot};
use onetrip_ledger::{Gaps, Refusal, ScopeTotals, Summary, TripTotals};
use onetrip_report::{Report, RunInfo, Screen, Style, json, junit, markdown, text};

fn expect(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name} differs");
}

#[test]
fn a_loop_is_told_in_one_sentence_with_its_proof_and_fix() {
    let summary = story();
    let run = RunInfo {
        command: vec!["python3".into(), "report.py".into(), "--month=last month".into()],
        exit_code: Some(0),
        trace: Some("run.trace".into()),
        pointed: vec!["PGHOST".into(), "PGPORT".into()],
        ..RunInfo::default()
    };
    let prices = story_prices();
    let report = Report { run: Some(&run), prices: Some(&prices), ..Report::new(&summary) };
    expect("story.txt", &text(&report, Style::Plain));
    expect("story-colored.txt", &text(&report, Style::Colored));
    expect("story.json", &json(&report));
}

#[test]
fn a_run_with_nothing_to_find_says_so_first() {
    expect("calm.txt", &text(&Report::new(&calm()), Style::Plain));
}

#[test]
fn everything_at_once_stays_in_order() {
    let summary = crowded();
    let before = Summary {
        trips: TripTotals { total: 31_000, connect: 144, may_share: 0 },
        findings: summary.findings[2..].to_vec(),
        templates: story().templates,
        ..summary.clone()
    };
    let judgement = rules(&before).judge(&summary);
    let run = RunInfo { command: vec!["./shop-test".into()], ..RunInfo::default() };
    let report = Report { run: Some(&run), judgement: Some(&judgement), ..Report::new(&summary) };
    assert_eq!(report.ruling(), Ruling::Failed);
    expect("crowded.txt", &text(&report, Style::Plain));
    expect("crowded.json", &json(&report));
    expect("crowded.xml", &junit(&report));
    expect("crowded.md", &markdown(&report));
}

#[test]
fn a_better_run_beside_an_earlier_one_has_no_worse_side() {
    let (before, now) = (story(), calm());
    let mut rules = rules(&before);
    rules.limits.truncate(3);
    rules.snapshot = Some(("trips.lock".into(), Snapshot::of(&now)));
    let judgement = rules.judge(&now);
    let report = Report { judgement: Some(&judgement), ..Report::new(&now) };
    assert_eq!(report.ruling(), Ruling::Passed);
    expect("better.txt", &text(&report, Style::Plain));
    expect("better.xml", &junit(&report));
    expect("better.md", &markdown(&report));
}

#[test]
fn a_program_that_never_came_is_told_how_to() {
    let run = RunInfo { command: vec!["./app".into()], exit_code: Some(3), ..RunInfo::default() };
    let summary = Summary { upstream: "/run/postgresql".into(), ..Summary::default() };
    let how = "Point the program at the gateway:\n  DATABASE_URL=postgres://127.0.0.1:40123/shop\n";
    let report = Report { run: Some(&run), how_to_connect: how, ..Report::new(&summary) };
    expect("unreached.txt", &text(&report, Style::Plain));
}

#[test]
fn a_run_that_was_not_seen_is_unjudged_in_every_format() {
    let refusal = Refusal {
        sqlstate: "28P01".into(),
        message: "password authentication failed for user \"shop\"".into(),
        sessions: 2,
    };
    let trips = TripTotals { total: 4, connect: 4, may_share: 0 };
    let refused = Summary { trips, connections: 2, refusals: vec![refusal], ..Summary::default() };
    let rules = Rules { limits: vec!["trips=200".parse().unwrap()], ..Rules::default() };
    let judgement = rules.judge(&refused);
    let run = RunInfo { command: vec!["./app".into()], exit_code: Some(0), ..RunInfo::default() };
    let prices = story_prices();
    let report = Report {
        run: Some(&run),
        judgement: Some(&judgement),
        prices: Some(&prices),
        ..Report::new(&refused)
    };
    assert_eq!(report.ruling(), Ruling::Unjudged);
    expect("refused.txt", &text(&report, Style::Plain));
    expect("refused.xml", &junit(&report));
    expect("refused.md", &markdown(&report));
    let json: serde_json::Value = serde_json::from_str(&json(&report)).unwrap();
    assert_eq!((&json["passed"], &json["ruling"]), (&false.into(), &"unjudged".into()));
    assert_eq!(json["forecast"], serde_json::Value::Null, "nothing was measured that could be priced");
    assert!(
        json["headline"]
            .as_str()
            .unwrap()
            .starts_with("Could not be judged. No session was opened: password")
    );
}

#[test]
fn a_table_of_tests_stands_where_the_runner_named_them() {
    let test = |name: &str, trips| ScopeTotals {
        label: format!("tests/test_shop.py::{name}"),
        trips,
        statements: trips,
        ..ScopeTotals::default()
    };
    let gaps =
        Gaps { is_open: true, tail_bytes: 7, cut_exchanges: 1, untold_statements: 2, ..Gaps::default() };
    let summary = Summary { scopes: vec![test("test_cart[a|b]", 15), test("test_pay", 4)], gaps, ..calm() };
    let run = RunInfo { has_tests: true, trace_error: Some("disk full".into()), ..RunInfo::default() };
    let scope = Some("tests/test_shop.py::test_pay".to_owned());
    let limits = vec![Limit { measure: Measure::Trips, most: 4, scope }];
    let rules = Rules { limits, allow: Allow { open: true, ..Allow::default() }, ..Rules::default() };
    let judgement = rules.judge(&summary);
    let report = Report { run: Some(&run), judgement: Some(&judgement), ..Report::new(&summary) };
    expect("tests.txt", &text(&report, Style::Plain));
    expect("tests.md", &markdown(&report));
}

#[test]
fn a_report_is_as_wide_as_its_screen() {
    let summary = crowded();
    let judgement = rules(&story()).judge(&summary);
    let prices = story_prices();
    let report = Report { judgement: Some(&judgement), prices: Some(&prices), ..Report::new(&summary) };
    for columns in [20, 60, 72, 80, 120, 200, 500] {
        let text = text(&report, Screen::new(Style::Plain, Some(columns)));
        let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let allowed = columns.clamp(60, 200);
        assert!(longest <= allowed, "{columns}: {longest} in\n{text}");
        assert!(text.contains("SELECT sku, amount"), "{columns}");
    }
    let lines = |columns| text(&report, Screen::new(Style::Plain, Some(columns))).lines().count();
    assert!(lines(60) > lines(100) && lines(100) > lines(200));
    assert_eq!(text(&report, Screen::new(Style::Plain, None)), text(&report, Style::Plain), "a file has 100");
}
