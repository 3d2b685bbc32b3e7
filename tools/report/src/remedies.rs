//! What the gateway can do about a finding while the program stays as it is, and what it did.

use onetrip_ledger::{Code, Evidence, Finding, Obstacle};

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
    let removed = counted(finding.removed, "trip taken out by remedies", "trips taken out by remedies");
    Some(match (left.as_slice(), finding.removed) {
        ([], _) => removed,
        (left, 0) => left.join(", "),
        (left, _) => format!("{}; {removed}", left.join(", ")),
    })
}

/// What would take more of it out; `None` if nothing, or if it did.
pub(crate) fn remedy(finding: &Finding) -> Option<String> {
    match finding.evidence {
        Evidence::Alone { begins, commits, .. } if begins + commits > 0 && finding.removed == 0 => {
            let begins = counted(begins, "BEGIN", "BEGINs");
            let ends = "the ends of transactions that only read";
            Some(format!("--remedies exact takes out {begins}, and {ends}, as the program is"))
        }
        Evidence::Prepares { .. } => {
            Some("--remedies exact prepares in the trip of the run, as the program is".to_owned())
        }
        Evidence::Fetches { .. }
            if finding.left.contains_key(&Obstacle::OffAtItsLevel)
                || finding.left.contains_key(&Obstacle::Off) =>
        {
            Some("--remedies exact reads the next pieces ahead, as the program is".to_owned())
        }
        Evidence::Chatter { settings, .. } if settings > 0 && finding.removed == 0 => Some(
            "--remedies exact answers what was set before, where nothing but reads lies between, as the program is"
                .to_owned(),
        ),
        Evidence::Walk { .. } => switch(finding),
        _ => None,
    }
}

/// What takes out most of a loop that is left, or why nothing does.
pub(crate) fn switch(finding: &Finding) -> Option<String> {
    if finding.code != Code::Loop {
        return None;
    }
    let most = finding.left.iter().max_by_key(|(_, trips)| **trips).map(|(obstacle, _)| *obstacle)?;
    let text = match most {
        Obstacle::Off => "`--remedies exact` removes it",
        Obstacle::OffAtItsLevel => "`--remedies exact --isolation repeatable-read` removes it",
        Obstacle::ReadCommitted => "READ COMMITTED: exact cannot; `--isolation repeatable-read` can",
        Obstacle::NoTransaction | Obstacle::OffOutside => {
            "outside of transactions: exact cannot; inside one at REPEATABLE READ it can"
        }
        Obstacle::Serializable => "SERIALIZABLE: exact cannot; at REPEATABLE READ it can",
        Obstacle::Pooler => {
            "behind a pooler exact cannot; put the gateway between the pooler and the database"
        }
        _ => return None,
    };
    Some(text.to_owned())
}

/// Whether a gateway with remedies has seen it.
fn is_told(obstacle: Obstacle) -> bool {
    !matches!(obstacle, Obstacle::Off | Obstacle::OffAtItsLevel | Obstacle::OffOutside)
}

fn reason(obstacle: Obstacle, finding: &Finding) -> String {
    match obstacle {
        Obstacle::NoTransaction => "outside of transactions".into(),
        Obstacle::ReadCommitted => "at READ COMMITTED".into(),
        Obstacle::Serializable => "at SERIALIZABLE".into(),
        Obstacle::LevelUnknown => "before the server had told the level".into(),
        Obstacle::StateUnknown => "while the session's state was not known".into(),
        Obstacle::Impure => match &finding.impure {
            Some(because) => format!("not known to only read ({})", cut(&clean(because), REASON_MAX)),
            None => "not known to only read".into(),
        },
        Obstacle::Wrote => "of transactions that did more than read".into(),
        Obstacle::Unforeseen => "not foreseen".into(),
        Obstacle::Near => "while remedies rested: the database is near".into(),
        Obstacle::Pooler => "behind a pooler: the session has no server session of its own".into(),
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
            left: left.iter().copied().collect(),
            impure: Some("function f() is not a built-in function known to be harmless".into()),
            waited_ns: 0,
            wire_ns: 0,
            evidence: Evidence::Walk { sources: Vec::new(), rows: (1, 10) },
            fix: String::new(),
        }
    }

    #[test]
    fn the_switch_is_the_one_that_removes_most() {
        let switch = |obstacles: &[_]| switch(&left(0, obstacles));
        assert_eq!(
            switch(&[(Obstacle::ReadCommitted, 8), (Obstacle::NoTransaction, 2)]).as_deref(),
            Some("READ COMMITTED: exact cannot; `--isolation repeatable-read` can")
        );
        assert_eq!(switch(&[(Obstacle::Off, 3)]).as_deref(), Some("`--remedies exact` removes it"));
        assert_eq!(switch(&[(Obstacle::Unforeseen, 3)]), None);
        assert_eq!(switch(&[]), None);
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
                 foreseen; 9,965 trips taken out by remedies"
            )
        );
    }
}
