//! Two runs side by side: what got better, what got worse.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Serialize;

use crate::{Code, Gaps, Summary};

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

/// What is known of an earlier run: of its trace, or of the report on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base {
    /// What the run is called: the file's name.
    pub name: String,
    /// All trips.
    pub trips: u64,
    /// Sessions that were let in.
    pub sessions: u64,
    /// Its program failed. A trace does not tell.
    pub has_failed: bool,
    /// What is missing from its records.
    pub gaps: Gaps,
    /// Trips by statement.
    pub statements: Vec<(String, u64)>,
    /// Avoidable trips by finding and its first statement.
    pub findings: Vec<((Code, String), u64)>,
}

/// How many more trips than before are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Increase {
    /// In thousandths of a percent of the trips before.
    Percent(u64),
    /// Trips.
    Trips(u64),
}

/// An increase that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an increase; write 5% or a number of trips")]
pub struct BadIncrease(String);

impl FromStr for Increase {
    type Err = BadIncrease;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadIncrease(text.to_owned());
        let Some(percent) = text.trim().strip_suffix('%') else {
            return text.trim().parse().map(Self::Trips).map_err(|_| bad());
        };
        let (whole, part) = percent.trim().split_once('.').unwrap_or((percent.trim(), "0"));
        if part.is_empty() || part.len() > 3 || !part.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let thousandths: u64 = format!("{part:0<3}").parse().map_err(|_| bad())?;
        let percent = whole.checked_mul(1000).and_then(|whole| whole.checked_add(thousandths));
        percent.map(Self::Percent).ok_or_else(bad)
    }
}

impl Increase {
    /// The most trips that are allowed after so many before.
    pub fn most(self, before: u64) -> u64 {
        let more = match self {
            Self::Trips(trips) => trips.into(),
            Self::Percent(thousandths) => u128::from(before) * u128::from(thousandths) / 100_000,
        };
        u64::try_from(u128::from(before) + more).unwrap_or(u64::MAX)
    }
}

impl Base {
    /// What a summary says of its run.
    pub fn of(name: impl Into<String>, summary: &Summary) -> Self {
        let templates = summary.templates.iter();
        Self {
            name: name.into(),
            trips: summary.trips.total,
            sessions: summary.sessions,
            has_failed: false,
            gaps: summary.gaps,
            statements: templates.map(|template| (template.text.clone(), template.trips)).collect(),
            findings: findings_of(summary),
        }
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
    pub fn new(before: &Base, now: &Summary) -> Self {
        let trips = Change { before: before.trips, now: now.trips.total };
        let statements_now = now.templates.iter().map(|template| (template.text.clone(), template.trips));
        let statements = pair(before.statements.iter().cloned(), statements_now);
        let findings = pair(before.findings.iter().cloned(), findings_of(now));
        let findings =
            findings.into_iter().map(|((code, statement), change)| (code, statement, change)).collect();
        Self { trips, statements, findings }
    }

    /// Whether trips or any finding grew.
    pub fn is_worse(&self) -> bool {
        self.trips.difference() > 0 || self.findings.iter().any(|(_, _, change)| change.difference() > 0)
    }
}

fn findings_of(summary: &Summary) -> Vec<((Code, String), u64)> {
    let findings = summary.findings.iter();
    findings
        .map(|finding| {
            ((finding.code, finding.statements.first().cloned().unwrap_or_default()), finding.avoidable)
        })
        .collect()
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
        let comparison = Comparison::new(&Base::of("before", &before), &now);
        let listed: Vec<_> =
            comparison.statements.iter().map(|(text, change)| (text.as_str(), change.difference())).collect();
        assert_eq!(listed, [("d", 13), ("c", -10), ("a", -1)]);
        assert!(comparison.is_worse());
        assert!(!Comparison::new(&Base::of("now", &now), &before).is_worse());
    }

    #[test]
    fn an_increase_is_a_part_of_what_was_before_or_a_number_of_trips() {
        let most = |text: &str, before| text.parse::<Increase>().unwrap().most(before);
        assert_eq!(
            [most("5%", 100), most("5%", 99), most("0%", 99), most("2.5%", 1000)],
            [105, 103, 99, 1025]
        );
        assert_eq!([most("0.125%", 100_000), most("3", 7), most("100%", u64::MAX)], [100_125, 10, u64::MAX]);
        for text in ["", "%", "five", "-1", "1.%", "1.2345%", "5 %%", "+5%x"] {
            assert!(text.parse::<Increase>().is_err(), "{text}");
        }
    }
}
