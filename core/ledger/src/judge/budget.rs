//! Limits on what a run or a scope of it may spend.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::nearest;
use crate::{Code, ScopeTotals, Summary};

/// What a limit is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// All trips.
    Trips,
    /// Trips after sessions were open.
    WorkTrips,
    /// Sessions opened.
    Connections,
    /// Statements run.
    Statements,
    /// Trips of the request of a scope that had most.
    RequestTripsMost,
    /// Trips of the request in the middle, by trips.
    RequestTripsMedian,
    /// Avoidable trips of one finding.
    Finding(Code),
}

/// One limit, on the whole run or on one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub measure: Measure,
    /// The most that is allowed.
    pub most: u64,
    /// The scope that it holds for; `None` is the whole run.
    pub scope: Option<String>,
}

/// A limit that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Not `name=number`.
    #[error(
        "{0:?} is not a budget; write trips=200, work-trips=150, connections=5, statements=300 or OT001=0{meant}",
        meant = meant(.0)
    )]
    Unreadable(String),
    /// The file is not the expected TOML.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A table, or a name outside of any, that the file cannot have.
    #[error("it has an unknown {0}; write [budget] or [scope.\"NAME\"]{meant}", meant = meant_table(.0))]
    UnknownTable(TopLevel),
    /// Not everything is counted by scope.
    #[error(
        "{measure} cannot be limited per scope ({scope}); trips, statements, most-trips-per-request and \
         median-trips-per-request can"
    )]
    NotPerScope {
        /// The measure that was asked for.
        measure: String,
        /// In which scope.
        scope: String,
    },
    /// Requests are told apart in a scope.
    #[error("{measure} is counted per scope: write it below [scope.\"NAME\"] in a budget file")]
    OnlyPerScope {
        /// The measure that was asked for.
        measure: String,
    },
    /// A file that limits nothing checks nothing.
    #[error("it holds no limit; write [budget] and below it trips = 200")]
    Empty,
}

/// A key at the top of a budget file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopLevel {
    name: String,
    is_table: bool,
}

impl fmt::Display for TopLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, is_table } = self;
        if *is_table { write!(f, "table [{name:?}]") } else { write!(f, "name {name:?} outside a table") }
    }
}

/// Which table was meant: one that is spelt like it, that of a budget's name, or a scope.
fn meant_table(key: &TopLevel) -> String {
    let TopLevel { name, is_table } = key;
    let meant = match nearest(name, TABLES) {
        Some("budget") => "[budget]".to_owned(),
        Some(_) => "[scope.\"NAME\"]".to_owned(),
        None if *is_table => format!("[scope.{name:?}]"),
        None if name.parse::<Measure>().is_ok() => return format!(" (write {name} below [budget])"),
        None => return String::new(),
    };
    format!(" (did you mean {meant}?)")
}

/// What a budget's misspelt name was meant to be.
fn meant(text: &str) -> String {
    let name = text.split('=').next().unwrap_or_default().trim();
    let known = Measure::NAMED.iter().map(|(name, _)| *name);
    nearest(name, known.chain(Code::ALL.iter().map(|code| code.as_str())))
        .filter(|meant| *meant != name)
        .map_or(String::new(), |meant| format!(" (did you mean {meant}?)"))
}

/// The fields of [`BudgetFile`].
const TABLES: [&str; 2] = ["budget", "scope"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetFile {
    #[serde(default)]
    budget: BTreeMap<String, u64>,
    #[serde(default)]
    scope: BTreeMap<String, BTreeMap<String, u64>>,
}

impl FromStr for Limit {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || BudgetError::Unreadable(text.to_owned());
        let (measure, most) = text.split_once('=').ok_or_else(unreadable)?;
        let measure: Measure = measure.trim().parse().map_err(|()| unreadable())?;
        if measure.is_per_request() {
            return Err(BudgetError::OnlyPerScope { measure: measure.to_string() });
        }
        Ok(Self { measure, most: most.trim().parse().map_err(|_| unreadable())?, scope: None })
    }
}

/// Reads a budget file: a `[budget]` table for the whole run and `[scope."name"]` tables.
///
/// # Errors
///
/// Other TOML, unknown names, and a file without any limit: every run would pass it.
pub fn parse_file(text: &str) -> Result<Vec<Limit>, BudgetError> {
    if let Some(unknown) = unknown_table(text) {
        return Err(BudgetError::UnknownTable(unknown));
    }
    let file: BudgetFile = toml::from_str(text)?;
    let mut limits = Vec::new();
    let scopes = file.scope.into_iter().map(|(scope, table)| (Some(scope), table));
    for (scope, table) in std::iter::once((None, file.budget)).chain(scopes) {
        for (name, most) in table {
            let measure: Measure =
                name.parse().map_err(|()| BudgetError::Unreadable(format!("{name} = {most}")))?;
            match &scope {
                None if measure.is_per_request() => {
                    return Err(BudgetError::OnlyPerScope { measure: name });
                }
                Some(scope) if !measure.is_per_scope() => {
                    return Err(BudgetError::NotPerScope { measure: name, scope: scope.clone() });
                }
                _ => limits.push(Limit { measure, most, scope: scope.clone() }),
            }
        }
    }
    if limits.is_empty() { Err(BudgetError::Empty) } else { Ok(limits) }
}

