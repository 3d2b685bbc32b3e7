//! What ran, what was counted, where the time went.

use onetrip_ledger::{Difference, Gaps, MayNotEnd, PathTimes, Summary, Would};

use super::Page;
use crate::clean::{clean, cut, statement_text, width};
use crate::number::{bound, bytes, count, counted, duration, percent};
use crate::{Report, RunInfo};

/// Width of the labels.
const LABELS: usize = 11;
/// Columns of a statement that was answered wrongly.
const STATEMENT_MAX: usize = 60;
/// Width of a bar that stands for everything.
const BAR: u64 = 20;
/// Shortest bar that says anything.
const BAR_MIN: u64 = 8;

pub(super) fn show(report: &Report<'_>, page: &mut Page) {
    let facts = facts(report);
    if !facts.is_empty() {
        page.line("");
    }
    for (label, text) in facts {
        page.labelled(2, &format!("{label:<LABELS$}"), &text);
    }
    let doubts = doubts(report);
    if !doubts.is_empty() {
        page.line("");
    }
    let style = page.style;
    for doubt in doubts {
        page.paragraph(&format!("  {doubt}"), |line| style.mark(line));
    }
}

/// What ran and what was counted, each with its name; the texts are not yet safe to show.
pub(crate) fn facts(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let summary = report.summary;
    let mut facts = Vec::new();
    if let Some(run) = report.run {
        if !run.command.is_empty() {
            facts.push(("program", program(run)));
        }
        if let Some(redirected) = &run.redirected {
            let connections = match redirected.connections {
                Some(connections) => counted(connections, "connection", "connections"),
                None => "connections".to_owned(),
            };
            facts.push(("redirected", format!("{connections} to the gateway, by {}", redirected.by)));
        }
        if !run.pointed.is_empty() {
            facts.push(("environment", format!("{} pointed at the gateway", run.pointed.join(", "))));
        }
    }
    if !summary.upstream.is_empty() {
        facts.push(("database", database(summary)));
    }
    if summary.trips.total > 0 {
        facts.push(("trips", trips(summary)));
        if !summary.removed.is_empty() {
            facts.push(("removed", removed(summary)));
        }
        if summary.verified > 0 {
            facts.push(("verified", verified(summary)));
        }
        if !summary.would.is_empty() {
            facts.push(("removable", removable(summary)));
        }
        facts.push(("connections", connections(summary)));
        facts.push(("statements", statements(summary)));
        facts.push(("bytes", volume(summary)));
    }
    if let Some(trace) = report.run.and_then(|run| run.trace.as_ref()) {
        facts.push(("trace", trace.clone()));
    }
    facts
}

fn program(run: &RunInfo) -> String {
    let words: Vec<String> = run.command.iter().map(|word| quoted(word)).collect();
    let words = words.join(" ");
    match (run.exit_code, run.signal) {
        (Some(code), _) => format!("{words}  (exit code {code})"),
        (None, Some(signal)) => format!("{words}  (ended by signal {signal})"),
        (None, None) => words,
    }
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_./=:@%+,".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", clean(word).replace('\'', "'\\''"))
    }
}

fn database(summary: &Summary) -> String {
    match summary.rtt_min_us {
        Some(rtt) => format!("{}, {} away", summary.upstream, duration(u64::from(rtt) * 1000)),
        None => summary.upstream.clone(),
    }
}

fn trips(summary: &Summary) -> String {
    let trips = summary.trips;
    format!(
        "{}{}: {} to connect, {} for work, in {}",
        bound(summary),
        count(trips.total),
        count(trips.connect),
        count(trips.work()),
        duration(summary.elapsed_ns)
    )
}

/// Trips that remedies took out, by remedy.
fn removed(summary: &Summary) -> String {
    let all: u64 = summary.removed.values().sum();
    let parts: Vec<String> =
        summary.removed.iter().map(|(remedy, trips)| format!("{} by {remedy}", count(*trips))).collect();
    format!("{}: {}", counted(all, "trip", "trips"), parts.join(", "))
}

