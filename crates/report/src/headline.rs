//! The one sentence that matters.

use onetrip_ledger::{Code, Summary};

use crate::number::{bound, count, counted, percent};
use crate::remedies::switch;

/// Avoidable trips that are worth a change if they are also [`SHARE_MIN_PERCENT`] of all trips.
const TRIPS_MIN: u64 = 5;
/// Share of all trips, in per cent.
const SHARE_MIN_PERCENT: u64 = 5;
/// Waiting that is worth a change if it is also [`WAITED_MIN_PERCENT`] of all waiting, in nanoseconds.
const WAITED_MIN_NS: u64 = 5_000_000;
/// Share of the time that trips took, in per cent.
const WAITED_MIN_PERCENT: u64 = 1;
/// Patterns that the sentence names.
const PATTERNS_MAX: usize = 2;

/// Trips that the findings' fixes save together.
pub(crate) fn avoidable(summary: &Summary) -> u64 {
    let sum = summary.findings.iter().fold(0_u64, |sum, finding| sum.saturating_add(finding.avoidable));
    sum.min(summary.trips.total)
}

/// Time waited in them, in nanoseconds.
pub(crate) fn avoidable_ns(summary: &Summary) -> u64 {
    summary.findings.iter().fold(0, |sum, finding| sum.saturating_add(finding.waited_ns))
}

pub(crate) fn is_worth_doing(summary: &Summary) -> bool {
    let trips = avoidable(summary);
    let waited = avoidable_ns(summary);
    let waited_all = summary.times.server_ns.saturating_add(summary.times.wire_ns);
    let many = trips >= TRIPS_MIN && is_share(trips, summary.trips.total, SHARE_MIN_PERCENT);
    let long = waited >= WAITED_MIN_NS && is_share(waited, waited_all, WAITED_MIN_PERCENT);
    trips > 0 && (many || long)
}

pub(crate) fn sentence(summary: &Summary) -> String {
    let trips = summary.trips.total;
    if trips == 0 && summary.connections == 0 {
        return "No connection reached the gateway.".into();
    }
    let trips = format!("{}{}", bound(summary), counted(trips, "round trip", "round trips"));
    if summary.connections == 0 {
        return format!("{trips}, and no session opened: every attempt to connect failed.");
    }
    if !is_worth_doing(summary) {
        return format!("{trips}; nothing worth doing here.");
    }
    let avoidable = avoidable(summary);
    let share = percent(avoidable, summary.trips.total);
    let patterns = patterns(summary);
    let named = match patterns.as_slice() {
        [(_, only)] => format!("all {only}"),
        patterns => {
            let shown = patterns.iter().take(PATTERNS_MAX);
            let named: Vec<_> =
                shown.map(|(avoidable, pattern)| format!("{} {pattern}", count(*avoidable))).collect();
            named.join(", ")
        }
    };
    format!("{trips}, {} of them avoidable ({share}): {named}.", count(avoidable))
}

/// Avoidable trips by pattern, most first, each with the words that go on after their number.
fn patterns(summary: &Summary) -> Vec<(u64, String)> {
    let mut patterns: Vec<(u64, String)> = Code::ALL
        .into_iter()
        .filter_map(|code| {
            let of_code = || summary.findings.iter().filter(move |finding| finding.code == code);
            let avoidable = of_code().fold(0_u64, |sum, finding| sum.saturating_add(finding.avoidable));
            let occurrences = of_code().fold(0_u64, |sum, finding| sum.saturating_add(finding.occurrences));
            let most = of_code().max_by_key(|finding| finding.avoidable).and_then(switch);
            let switch = most.map_or(String::new(), |switch| format!(" ({switch})"));
            (avoidable > 0).then(|| (avoidable, pattern(code, occurrences) + &switch))
        })
        .collect();
    patterns.sort_by_key(|(avoidable, _)| std::cmp::Reverse(*avoidable));
    patterns
}

