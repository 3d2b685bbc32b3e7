//! A run's trips by scope, kept in a file of the project and compared number by number.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;

use super::Measure;
use crate::{ScopeTotals, Summary};

/// Version of the file's form.
const VERSION: u64 = 1;
/// What stands above the numbers.
const HEAD: &str = "\
# Round trips, written by onetrip --snapshot --update and compared by --snapshot. Keep it with the code, and look
# at its changes as at those of any other test's expectation.
";

/// Trips of the run and of its scopes, as they were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Trips after sessions were open; `None` where requests are told apart, whose number differs from run to run.
    pub work_trips: Option<u64>,
    /// Sessions opened; `None` where their number is chance.
    pub connections: Option<u64>,
    /// What is expected of each scope.
    pub scopes: BTreeMap<String, BTreeMap<&'static str, u64>>,
}

/// A snapshot that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Other TOML.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// Written by another onetrip.
    #[error("it has version {0}, and this onetrip knows {VERSION}: write it again with --update")]
    Version(u64),
    /// A name that stands for no number.
    #[error("{0:?} is nothing that a snapshot holds; write it again with --update")]
    Unknown(String),
    /// A snapshot of nothing is kept by every run.
    #[error("it holds no number; write it again with --update")]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SnapshotFile {
    version: u64,
    work_trips: Option<u64>,
    connections: Option<u64>,
    #[serde(default)]
    scope: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Snapshot {
    /// What a summary says of its run.
    pub fn of(summary: &Summary) -> Self {
        let has_requests = summary.scopes.iter().any(|scope| scope.requests > 0);
        let entry = |scope: &ScopeTotals| {
            let numbers =
                measures_of(scope).iter().map(|(name, measure)| (*name, measure.of_scope(scope))).collect();
            (scope.label.clone(), numbers)
        };
        Self {
            work_trips: (!has_requests).then(|| summary.trips.work()),
            connections: Some(summary.connections),
            scopes: summary.scopes.iter().filter(|scope| !scope.label.is_empty()).map(entry).collect(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Text that [`Self::to_text`] did not write.
    pub fn parse(text: &str) -> Result<Self, SnapshotError> {
        let file: SnapshotFile = toml::from_str(text)?;
        if file.version != VERSION {
            return Err(SnapshotError::Version(file.version));
        }
        let SnapshotFile { work_trips, connections, .. } = file;
        let mut snapshot = Self { work_trips, connections, ..Self::default() };
        for (label, numbers) in file.scope {
            let entry = snapshot.scopes.entry(label).or_default();
            for (name, number) in numbers {
                let known = NAMES.iter().find(|(known, _)| *known == name);
                let (name, _) = known.ok_or(SnapshotError::Unknown(name))?;
                entry.insert(name, number);
            }
        }
        let is_empty = work_trips.is_none() && connections.is_none() && snapshot.scopes.is_empty();
        if is_empty { Err(SnapshotError::Empty) } else { Ok(snapshot) }
    }

    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}version = {VERSION}\n");
        // Writing to a string does not fail.
        if let Some(trips) = self.work_trips {
            let _ = writeln!(text, "work-trips = {trips}");
        }
        if let Some(connections) = self.connections {
            let _ = writeln!(text, "connections = {connections}");
        }
        for (label, numbers) in &self.scopes {
            let _ = writeln!(text, "\n[scope.{}]", quoted(label));
            for (name, number) in numbers {
                let _ = writeln!(text, "{name} = {number}");
            }
        }
        text
    }

    /// The snapshot that replaces `earlier`: without connections where somebody has left them out.
    pub fn replacing(mut self, earlier: &Self) -> Self {
        self.connections = self.connections.filter(|_| earlier.connections.is_some());
        self
    }

    /// The snapshot of a run in which not every scope occurred: the others stay as they are in `earlier`.
    pub fn with_others_of(mut self, earlier: Self) -> Self {
        for (label, numbers) in earlier.scopes {
            self.scopes.entry(label).or_insert(numbers);
        }
        self
    }
}

/// A key of TOML.
fn quoted(label: &str) -> String {
    let mut quoted = String::from('"');
    for character in label.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted + "\""
}

/// What a snapshot may hold of a scope.
pub(super) const NAMES: [(&str, Measure); 3] = [
    ("trips", Measure::Trips),
    ("median-trips-per-request", Measure::RequestTripsMedian),
    ("most-trips-per-request", Measure::RequestTripsMost),
];

/// What a snapshot holds of this scope: the number of requests differs from run to run, what each spends does not.
fn measures_of(scope: &ScopeTotals) -> &'static [(&'static str, Measure)] {
    if scope.requests > 0 { &NAMES[1..] } else { &NAMES[..1] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TripTotals;

    fn summary() -> Summary {
        let plain = ScopeTotals { label: "import \"x\"\n".into(), trips: 30, ..ScopeTotals::default() };
        let requests = ScopeTotals {
            label: "GET /".into(),
            trips: 90,
            requests: 10,
            request_trips_median: 9,
            request_trips_max: 12,
            ..ScopeTotals::default()
        };
        let trips = TripTotals { total: 130, connect: 4, may_share: 0 };
        let scopes = vec![requests, plain, ScopeTotals::default()];
        Summary { trips, connections: 3, scopes, ..Summary::default() }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let snapshot = Snapshot::of(&summary());
        let text = snapshot.to_text();
        assert_eq!(Snapshot::parse(&text).unwrap(), snapshot, "{text}");
        assert!(text.contains("most-trips-per-request = 12") && !text.contains("work-trips"), "{text}");
        let mut plain = summary();
        plain.scopes.remove(0);
        let snapshot = Snapshot::of(&plain);
        assert_eq!(snapshot.work_trips, Some(126));
        assert_eq!(Snapshot::parse(&snapshot.to_text()).unwrap(), snapshot);
    }

    #[test]
    fn connections_are_held_and_stay_left_out_where_somebody_has_left_them_out() {
        let now = Snapshot::of(&summary());
        let text = now.to_text();
        assert!(text.contains("connections = 3\n"), "{text}");
        let without = Snapshot::parse(&text.replace("connections = 3\n", "")).unwrap();
        assert_eq!(without, Snapshot { connections: None, ..now.clone() });
        assert_eq!(now.clone().replacing(&without), without);
        assert_eq!(now.clone().replacing(&now), now);
    }

    #[test]
    fn what_onetrip_did_not_write_is_refused() {
        let refused = |text: &str| Snapshot::parse(text).unwrap_err().to_string();
        assert!(refused("").contains("version"));
        assert!(refused("version = 2\nwork-trips = 1\n").contains("version 2"));
        assert!(refused("version = 1\n").contains("no number"));
        assert!(refused("version = 1\n[scope.a]\nspeed = 1\n").contains("speed"));
    }
}