/// Trips that remedies would have taken out, by remedy.
fn removable(summary: &Summary) -> String {
    let parts = |of: fn(&Would) -> u64, by: &str| {
        let parts: Vec<String> = summary
            .would
            .iter()
            .filter(|(_, would)| of(would) > 0)
            .map(|(remedy, would)| format!("{}{by} {remedy}", count(of(would))))
            .collect();
        parts.join(", ")
    };
    let Would { exact, isolated } = summary.would_remove();
    let by_exact = match exact {
        0 => String::new(),
        exact => format!(
            "at least {} by --remedies exact: {}",
            counted(exact, "trip", "trips"),
            parts(|would| would.exact, " by")
        ),
    };
    let by_level = match (isolated, exact) {
        (0, _) => return by_exact,
        (isolated, 0) => format!(
            "at least {} by --remedies exact --isolation repeatable-read: {}",
            counted(isolated, "trip", "trips"),
            parts(|would| would.isolated, " by")
        ),
        (_, _) => {
            let more = parts(|would| would.isolated, " more by");
            format!("; {more} with --isolation repeatable-read")
        }
    };
    by_exact + &by_level
}

/// Answers from memory that were run for real as well.
fn verified(summary: &Summary) -> String {
    let answers = counted(summary.verified, "answer", "answers");
    format!("{answers} from memory run for real as well: {} differed", count(summary.differed))
}

fn connections(summary: &Summary) -> String {
    let mut text = count(summary.connections);
    let mut drivers: Vec<_> = summary.drivers.iter().collect();
    drivers.sort_by_key(|(_, connections)| std::cmp::Reverse(**connections));
    let drivers: Vec<String> = match drivers.as_slice() {
        [(only, _)] => vec![only.name().into()],
        many => {
            many.iter().map(|(driver, number)| format!("{} {}", count(**number), driver.name())).collect()
        }
    };
    if !drivers.is_empty() {
        text.push_str(": ");
        text.push_str(&drivers.join(", "));
    }
    if summary.open_connections > 0 {
        text.push_str(&format!("; {} still open", count(summary.open_connections)));
    }
    text
}

fn statements(summary: &Summary) -> String {
    let failed = match summary.errors {
        0 => String::new(),
        errors => format!(", {} failed", count(errors)),
    };
    format!("{}{failed}, {}", count(summary.statements), counted(summary.rows, "row", "rows"))
}

fn volume(summary: &Summary) -> String {
    format!("{} sent, {} received", bytes(summary.bytes_sent), bytes(summary.bytes_received))
}

/// A statement that `--isolation` may keep from ending.
fn may_not_end(MayNotEnd { statement, failures }: &MayNotEnd) -> String {
    let what = match failures {
        0 => "ran for longer than 10 s".to_owned(),
        failures => format!("failed {} times in a row with 23505 or 40001", count(*failures)),
    };
    let statement = match statement.as_str() {
        "" => "a statement".to_owned(),
        text => cut(statement_text(text), STATEMENT_MAX),
    };
    format!(
        "MAY NEVER END under --isolation repeatable-read: {statement}, which {what}; leave the option out, or take the loop out of \
         its transaction"
    )
}

/// What keeps a count from being exact, or a reader from trusting it: one line each.
pub(crate) fn doubts(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let mut doubts: Vec<String> = summary
        .differences
        .iter()
        .map(|Difference { statement, at }| {
            let statement = cut(statement_text(statement), STATEMENT_MAX);
            let remedy =
                "that session got no more answers from memory; --remedies exact,-loops leaves them out";
            format!("WRONG ANSWER from memory, from byte {} on: {statement}; {remedy}", count(*at))
        })
        .collect();
    doubts.extend(summary.may_not_end.iter().map(may_not_end));
    let trips = summary.trips;
    if trips.may_share > 0 {
        let settle = match summary.settle_ns {
            0 => "5ms".into(),
            settle => format!("{}ms", (settle * 2).div_ceil(1_000_000)),
        };
        // Who reads a capture cannot ask the program to wait.
        let how = if report.network.is_some() { String::new() } else { format!("; --settle {settle} tells") };
        doubts.push(format!(
            "≤: {} may have been part of the trip before, as the client pipelines{how}",
            counted(trips.may_share, "trip", "trips"),
        ));
    }
    let mut say = |number: u64, one: &str, many: &str, what: &str| {
        if number > 0 {
            doubts.push(format!("{} {what}", counted(number, one, many)));
        }
    };
    say(summary.unanswered, "unit", "units", "never answered: the connection ended first");
    let forwarded = |what: &str| match report.network {
        Some(_) => what.to_owned(),
        None => format!("{what}, forwarded"),
    };
    say(summary.unasked_replies, "reply", "replies", &forwarded("that nobody asked for"));
    say(summary.undecoded, "message", "messages", &forwarded("that did not decode"));
    doubts.extend(gaps(&summary.gaps));
    if let Some(error) = report.run.and_then(|run| run.trace_error.as_ref()) {
        doubts.push(format!("the trace does not hold the whole run: {}; the counts here do", clean(error)));
    }
    doubts
}