/// The first key at the top that is none of the file's; `None` also where the text is not TOML.
fn unknown_table(text: &str) -> Option<TopLevel> {
    let table: toml::Table = toml::from_str(text).ok()?;
    let (name, value) = table.into_iter().find(|(name, _)| !TABLES.contains(&name.as_str()))?;
    Some(TopLevel { name, is_table: value.is_table() })
}

impl Measure {
    /// Those that have a name; findings have their code.
    const NAMED: [(&'static str, Self); 6] = [
        ("trips", Self::Trips),
        ("work-trips", Self::WorkTrips),
        ("connections", Self::Connections),
        ("statements", Self::Statements),
        ("most-trips-per-request", Self::RequestTripsMost),
        ("median-trips-per-request", Self::RequestTripsMedian),
    ];

    /// Whether it is counted by scope.
    pub fn is_per_scope(self) -> bool {
        matches!(self, Self::Trips | Self::Statements) || self.is_per_request()
    }

    /// Whether it needs requests to be told apart.
    pub fn is_per_request(self) -> bool {
        matches!(self, Self::RequestTripsMost | Self::RequestTripsMedian)
    }

    /// What the whole run spent.
    pub(super) fn of_run(self, summary: &Summary) -> u64 {
        match self {
            Self::WorkTrips => summary.trips.work(),
            Self::Connections => summary.connections,
            Self::Statements => summary.statements,
            Self::Finding(code) => summary
                .findings
                .iter()
                .filter(|finding| finding.code == code)
                .map(|finding| finding.avoidable)
                .sum(),
            _ => summary.trips.total,
        }
    }

    /// What a scope spent.
    pub(super) fn of_scope(self, scope: &ScopeTotals) -> u64 {
        match self {
            Self::Statements => scope.statements,
            Self::RequestTripsMost => scope.request_trips_max,
            Self::RequestTripsMedian => scope.request_trips_median,
            _ => scope.trips,
        }
    }
}

impl FromStr for Measure {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text).map(|(_, measure)| *measure);
        named.map_or_else(|| text.parse().map(Self::Finding).map_err(|_| ()), Ok)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, Self::NAMED.iter().find(|(_, measure)| measure == self)) {
            (Self::Finding(code), _) => code.fmt(f),
            (_, Some((name, _))) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_limits_the_run_and_single_scopes() {
        let text = "[budget]\ntrips = 200\n[scope.checkout]\nmost-trips-per-request = 29\n";
        let limits = parse_file(text).unwrap();
        assert_eq!(limits[0], Limit { measure: Measure::Trips, most: 200, scope: None });
        let scope = Some("checkout".into());
        assert_eq!(limits[1], Limit { measure: Measure::RequestTripsMost, most: 29, scope });
    }

    #[test]
    fn what_limits_nothing_is_refused_with_the_name_that_was_meant() {
        let refused = |text: &str| parse_file(text).unwrap_err().to_string();
        assert!(refused("").contains("no limit"));
        assert!(refused("[budget]\n[scope.a]\n").contains("no limit"));
        assert!(refused("[budget]\nspeed = 1\n").contains("write trips=200"));
        assert!(refused("[budget]\nconections = 1\n").contains("did you mean connections?"));
        assert!(refused("[scope.a]\nOT001 = 1\n").contains("cannot be limited per scope (a)"));
        assert!(refused("[budget]\nmost-trips-per-request = 1\n").contains("[scope."));
        let refused = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
        assert!(refused("trips").contains("write trips=200"));
        assert!(refused("trips=many").contains("write trips=200"));
        assert!(refused("trps=5").contains("did you mean trips?"));
        assert!(refused("median-trips-per-request=5").contains("budget file"));
    }

    #[test]
    fn an_unknown_table_is_refused_with_the_one_that_was_meant() {
        let refused = |text: &str| parse_file(text).unwrap_err().to_string();
        let said = refused("[budgets]\ntrips = 1\n");
        assert_eq!(
            said,
            "it has an unknown table [\"budgets\"]; write [budget] or [scope.\"NAME\"] (did you mean [budget]?)"
        );
        assert!(refused("[scopes.checkout]\ntrips = 1\n").contains("did you mean [scope.\"NAME\"]?"));
        assert!(refused("[Scope.\"GET /orders\"]\ntrips = 1\n").contains("did you mean [scope.\"NAME\"]?"));
        // Beside a known one it is not left out, either.
        let said = refused("[budget]\ntrips = 1\n[\"GET /orders\"]\ntrips = 1\n");
        assert!(said.contains("did you mean [scope.\"GET /orders\"]?"), "{said}");
        let said = refused("trips = 1\n");
        assert!(said.contains("name \"trips\" outside a table"), "{said}");
        assert!(said.contains("write trips below [budget]"), "{said}");
        assert!(!refused("speed = 1\n").contains("did you mean"));
    }

    #[test]
    fn every_measure_is_read_back_by_its_name() {
        for (name, measure) in Measure::NAMED {
            assert_eq!((name.parse(), measure.to_string().as_str()), (Ok(measure), name));
        }
        assert_eq!("OT001".parse(), Ok(Measure::Finding(Code::Loop)));
    }
}
