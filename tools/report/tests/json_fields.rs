//! Every field of the JSON is in its documentation.

mod common;

use std::collections::BTreeSet;

use common::page::story_prices;
use common::{crowded, rules};
use onetrip_ledger::judge::Snapshot;
use onetrip_ledger::network::{NamedPath, NetworkSummary, RttSpan};
use onetrip_ledger::sides::{ClockOffset, NamedSplit, TwoSides};
use onetrip_ledger::{MayNotEnd, Refusal, Remedy, Summary, Would};
use onetrip_report::{Report, RunInfo};
use serde_json::Value;

fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(name.clone());
                names(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let summary = Summary {
        refusals: vec![Refusal::default()],
        may_not_end: vec![MayNotEnd::default()],
        would: Remedy::ALL.into_iter().map(|remedy| (remedy, Would::default())).collect(),
        ..crowded()
    };
    let mut rules = rules(&Summary::default());
    rules.snapshot = Some(("trips.lock".into(), Snapshot::of(&summary)));
    let judgement = rules.judge(&summary);
    let network = NetworkSummary {
        paths: vec![NamedPath::default()],
        rtts: vec![RttSpan::default()],
        ..NetworkSummary::default()
    };
    let sides = TwoSides {
        clock: Some(ClockOffset::default()),
        paths: vec![NamedSplit { seen_as: Some(Default::default()), ..NamedSplit::default() }],
        ..TwoSides::default()
    };
    let report = Report {
        run: Some(&RunInfo::default()),
        judgement: Some(&judgement),
        prices: Some(&story_prices()),
        network: Some(&network),
        sides: Some(&sides),
        ..Report::new(&summary)
    };
    let mut found = BTreeSet::new();
    names(&serde_json::from_str(&report.json()).unwrap(), &mut found);
    assert!(found.len() > 60, "{found:?}");
    let documentation = include_str!("../../../docs/report-json.md");
    let missing: Vec<_> = found.iter().filter(|name| !documentation.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "undocumented: {missing:?}");
}

#[test]
fn a_report_is_read_back_as_an_earlier_run() {
    let summary = crowded();
    let read = onetrip_report::baseline("base.json", &Report::new(&summary).json()).unwrap();
    assert_eq!(read, onetrip_ledger::judge::Base::of("base.json", &summary));
    let refused = |text: &str| onetrip_report::baseline("x", text).unwrap_err().to_string();
    assert!(refused("{}").contains("no report of onetrip's"));
    let newer = Report::new(&summary).json().replacen("\"format\": 1", "\"format\": 9", 1);
    assert!(refused(&newer).contains("format 9"));
}
