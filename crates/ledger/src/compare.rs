//! Two runs side by side: what got better, what got worse.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Code, Summary};

/// A count in the earlier run and in this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Change {
    /// In the earlier run.
    pub before: u64,
    /// In this one.
    pub now: u64,
}

impl Change {
    /// How much more there is now; negative is better.
    pub fn difference(self) -> i64 {
        self.now as i64 - self.before as i64
    }
}

/// What differs between two runs. Only trips are compared: they do not depend on the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// All trips.
    pub trips: Change,
    /// Statements whose trips differ, largest difference first.
    pub statements: Vec<(String, Change)>,
    /// Findings whose avoidable trips differ, by code and first statement.
    pub findings: Vec<(Code, String, Change)>,
}

impl Comparison {
    /// Compares `now` with `before`.
    pub fn new(before: &Summary, now: &Summary) -> Self {
        let trips = Change { before: before.trips.total, now: now.trips.total };
        let statements = pair(
            before.templates.iter().map(|template| (template.text.clone(), template.trips)),
            now.templates.iter().map(|template| (template.text.clone(), template.trips)),
        );
        let key = |summary: &Summary| {
            let findings = summary.findings.iter();
            findings
                .map(|finding| {
                    let statement = finding.statements.first().cloned().unwrap_or_default();
                    ((finding.code, statement), finding.avoidable)
                })
                .collect::<Vec<_>>()
        };
        let findings = pair(key(before), key(now));
        let findings =
            findings.into_iter().map(|((code, statement), change)| (code, statement, change)).collect();
        Self { trips, statements, findings }
    }

    /// Whether trips or any finding grew.
    pub fn is_worse(&self) -> bool {
        self.trips.difference() > 0 || self.findings.iter().any(|(_, _, change)| change.difference() > 0)
    }
}

fn pair<K: Ord>(
    before: impl IntoIterator<Item = (K, u64)>,
    now: impl IntoIterator<Item = (K, u64)>,
) -> Vec<(K, Change)> {
    let mut changes = BTreeMap::new();
    for (key, count) in before {
        changes.entry(key).or_insert(Change { before: 0, now: 0 }).before += count;
    }
    for (key, count) in now {
        changes.entry(key).or_insert(Change { before: 0, now: 0 }).now += count;
    }
    let mut changes: Vec<_> = changes.into_iter().filter(|(_, change)| change.difference() != 0).collect();
    changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.difference().abs()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TemplateTotals, TripTotals};

    fn run(trips: u64, statements: &[(&str, u64)]) -> Summary {
        let template = |(text, trips): &(&str, u64)| TemplateTotals {
            text: (*text).to_owned(),
            trips: *trips,
            ..TemplateTotals::default()
        };
        Summary {
            trips: TripTotals { total: trips, ..TripTotals::default() },
            templates: statements.iter().map(template).collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn only_what_differs_is_listed_largest_first() {
        let before = run(30, &[("a", 10), ("b", 10), ("c", 10)]);
        let now = run(32, &[("a", 9), ("b", 10), ("d", 13)]);
        let comparison = Comparison::new(&before, &now);
        let listed: Vec<_> =
            comparison.statements.iter().map(|(text, change)| (text.as_str(), change.difference())).collect();
        assert_eq!(listed, [("d", 13), ("c", -10), ("a", -1)]);
        assert!(comparison.is_worse());
        assert!(!Comparison::new(&now, &before).is_worse());
    }
}
