//! Every field of the JSON is in its documentation.

mod common;

use std::collections::BTreeSet;

use common::crowded;
use common::page::story_prices;
use onetrip_ledger::compare::Comparison;
use onetrip_ledger::network::{NamedPath, NetworkSummary, RttSpan};
use onetrip_ledger::{Code, Summary};
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
    let summary = crowded();
    let comparison = Comparison::new(&Summary::default(), &summary);
    let verdicts = ["trips=2".parse::<onetrip_ledger::budget::Limit>().unwrap().judge(&summary)];
    let network = NetworkSummary {
        paths: vec![NamedPath::default()],
        rtts: vec![RttSpan::default()],
        ..NetworkSummary::default()
    };
    let report = Report {
        run: Some(&RunInfo::default()),
        verdicts: &verdicts,
        fail_on: &[Code::Loop],
        comparison: Some(&comparison),
        prices: Some(&story_prices()),
        network: Some(&network),
        ..Report::new(&summary)
    };
    let mut found = BTreeSet::new();
    names(&serde_json::from_str(&report.json()).unwrap(), &mut found);
    assert!(found.len() > 60, "{found:?}");
    let documentation = include_str!("../../../docs/report-json.md");
    let missing: Vec<_> = found.iter().filter(|name| !documentation.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "undocumented: {missing:?}");
}
