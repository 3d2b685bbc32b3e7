//! The one sentence that matters.

use onetrip_ledger::judge::Ruling;
use onetrip_ledger::{Code, NoSession, Refusal, Summary};

use crate::clean::{clean, cut};
use crate::number::{bound, count, counted, percent};
use crate::remedies::removes;
use crate::sqlstate::{condition, way_in};
use crate::{Report, RunInfo};

/// Avoidable trips that are worth a change if they are also [`SHARE_MIN_PERCENT`] of all trips.
const TRIPS_MIN: u64 = 5;
/// Share of all trips, in per cent.
const SHARE_MIN_PERCENT: u64 = 5;
/// Waiting that is worth a change if it is also [`WAITED_MIN_PERCENT`] of all waiting, in nanoseconds.
const WAITED_MIN_NS: u64 = 5_000_000;
/// Share of the time that trips took, in per cent.
const WAITED_MIN_PERCENT: u64 = 1;
/// Columns of the server's words, or of a reason.
const REASON_MAX: usize = 300;
/// Below this distance, in microseconds, remedies are inactive.
const NEAR_US: u32 = 200;
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

/// The one sentence, or two: what kept the run from being judged comes first.
pub(crate) fn sentence(report: &Report<'_>) -> String {
    let summary = report.summary;
    let failure = report.run.and_then(RunInfo::failure);
    let seen = match (summary.no_session(), report.network) {
        (Some(_), Some(_)) if summary.trips.total == 0 => "The capture holds no connection with data.".into(),
        (Some(why), _) => no_session(why),
        (None, _) => work(summary, failure.is_some()),
    };
    let seen = match failure {
        Some(failure) => format!("The program failed ({failure}). {seen}"),
        None => seen,
    };
    match report.reasons().as_slice() {
        [] => seen,
        // What was seen says the same, and what to do.
        [_, ..] if summary.sessions == 0 => format!("Could not be judged. {seen}"),
        [first, more @ ..] => {
            // What has failed has, whatever else is not known.
            let part = if report.ruling() == Ruling::Failed { "Not all could be" } else { "Could not be" };
            let more = match more.len() {
                0 => String::new(),
                more => format!("; {}", counted(more as u64, "more reason", "more reasons")),
            };
            let reason = format!("{}{more}", cut(first, REASON_MAX));
            let end = if reason.ends_with('?') { "" } else { "." };
            format!("{part} judged: {reason}{end} {seen}")
        }
    }
}

/// Why no session came about, in the server's words, and the way out.
fn no_session(why: NoSession<'_>) -> String {
    match why {
        NoSession::Refused(Refusal { sqlstate, message, .. }) => {
            let words = cut(message, REASON_MAX);
            let way = way_in(sqlstate, message).map_or(String::new(), |way| format!(" {way}"));
            format!("No session was opened: {} ({}).{way}", words.trim_end_matches('.'), clean(sqlstate))
        }
        NoSession::Left { clients } => format!(
            "No session was opened: {} left before the server had let them in. Have they a password?",
            counted(clients, "client", "clients")
        ),
        NoSession::AskedForEncryption => {
            "No session was opened: clients asked for encryption, and left. If the gateway offers it, they check \
             certificates: give it one that they trust (--tls-cert, --tls-key), or let them use sslmode=require and no \
             root certificate (sslrootcert, ~/.postgresql/root.crt). Otherwise add --tls, or let them use \
             sslmode=prefer or disable."
                .into()
        }
        NoSession::Unreadable => "No session is in what could be read and understood.".into(),
        NoSession::Unreached => "No connection reached the gateway.".into(),
    }
}

