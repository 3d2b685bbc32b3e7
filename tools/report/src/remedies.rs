//! What the gateway can do about a finding while the program stays as it is, and what it did.

use onetrip_ledger::{Code, Evidence, Finding, Obstacle, Would};

use crate::clean::{clean, cut};
use crate::number::{count, counted};

/// Columns of the reason why a statement is not known to only read.
const REASON_MAX: usize = 120;

/// What remedies took out of a pattern and what they left, with the reasons; `None` where they were off.
pub(crate) fn fate(finding: &Finding) -> Option<String> {
    let mut left: Vec<_> = finding.left.iter().filter(|(obstacle, _)| is_told(**obstacle)).collect();
    if finding.removed == 0 && left.is_empty() {
        return None;
    }
    left.sort_by_key(|(_, trips)| std::cmp::Reverse(**trips));
    let left: Vec<String> = left
        .iter()
        .map(|(obstacle, trips)| format!("{} {}", count(**trips), reason(**obstacle, finding)))
        .collect();
    let removed = counted(finding.removed, "trip removed by remedies", "trips removed by remedies");
    Some(match (left.as_slice(), finding.removed) {
        ([], _) => removed,
        (left, 0) => left.join(", "),
        (left, _) => format!("{}; {removed}", left.join(", ")),
    })
}

/// How to remove more of it without a change of code; `None` where nothing does.
pub(crate) fn remedy(finding: &Finding) -> Option<String> {
    if finding.left.contains_key(&Obstacle::WatchedOnly) {
        return None;
    }
    if let Some(text) = removes(finding.would, |trips| format!("{} of these trips", count(trips))) {
        return Some(text);
    }
    match finding.evidence {
        Evidence::Prepares { .. } => Some("`--remedies exact` can save the trip that prepares".to_owned()),
        Evidence::Fetches { .. }
            if finding.left.contains_key(&Obstacle::OffAtItsLevel)
                || finding.left.contains_key(&Obstacle::Off) =>
        {
            Some("`--remedies exact` prefetches the next pieces".to_owned())
        }
        Evidence::Chatter { settings, .. } if settings > 0 && finding.removed == 0 => {
            Some("`--remedies exact` answers a repeated setting if only reads came in between".to_owned())
        }
        Evidence::Walk { .. } => removal(finding),
        _ => None,
    }
}

/// What remedies would have removed, with their switch; `what` says what is counted. `None` where they would have removed
/// nothing for sure.
pub(crate) fn removes(would: Would, what: impl Fn(u64) -> String) -> Option<String> {
    let Would { exact, isolated } = would;
    Some(match (exact, isolated) {
        (0, 0) => return None,
        (0, more) => {
            format!("`--remedies exact --isolation repeatable-read` removes at least {}", what(more))
        }
        (exact, 0) => format!("`--remedies exact` removes at least {}", what(exact)),
        (exact, _) => format!(
            "`--remedies exact` removes at least {}; with `--isolation repeatable-read`, {}",
            what(exact),
            count(would.all())
        ),
    })
}

