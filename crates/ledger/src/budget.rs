//! Limits on trips that make a run fail.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Code, Summary};

/// What a limit is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// All trips.
    Trips,
    /// Trips after sessions were open.
    WorkTrips,
    /// Sessions opened.
    Connections,
    /// Statements run.
    Statements,
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

/// A limit and what was counted against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// What was limited, such as `trips` or `OT001`.
    pub measure: String,
    /// Scope of the limit.
    pub scope: Option<String>,
    /// The most that was allowed.
    pub most: u64,
    /// What was counted.
    pub counted: u64,
    /// Whether the run kept to it. A count that may be wrong (records were lost) never does.
    pub kept: bool,
}

/// A limit that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// Not `name=number`.
    #[error(
        "{0:?} is not a budget; write trips=200, work-trips=150, connections=5, statements=300 or OT001=0"
    )]
    Unreadable(String),
    /// The file is not the expected TOML.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// Only trips and statements are counted by scope.
    #[error("{measure} cannot be limited per scope ({scope}); trips and statements can")]
    NotPerScope {
        /// The measure that was asked for.
        measure: String,
        /// In which scope.
        scope: String,
    },
}

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
        let measure = measure.trim().parse().map_err(|()| unreadable())?;
        Ok(Self { measure, most: most.trim().parse().map_err(|_| unreadable())?, scope: None })
    }
}

/// Reads a budget file: a `[budget]` table for the whole run and `[scope."name"]` tables.
pub fn parse_file(text: &str) -> Result<Vec<Limit>, BudgetError> {
    let file: BudgetFile = toml::from_str(text)?;
    let mut limits = Vec::new();
    let scopes = file.scope.into_iter().map(|(scope, table)| (Some(scope), table));
    for (scope, table) in std::iter::once((None, file.budget)).chain(scopes) {
        for (name, most) in table {
            let measure = name.parse().map_err(|()| BudgetError::Unreadable(format!("{name} = {most}")))?;
            match (&scope, measure) {
                (None, _) | (Some(_), Measure::Trips | Measure::Statements) => {
                    limits.push(Limit { measure, most, scope: scope.clone() });
                }
                (Some(scope), _) => {
                    return Err(BudgetError::NotPerScope { measure: name, scope: scope.clone() });
                }
            }
        }
    }
    Ok(limits)
}

impl Limit {
    /// Holds the limit against what was counted.
    pub fn judge(&self, summary: &Summary) -> Verdict {
        let counted = self.count(summary);
        Verdict {
            measure: self.measure.to_string(),
            scope: self.scope.clone(),
            most: self.most,
            counted,
            kept: counted <= self.most && summary.lost_bytes == 0,
        }
    }

    fn count(&self, summary: &Summary) -> u64 {
        if let Some(label) = &self.scope {
            let totals = summary.scopes.iter().find(|scope| scope.label == *label);
            return totals.map_or(0, |scope| match self.measure {
                Measure::Statements => scope.statements,
                _ => scope.trips,
            });
        }
        match self.measure {
            Measure::Trips => summary.trips.total,
            Measure::WorkTrips => summary.trips.work(),
            Measure::Connections => summary.connections,
            Measure::Statements => summary.statements,
            Measure::Finding(code) => summary
                .findings
                .iter()
                .filter(|finding| finding.code == code)
                .map(|finding| finding.avoidable)
                .sum(),
        }
    }
}

impl FromStr for Measure {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "trips" => Ok(Self::Trips),
            "work-trips" => Ok(Self::WorkTrips),
            "connections" => Ok(Self::Connections),
            "statements" => Ok(Self::Statements),
            code => code.parse().map(Self::Finding).map_err(|_| ()),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trips => f.write_str("trips"),
            Self::WorkTrips => f.write_str("work-trips"),
            Self::Connections => f.write_str("connections"),
            Self::Statements => f.write_str("statements"),
            Self::Finding(code) => code.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ScopeTotals, TripTotals};

    fn summary() -> Summary {
        let scope =
            ScopeTotals { label: "checkout".into(), trips: 30, statements: 25, ..ScopeTotals::default() };
        Summary {
            trips: TripTotals { total: 100, connect: 4, may_share: 0 },
            scopes: vec![scope],
            ..Summary::default()
        }
    }

    #[test]
    fn a_limit_is_kept_up_to_its_number_and_broken_above() {
        assert!("trips=100".parse::<Limit>().unwrap().judge(&summary()).kept);
        let broken = "trips=99".parse::<Limit>().unwrap().judge(&summary());
        assert_eq!((broken.kept, broken.counted), (false, 100));
        assert!("work-trips=96".parse::<Limit>().unwrap().judge(&summary()).kept);
        assert!("OT001=0".parse::<Limit>().unwrap().judge(&summary()).kept);
    }

    #[test]
    fn nothing_is_kept_when_records_were_lost() {
        let lossy = Summary { lost_bytes: 1, ..summary() };
        assert!(!"trips=1000".parse::<Limit>().unwrap().judge(&lossy).kept);
    }

    #[test]
    fn a_file_limits_the_run_and_single_scopes() {
        let limits = parse_file("[budget]\ntrips = 200\n[scope.checkout]\ntrips = 29\n").unwrap();
        let kept: Vec<_> = limits.iter().map(|limit| limit.judge(&summary()).kept).collect();
        assert_eq!(kept, [true, false]);
        assert!(parse_file("[budget]\nspeed = 1\n").is_err());
        assert!(parse_file("[scope.a]\nOT001 = 1\n").is_err());
        assert!("trips".parse::<Limit>().is_err());
        assert!("trips=many".parse::<Limit>().is_err());
    }
}