fn pattern(code: Code, occurrences: u64) -> String {
    match (code, occurrences) {
        (Code::Loop, 0 | 1) => "in one N+1 loop".into(),
        (Code::Loop, loops) => format!("in {} N+1 loops", count(loops)),
        (Code::RowByRow, _) => "in row-by-row writes".into(),
        (Code::CommitPerRow, _) => "in committing row by row".into(),
        (Code::TinyFetch, _) => "in tiny fetches".into(),
        (Code::Repeated, _) => "in identical queries".into(),
        (Code::TransactionAlone, _) => "in BEGIN and COMMIT travelling alone".into(),
        (Code::PreparePerRun, _) => "in preparing again and again".into(),
        (Code::ConnectionPerQuery, _) => "in opening connections".into(),
        (Code::OnePerValue, _) => "in one query per value".into(),
        (Code::LobChatter, _) => "in reading large objects by pieces".into(),
        (Code::SessionChatter, _) => "in session chatter".into(),
        (Code::Sequence, _) => "in independent statements in sequence".into(),
        (Code::ReadBeforeWrite, _) => "in reading rows before changing them".into(),
        (Code::SequenceTrip, _) => "in fetching keys before INSERTs".into(),
        (Code::ExistsThenInsert, _) => "in looking before INSERTs".into(),
        (Code::RollbackOfRead, _) => "in rolling back reads".into(),
    }
}

fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use onetrip_ledger::{Driver, Evidence, Finding, PathTimes, TripTotals};

    use super::*;

    fn finding(code: Code, occurrences: u64, avoidable: u64, waited_ns: u64) -> Finding {
        Finding {
            code,
            statements: Vec::new(),
            driver: Driver::Unknown,
            scopes: Vec::new(),
            occurrences,
            trips: avoidable + 1,
            avoidable,
            removed: 0,
            left: BTreeMap::new(),
            impure: None,
            waited_ns,
            wire_ns: 0,
            evidence: Evidence::Rows { rows: 0, transactions: 0 },
            fix: String::new(),
        }
    }

    fn run(total: u64, server_ns: u64, findings: Vec<Finding>) -> Summary {
        Summary {
            trips: TripTotals { total, connect: 0, may_share: 0 },
            connections: 1,
            times: PathTimes { server_ns, ..PathTimes::default() },
            findings,
            ..Summary::default()
        }
    }

    #[test]
    fn the_sentence_names_the_patterns_that_cost_most_trips() {
        let one = run(412, 0, vec![finding(Code::Loop, 1, 400, 0)]);
        assert_eq!(sentence(&one), "412 round trips, 400 of them avoidable (97 %): all in one N+1 loop.");
        let many = run(
            412,
            0,
            vec![
                finding(Code::TinyFetch, 1, 8, 0),
                finding(Code::Loop, 2, 90, 0),
                finding(Code::TransactionAlone, 1, 4, 0),
                finding(Code::Loop, 1, 10, 0),
            ],
        );
        assert_eq!(
            sentence(&many),
            "412 round trips, 112 of them avoidable (27 %): 100 in 3 N+1 loops, 8 in tiny fetches."
        );
    }

    #[test]
    fn few_and_short_trips_are_not_worth_doing() {
        let worth = |total, waited_ns, avoidable| {
            is_worth_doing(&run(total, 1_000_000_000, vec![finding(Code::Loop, 1, avoidable, waited_ns)]))
        };
        assert!(!worth(23, 0, 0), "nothing is avoidable");
        assert!(!worth(8, 600_000, 4), "half of the trips, but four short ones");
        assert!(worth(8, 600_000, 5), "a loop over a small table on this machine");
        assert!(worth(8, 52_000_000, 4), "four trips of 13 ms");
        assert!(!worth(1_000, 4_000_000, 49), "below 5 % and below 5 ms");
        assert!(worth(1_000, 4_000_000, 50), "5 % of the trips");
        assert!(!worth(1_000, 9_000_000, 49), "9 ms of a second is less than 1 %");
        assert!(worth(1_000, 10_000_000, 49), "1 % of the waiting");
    }

    #[test]
    fn a_run_that_never_connected_is_told_apart_from_one_that_failed_to() {
        assert_eq!(sentence(&Summary::default()), "No connection reached the gateway.");
        let refused =
            Summary { trips: TripTotals { total: 2, connect: 2, may_share: 0 }, ..Summary::default() };
        assert_eq!(
            sentence(&refused),
            "2 round trips, and no session opened: every attempt to connect failed."
        );
        assert_eq!(sentence(&run(1, 0, Vec::new())), "1 round trip; nothing worth doing here.");
    }
}
