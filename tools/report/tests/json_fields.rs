//! The JSON is as its schema says.

mod common;

use common::page::story_prices;
use common::{crowded, rules};
use onetrip_ledger::judge::Snapshot;
use onetrip_ledger::network::{NamedPath, NetworkSummary, RttSpan};
use onetrip_ledger::sides::{ClockOffset, NamedSplit, TwoSides};
use onetrip_ledger::{MayNotEnd, Refusal, Remedy, Summary, Would};
use onetrip_report::{Report, RunInfo};
use serde_json::Value;

/// The published schema, with nothing allowed that it does not name.
fn strict_schema() -> Value {
    let mut schema = serde_json::from_str(include_str!("../../../docs/report.schema.json")).unwrap();
    close(&mut schema);
    schema
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            parts.values_mut().for_each(close);
            if parts.get("properties").is_some_and(Value::is_object) && parts.contains_key("required") {
                parts.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

fn faults(schema: &Value, report: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(report).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

#[test]
fn reports_are_as_the_schema_says() {
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
    let full: Value = serde_json::from_str(&onetrip_report::json(&report)).unwrap();
    let empty: Value =
        serde_json::from_str(&onetrip_report::json(&Report::new(&Summary::default()))).unwrap();
    let schema = strict_schema();
    for report in [&full, &empty] {
        assert_eq!(faults(&schema, report), [""; 0]);
    }
    let mut other = full.clone();
    other["trips"]["new"] = 1.into();
    other["ruling"] = "kept".into();
    other["findings"][0]["evidence"]["kind"] = "none".into();
    other["network"]["totals"]["up"]["bytes"] = "many".into();
    assert_eq!(faults(&schema, &other).len(), 4, "{:?}", faults(&schema, &other));
}

#[test]
fn a_report_is_read_back_as_an_earlier_run() {
    let summary = crowded();
    let read = onetrip_report::baseline("base.json", &onetrip_report::json(&Report::new(&summary))).unwrap();
    assert_eq!(read, onetrip_ledger::judge::Base::of("base.json", &summary));
    let refused = |text: &str| onetrip_report::baseline("x", text).unwrap_err().to_string();
    assert!(refused("{}").contains("not a report of onetrip"));
    let newer = onetrip_report::json(&Report::new(&summary)).replacen("\"format\": 1", "\"format\": 9", 1);
    assert!(refused(&newer).contains("format 9"));
}