/// What is missing from the records: one line each.
fn gaps(gaps: &Gaps) -> Vec<String> {
    let mut said = Vec::new();
    if gaps.lost_bytes > 0 {
        said.push(format!(
            "≥: {} of records lost, as the disk was full, it or the reader too slow, or a connection not understood; all \
             counts are lower bounds",
            bytes(gaps.lost_bytes)
        ));
    }
    if gaps.damaged_blocks > 0 {
        let places = counted(gaps.damaged_blocks, "place", "places");
        let size = bytes(gaps.damaged_bytes);
        said.push(format!("≥: the trace is damaged in {places}, {size}; all counts are lower bounds"));
    }
    if gaps.is_open {
        let tail = match gaps.tail_bytes {
            0 => String::new(),
            tail => format!(", and its last {tail} bytes are no complete block"),
        };
        said.push(format!(
            "the trace has no end: it is still being written, or its writer was killed{tail}; what is there is counted"
        ));
    }
    if gaps.cut_exchanges > 0 {
        let units = counted(gaps.cut_exchanges, "unit was", "units were");
        said.push(format!(
            "{units} too long to be kept whole (1 MiB); counted in full, findings may miss a part"
        ));
    }
    if gaps.untold_statements > 0 {
        let runs = counted(gaps.untold_statements, "statement", "statements");
        said.push(format!(
            "{runs} counted without their text, because there are too many different ones; findings may miss some"
        ));
    }
    if gaps.unscoped_statements > 0 {
        let runs = counted(gaps.unscoped_statements, "statement", "statements");
        said.push(format!("{runs} counted without their scope or request, because there are too many"));
    }
    said
}

/// All of it.
pub(crate) fn all_time(times: PathTimes) -> u64 {
    times.server_ns.saturating_add(times.wire_ns).saturating_add(times.think_ns)
}

/// Where the time went: name, nanoseconds, meaning.
pub(crate) fn parts(times: PathTimes) -> [(&'static str, u64, &'static str); 3] {
    [
        ("server", times.server_ns, "the database"),
        ("wire", times.wire_ns, "the path to it and back"),
        ("think", times.think_ns, "the program between trips"),
    ]
}

pub(super) fn show_times(summary: &Summary, page: &mut Page) {
    let all = all_time(summary.times);
    if all == 0 {
        return;
    }
    page.heading(&format!(
        "Where the time went: {} over {}",
        duration(all),
        counted(summary.connections, "connection", "connections")
    ));
    for (name, time, what) in parts(summary.times) {
        let numbers = format!("  {name:<6}  {:>12}  {:>5}  ", duration(time), percent(time, all));
        let longest = parts(summary.times).iter().map(|(_, _, what)| width(what)).max().unwrap_or(0);
        // A narrow screen has a shorter bar, or none.
        let room = page.width.saturating_sub(width(&numbers) + longest + 2) as u64;
        let whole = if room < BAR_MIN { 0 } else { room.min(BAR) };
        let filled = (u128::from(time) * u128::from(whole) + u128::from(all) / 2) / u128::from(all);
        let bar = "━".repeat(filled as usize);
        let rest = " ".repeat(whole as usize - filled as usize);
        let gap = if whole > 0 { "  " } else { "" };
        page.line(format!("{numbers}{}{rest}{gap}{}", page.style.mark(&bar), page.style.dim(what)));
    }
}