fn work(summary: &Summary, has_failed: bool) -> String {
    let trips = counted(summary.trips.total, "round trip", "round trips");
    let trips = format!("{}{trips}", bound(summary));
    let errors = if has_failed { errors(summary) } else { String::new() };
    if !is_worth_doing(summary) {
        let calm = if has_failed { "" } else { "; nothing worth doing here" };
        return format!("{trips}{calm}.{errors}");
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
    let removable = removable(summary);
    format!("{trips}, {} avoidable ({share}): {named}.{removable}{errors}", count(avoidable))
}

/// What remedies would have removed, as a sentence.
fn removable(summary: &Summary) -> String {
    let trips = |trips| counted(trips, "round trip", "round trips");
    let Some(removes) = removes(summary.would_remove(), trips) else { return String::new() };
    let is_far = summary.rtt_min_us.is_some_and(|rtt| rtt >= NEAR_US);
    let where_far = if is_far { "" } else { ", where the database is 0.2 ms away or farther" };
    format!(" Without a change of code, {removes}{where_far}.")
}

/// What the server refused; its words may hold values, so that only the SQLSTATE is told.
fn errors(summary: &Summary) -> String {
    let Some((sqlstate, most)) = summary.errors_by_state.first() else { return String::new() };
    let condition = condition(sqlstate).map_or(String::new(), |condition| format!(" ({condition})"));
    let often = if *most == summary.errors { "" } else { ", most often" };
    let statements = counted(summary.errors, "statement", "statements");
    format!(" The server refused {statements}{often} with {}{condition}.", clean(sqlstate))
}

/// Avoidable trips by pattern, most first, each with the words that follow their number.
fn patterns(summary: &Summary) -> Vec<(u64, String)> {
    let mut patterns: Vec<(u64, String)> = Code::ALL
        .into_iter()
        .filter_map(|code| {
            let of_code = || summary.findings.iter().filter(move |finding| finding.code == code);
            let avoidable = of_code().fold(0_u64, |sum, finding| sum.saturating_add(finding.avoidable));
            let occurrences = of_code().fold(0_u64, |sum, finding| sum.saturating_add(finding.occurrences));
            (avoidable > 0).then(|| (avoidable, pattern(code, occurrences)))
        })
        .collect();
    patterns.sort_by_key(|(avoidable, _)| std::cmp::Reverse(*avoidable));
    patterns
}

fn pattern(code: Code, occurrences: u64) -> String {
    let words = match (code, occurrences) {
        (Code::Loop, 2..) => return format!("by {} N+1 loops", count(occurrences)),
        (Code::Loop, _) => "an N+1 loop",
        (Code::RowByRow, _) => "writing row by row",
        (Code::CommitPerRow, _) => "committing row by row",
        (Code::TinyFetch, _) => "a tiny fetch size",
        (Code::Repeated, _) => "identical queries",
        (Code::TransactionAlone, _) => "BEGIN and COMMIT sent alone",
        (Code::PreparePerRun, _) => "preparing a statement again",
        (Code::ConnectionPerQuery, _) => "opening connections",
        (Code::OnePerValue, _) => "one query per value",
        (Code::LobChatter, _) => "reading large objects in pieces",
        (Code::SessionChatter, _) => "session chatter",
        (Code::Sequence, _) => "independent statements in sequence",
        (Code::ReadBeforeWrite, _) => "reading rows before changing them",
        (Code::SequenceTrip, _) => "fetching keys before INSERT",
        (Code::ExistsThenInsert, _) => "looking before INSERT",
        (Code::RollbackOfRead, _) => "rolling back reads",
    };
    format!("by {words}")
}

fn is_share(part: u64, whole: u64, percent: u64) -> bool {
    u128::from(part) * 100 >= u128::from(whole) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::str::FromStr;

    use onetrip_ledger::judge::{Limit, Rules};
    use onetrip_ledger::{
        Driver, Evidence, Finding, Gaps, PathTimes, Remedy, ScopeTotals, TripTotals, Would,
    };

    use super::*;

    fn finding(code: Code, occurrences: u64, avoidable: u64, waited_ns: u64) -> Finding {
        Finding {
            code,
            statements: Vec::new(),
            driver: Driver::UNKNOWN,
            scopes: Vec::new(),
            occurrences,
            trips: avoidable + 1,
            avoidable,
            removed: 0,
            would: Would::default(),
            left: BTreeMap::new(),
            impure: None,
            waited_ns,
            wire_ns: 0,
            evidence: Evidence::Rows { rows: 0, transactions: 0 },
            spots: Vec::new(),
            sites: Vec::new(),
            fix: String::new(),
        }
    }

    fn run(total: u64, server_ns: u64, findings: Vec<Finding>) -> Summary {
        Summary {
            trips: TripTotals { total, connect: 0, may_share: 0 },
            connections: 1,
            sessions: 1,
            times: PathTimes { server_ns, ..PathTimes::default() },
            findings,
            ..Summary::default()
        }
    }

    #[test]
    fn the_sentence_names_the_patterns_that_cost_most_trips() {
        let one = run(412, 0, vec![finding(Code::Loop, 1, 400, 0)]);
        assert_eq!(
            sentence(&Report::new(&one)),
            "412 round trips, 400 avoidable (97 %): all by an N+1 loop."
        );
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
            sentence(&Report::new(&many)),
            "412 round trips, 112 avoidable (27 %): 100 by 3 N+1 loops, 8 by a tiny fetch size."
        );
    }

    #[test]
    fn what_remedies_would_remove_is_a_sentence_of_its_own() {
        let said = |would: &[(Remedy, Would)], rtt_min_us| {
            let found = vec![finding(Code::Loop, 1, 400, 0)];
            let would = would.iter().copied().collect();
            sentence(&Report::new(&Summary { would, rtt_min_us, ..run(412, 0, found) }))
        };
        let begin = (Remedy::Begin, Would { exact: 2, isolated: 0 });
        let loops = (Remedy::Loops, Would { exact: 0, isolated: 380 });
        let found = "412 round trips, 400 avoidable (97 %): all by an N+1 loop.";
        assert_eq!(said(&[], Some(13_000)), found, "no switch removes it");
        assert_eq!(
            said(&[begin], Some(13_000)),
            format!("{found} Without a change of code, `--remedies exact` removes at least 2 round trips.")
        );
        assert_eq!(
            said(&[begin, loops], Some(13_000)),
            format!(
                "{found} Without a change of code, `--remedies exact` removes at least 2 round trips; with `--isolation \
                 repeatable-read`, 382."
            )
        );
        for near in [Some(90), None] {
            assert_eq!(
                said(&[loops], near),
                format!(
                    "{found} Without a change of code, `--remedies exact --isolation repeatable-read` removes at least 380 \
                     round trips, where the database is 0.2 ms away or farther."
                )
            );
        }
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

    fn refused(message: &str, sqlstate: &str) -> Summary {
        let refusal = Refusal { sqlstate: sqlstate.into(), message: message.into(), sessions: 2 };
        let trips = TripTotals { total: 2, connect: 2, may_share: 0 };
        Summary { trips, connections: 2, refusals: vec![refusal], ..Summary::default() }
    }

    #[test]
    fn a_run_without_a_session_says_so_in_the_servers_words_and_what_to_do() {
        let said = |summary: &Summary| sentence(&Report::new(summary));
        assert_eq!(said(&Summary::default()), "No connection reached the gateway.");
        assert_eq!(
            said(&refused("password authentication failed for user \"shop\"", "28P01")),
            "No session was opened: password authentication failed for user \"shop\" (28P01). Check the user and the \
             password that the program has."
        );
        let unknown = said(&refused("role \"shop\" does not exist", "28000"));
        assert!(
            unknown.ends_with("(28000). Check the user that the program names, and its right to log in."),
            "{unknown}"
        );
        let scarce = said(&refused("onetrip is out of file descriptors, so it cannot connect", "53300"));
        assert!(scarce.contains("ulimit -n") && !scarce.contains("max_connections"), "{scarce}");
        let kept_out = said(&refused("no pg_hba.conf entry for host \"10.0.0.7\"", "28000"));
        assert!(kept_out.contains("has to let this user in"), "{kept_out}");
        assert_eq!(said(&refused("no\u{1b}[31m way.", "X")), "No session was opened: no\\u{1b}[31m way (X).");
        let trips = TripTotals { total: 1, connect: 1, may_share: 0 };
        let encrypted = Summary { trips, ..Summary::default() };
        assert!(said(&encrypted).contains("asked for encryption"), "{}", said(&encrypted));
        assert!(said(&encrypted).contains("sslmode=require and no root certificate"), "{}", said(&encrypted));
        let asked = Summary { connections: 3, ..encrypted };
        assert!(said(&asked).contains("3 clients left before"), "{}", said(&asked));
        assert_eq!(said(&run(1, 0, Vec::new())), "1 round trip; nothing worth doing here.");
    }

    #[test]
    fn a_program_that_failed_is_never_told_that_nothing_is_worth_doing() {
        let program = |exit_code, signal| RunInfo { exit_code, signal, ..RunInfo::default() };
        let said =
            |summary: &Summary, run: &RunInfo| sentence(&Report { run: Some(run), ..Report::new(summary) });
        let errors = vec![("42P01".to_owned(), 2), ("57014".to_owned(), 1)];
        let calm = Summary { errors: 3, errors_by_state: errors, ..run(7, 0, Vec::new()) };
        assert_eq!(said(&calm, &program(Some(0), None)), "7 round trips; nothing worth doing here.");
        assert_eq!(
            said(&calm, &program(Some(3), None)),
            "The program failed (exit code 3). 7 round trips. The server refused 3 statements, most often with 42P01 \
             (undefined table)."
        );
        assert_eq!(
            said(&run(7, 0, Vec::new()), &program(None, Some(9))),
            "The program failed (signal 9). 7 round trips."
        );
        assert_eq!(
            said(&Summary::default(), &program(Some(1), None)),
            "The program failed (exit code 1). No connection reached the gateway."
        );
    }

    #[test]
    fn what_could_not_be_judged_says_so_first() {
        let rules = |text: &str| Rules { limits: vec![text.parse().unwrap()], ..Rules::default() };
        let said = |summary: &Summary| {
            let judgement = rules("trips=1000").judge(summary);
            sentence(&Report { judgement: Some(&judgement), ..Report::new(summary) })
        };
        assert_eq!(said(&Summary::default()), "Could not be judged. No connection reached the gateway.");
        let gaps = Gaps { is_open: true, ..Gaps::default() };
        assert_eq!(
            said(&Summary { gaps, ..run(7, 0, Vec::new()) }),
            "Could not be judged: the trace has no end: it is still being written, or its writer was killed. 7 round \
             trips; nothing worth doing here."
        );
        assert_eq!(said(&run(7, 0, Vec::new())), "7 round trips; nothing worth doing here.");
        // What is damaged may hold the session.
        let gaps = Gaps { damaged_blocks: 1, damaged_bytes: 90, ..Gaps::default() };
        assert_eq!(
            said(&Summary { gaps, ..Summary::default() }),
            "Could not be judged. No session is in what could be read and understood."
        );
    }

    #[test]
    fn a_reason_that_ends_with_a_question_has_no_full_stop() {
        let summary = Summary {
            scopes: vec![ScopeTotals { label: "import".into(), ..ScopeTotals::default() }],
            ..run(7, 0, Vec::new())
        };
        let limit = Limit { scope: Some("improt".into()), ..Limit::from_str("trips=5").unwrap() };
        let judgement = Rules { limits: vec![limit], ..Rules::default() }.judge(&summary);
        assert_eq!(
            sentence(&Report { judgement: Some(&judgement), ..Report::new(&summary) }),
            "Could not be judged: scope \"improt\" did not occur; did you mean \"import\"? 7 round trips; nothing worth \
             doing here."
        );
    }
}