/// How to remove a loop, or why that is not possible here.
fn removal(finding: &Finding) -> Option<String> {
    let text = match main_obstacle(finding)? {
        Obstacle::Off | Obstacle::OffAtItsLevel => {
            "Nothing of it is surely removed by `--remedies exact`: a loop is learned from some 20 statements, and the database must \
             be fast for its distance. Try it, with `--learned FILE` for the next run."
        }
        Obstacle::ReadCommitted => "`--isolation repeatable-read` removes it, but for its first rows",
        Obstacle::NoTransaction | Obstacle::OffOutside => {
            "Not removable outside a transaction. Inside a REPEATABLE READ transaction, `--remedies exact` removes it."
        }
        Obstacle::Serializable => {
            "Not removable at SERIALIZABLE. At REPEATABLE READ, `--remedies exact` removes it."
        }
        Obstacle::Pooler => {
            "Not removable in front of a pooler. Put the gateway between the pooler and the database."
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// The reason for which most of the trips of a loop remain.
fn main_obstacle(finding: &Finding) -> Option<Obstacle> {
    let most = finding.left.iter().max_by_key(|(_, trips)| **trips);
    most.filter(|_| finding.code == Code::Loop).map(|(obstacle, _)| *obstacle)
}

/// Whether a gateway with remedies has seen it.
fn is_told(obstacle: Obstacle) -> bool {
    use Obstacle::{Off, OffAtItsLevel, OffOutside, WatchedOnly};
    !matches!(obstacle, Off | OffAtItsLevel | OffOutside | WatchedOnly)
}

fn reason(obstacle: Obstacle, finding: &Finding) -> String {
    match obstacle {
        Obstacle::NoTransaction => "outside a transaction".into(),
        Obstacle::ReadCommitted => "at READ COMMITTED".into(),
        Obstacle::Serializable => "at SERIALIZABLE".into(),
        Obstacle::LevelUnknown => "before the isolation level was known".into(),
        Obstacle::StateUnknown => "while the session's state was not known".into(),
        Obstacle::Impure => match &finding.impure {
            Some(because) => format!("not known to only read ({})", cut(&clean(because), REASON_MAX)),
            None => "not known to only read".into(),
        },
        Obstacle::Wrote => "in transactions that also wrote".into(),
        Obstacle::Unforeseen => "not predicted".into(),
        Obstacle::Near => "while remedies were inactive: the database is near".into(),
        Obstacle::Pooler => "in front of a pooler: the session has no server session of its own".into(),
        Obstacle::WatchedOnly => "on connections that are only watched".into(),
        Obstacle::Off | Obstacle::OffAtItsLevel | Obstacle::OffOutside => "while remedies were off".into(),
    }
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::Driver;

    use super::*;

    fn left(removed: u64, left: &[(Obstacle, u64)]) -> Finding {
        Finding {
            code: Code::Loop,
            statements: Vec::new(),
            driver: Driver::UNKNOWN,
            scopes: Vec::new(),
            occurrences: 1,
            trips: 10,
            avoidable: 9,
            removed,
            would: Would::default(),
            left: left.iter().copied().collect(),
            impure: Some("function f() is not a built-in function known to be harmless".into()),
            waited_ns: 0,
            wire_ns: 0,
            evidence: Evidence::Walk { sources: Vec::new(), rows: (1, 10) },
            spots: Vec::new(),
            sites: Vec::new(),
            fix: String::new(),
        }
    }

    #[test]
    fn the_switch_is_the_one_that_removes_most() {
        let how = |obstacles: &[_]| remedy(&left(0, obstacles));
        assert_eq!(
            how(&[(Obstacle::ReadCommitted, 8), (Obstacle::NoTransaction, 2)]).as_deref(),
            Some("`--isolation repeatable-read` removes it, but for its first rows")
        );
        let short = how(&[(Obstacle::Off, 3)]).unwrap_or_default();
        assert!(short.starts_with("Nothing of it is surely removed"), "{short}");
        assert_eq!(
            how(&[(Obstacle::NoTransaction, 3)]).as_deref(),
            Some(
                "Not removable outside a transaction. Inside a REPEATABLE READ transaction, `--remedies exact` \
                 removes it."
            )
        );
        assert_eq!(how(&[(Obstacle::Unforeseen, 3)]), None);
        let prepares = Evidence::Prepares { prepares: 10, runs: 10 };
        let of_prepares =
            |obstacles: &[_]| remedy(&Finding { evidence: prepares.clone(), ..left(0, obstacles) });
        assert!(of_prepares(&[]).is_some() && of_prepares(&[(Obstacle::WatchedOnly, 9)]).is_none());
        assert_eq!(how(&[]), None);
    }

    #[test]
    fn what_remedies_would_remove_is_said_with_its_switch() {
        let of = |exact, isolated| {
            let would = Would { exact, isolated };
            remedy(&Finding { would, ..left(0, &[(Obstacle::Off, 9)]) }).unwrap_or_default()
        };
        assert_eq!(of(5, 0), "`--remedies exact` removes at least 5 of these trips");
        assert_eq!(
            of(0, 1_000),
            "`--remedies exact --isolation repeatable-read` removes at least 1,000 of these trips"
        );
        assert_eq!(
            of(2, 7),
            "`--remedies exact` removes at least 2 of these trips; with `--isolation repeatable-read`, 9"
        );
    }

    #[test]
    fn what_is_left_is_told_with_its_reasons() {
        let fate = |removed, obstacles: &[_]| fate(&left(removed, obstacles));
        assert_eq!(
            fate(0, &[(Obstacle::Off, 3)]),
            None,
            "there is nothing to tell of remedies that were off"
        );
        assert_eq!(
            fate(9965, &[(Obstacle::Unforeseen, 2), (Obstacle::Impure, 5)]).as_deref(),
            Some(
                "5 not known to only read (function f() is not a built-in function known to be harmless), 2 not \
                 predicted; 9,965 trips removed by remedies"
            )
        );
    }
}
