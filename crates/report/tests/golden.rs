//! Whole reports beside the files in `golden/`. `UPDATE_GOLDEN=1 cargo test` writes them anew, to be looked at.

mod common;

use std::path::Path;

use common::page::story_prices;
use common::{calm, crowded, story};
use onetrip_ledger::budget::{Limit, Verdict};
use onetrip_ledger::compare::Comparison;
use onetrip_ledger::{Code, Summary, TripTotals};
use onetrip_report::{Report, RunInfo, Style};

fn expect(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name} differs");
}

fn verdicts(summary: &Summary) -> Vec<Verdict> {
    let mut limits: Vec<Limit> =
        ["trips=200", "OT003=0", "work-trips=50000"].map(|text| text.parse().unwrap()).into();
    limits.push(Limit { scope: Some("orders/list".into()), ..limits[0].clone() });
    limits.iter().map(|limit| limit.judge(summary)).collect()
}

#[test]
fn a_loop_is_told_in_one_sentence_with_its_proof_and_fix() {
    let summary = story();
    let run = RunInfo {
        command: vec!["python3".into(), "report.py".into(), "--month=last month".into()],
        exit_code: Some(0),
        trace: Some("run.trace".into()),
        pointed: vec!["PGHOST".into(), "PGPORT".into()],
        redirected: None,
    };
    let prices = story_prices();
    let report = Report { run: Some(&run), prices: Some(&prices), ..Report::new(&summary) };
    expect("story.txt", &report.text(Style::Plain));
    expect("story-colored.txt", &report.text(Style::Colored));
    expect("story.json", &report.json());
}

#[test]
fn a_run_with_nothing_to_find_says_so_first() {
    expect("calm.txt", &Report::new(&calm()).text(Style::Plain));
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
    let comparison = Comparison::new(&before, &summary);
    let verdicts = verdicts(&summary);
    let run =
        RunInfo { command: vec!["./shop-test".into()], exit_code: None, trace: None, ..RunInfo::default() };
    let report = Report {
        run: Some(&run),
        verdicts: &verdicts,
        fail_on: &[Code::Loop, Code::TinyFetch],
        comparison: Some(&comparison),
        ..Report::new(&summary)
    };
    expect("crowded.txt", &report.text(Style::Plain));
    expect("crowded.json", &report.json());
    expect("crowded.xml", &report.junit());
}

#[test]
fn a_better_run_beside_an_earlier_one_has_no_worse_side() {
    let (before, now) = (story(), calm());
    let comparison = Comparison::new(&before, &now);
    let verdicts = verdicts(&now);
    let report = Report {
        verdicts: &verdicts,
        fail_on: &[Code::Loop],
        comparison: Some(&comparison),
        ..Report::new(&now)
    };
    assert!(report.is_passed());
    expect("better.txt", &report.text(Style::Plain));
    expect("better.xml", &report.junit());
}

#[test]
fn a_program_that_never_came_is_told_how_to() {
    let run =
        RunInfo { command: vec!["./app".into()], exit_code: Some(3), trace: None, ..RunInfo::default() };
    let summary = Summary { upstream: "/run/postgresql".into(), ..Summary::default() };
    let how = "Point the program at the gateway:\n  DATABASE_URL=postgres://127.0.0.1:40123/shop\n";
    let report = Report { run: Some(&run), how_to_connect: how, ..Report::new(&summary) };
    expect("unreached.txt", &report.text(Style::Plain));
}
