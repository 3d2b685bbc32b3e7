//! Tables of the page: numbers, then a text.

use onetrip_ledger::ScopeTotals;
use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Comparison, Verdict};
use serde::Serialize;

use super::view::Statement;
use crate::Report;
use crate::clean::scope_name;
use crate::number::{self, count, counted, difference};
use crate::text::{network, sides};
use crate::verdict::{sentence, word};

/// Statements, scopes and budgets listed.
const ROWS_MAX: usize = 100;
/// Changes listed on each side.
const CHANGES_MAX: usize = 20;
/// Spans of a capture listed.
const RTT_ROWS_MAX: usize = 16;
/// The section of the checks.
pub(super) const CHECKS: &str = "budgets";
/// Columns of a scope's name.
const SCOPE_MAX: usize = 200;
/// Columns of a changed statement.
const CHANGED_MAX: usize = 400;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Table {
    pub(super) id: &'static str,
    /// Its name among the page's sections.
    pub(super) short: &'static str,
    title: String,
    lead: String,
    columns: Vec<&'static str>,
    text: &'static str,
    rows: Vec<Row>,
    more: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Row {
    numbers: Vec<Number>,
    text: Statement,
    is_sql: bool,
    class: &'static str,
}

/// A number as people read it, and as it is sorted.
#[derive(Debug, Clone, Serialize)]
struct Number {
    shown: String,
    value: Option<i64>,
}

impl Number {
    fn count(count: u64) -> Self {
        Self { shown: number::count(count), value: i64::try_from(count).ok() }
    }

    fn duration(nanoseconds: u64) -> Self {
        Self { shown: number::duration(nanoseconds), value: i64::try_from(nanoseconds).ok() }
    }

    fn difference(difference: i64) -> Self {
        Self { shown: number::difference(difference), value: Some(difference) }
    }

    fn shown(shown: String) -> Self {
        Self { shown, value: None }
    }
}

pub(super) fn tables(report: &Report<'_>) -> Vec<Table> {
    let tables = [
        statements(report),
        scopes(report),
        both_sides(report),
        both_sides_connections(report),
        connections(report),
        round_trips(report),
        budgets(report),
    ];
    let mut tables: Vec<Table> = tables.into_iter().flatten().collect();
    if let Some(comparison) = report.comparison() {
        tables.push(changes(comparison));
    }
    tables
}

fn statements(report: &Report<'_>) -> Option<Table> {
    let templates = &report.summary.templates;
    let rows = templates.iter().take(ROWS_MAX).map(|template| Row {
        numbers: vec![
            Number::count(template.trips),
            Number::count(template.executions),
            Number::count(template.rows),
            Number::duration(template.waited_ns),
            Number::duration(template.waited_max_ns),
        ],
        text: Statement::new(&template.text),
        is_sql: true,
        class: "",
    });
    (!templates.is_empty()).then(|| Table {
        id: "statements",
        short: "Statements",
        title: "Statements".into(),
        lead: "Most trips first.".into(),
        columns: vec!["trips", "runs", "rows", "waited", "slowest"],
        text: "statement",
        rows: rows.collect(),
        more: more(templates.len(), ROWS_MAX, "more statement", "more statements"),
    })
}

fn scopes(report: &Report<'_>) -> Option<Table> {
    let scopes = &report.summary.scopes;
    let of_requests = |scope: &ScopeTotals| {
        if scope.requests == 0 {
            return [(); 4].map(|()| Number::shown("–".into()));
        }
        let each = scope.trips as f64 / scope.requests as f64;
        [
            Number::count(scope.requests),
            Number { shown: format!("{each:.1}"), value: Some((each * 1_000.0) as i64) },
            Number::count(scope.request_trips_median),
            Number::count(scope.request_trips_max),
        ]
    };
    let rows = scopes.iter().take(ROWS_MAX).map(|scope| Row {
        numbers: [
            Number::count(scope.trips),
            Number::count(scope.statements),
            Number::duration(scope.waited_ns),
        ]
        .into_iter()
        .chain(of_requests(scope))
        .collect(),
        text: Statement::up_to(&scope_name(&scope.label), SCOPE_MAX),
        is_sql: false,
        class: "",
    });
    let (one, many) = if report.is_of_tests() { ("test", "Tests") } else { ("scope", "Scopes") };
    (scopes.len() > 1 || report.is_of_tests()).then(|| Table {
        id: "scopes",
        short: many,
        title: many.into(),
        lead: "What the work was for, most trips first.".into(),
        columns: vec!["trips", "statements", "waited", "requests", "trips each", "median", "most"],
        text: one,
        rows: rows.collect(),
        more: more(scopes.len(), ROWS_MAX, "more scope", "more scopes"),
    })
}

/// Where each millisecond went, by two captures.
fn both_sides(report: &Report<'_>) -> Option<Table> {
    let told = report.sides.filter(|told| told.totals.turns > 0)?;
    Some(Table {
        id: "sides",
        short: "Both captures",
        title: "Where each millisecond went, by both captures".into(),
        lead: sides::facts(told).join(" "),
        columns: sides::PART_COLUMNS.to_vec(),
        text: "where",
        rows: sides::parts(&told.totals).into_iter().map(plain).collect(),
        more: None,
    })
}

fn both_sides_connections(report: &Report<'_>) -> Option<Table> {
    let told = report.sides.filter(|told| told.totals.turns > 0)?;
    let all = usize::try_from(told.connections).unwrap_or(usize::MAX);
    Some(Table {
        id: "sides-connections",
        short: "Connections by both",
        title: "Connections by both captures".into(),
        lead: "Mean times of a turn, most turns first.".into(),
        columns: sides::PATH_COLUMNS.to_vec(),
        text: "connection",
        rows: sides::paths(told, ROWS_MAX).into_iter().map(plain).collect(),
        more: more(all, told.paths.len().min(ROWS_MAX), "more connection", "more connections"),
    })
}

/// Connections of a capture.
fn connections(report: &Report<'_>) -> Option<Table> {
    let network = report.network.filter(|network| !network.paths.is_empty())?;
    let all = usize::try_from(network.connections).unwrap_or(usize::MAX);
    Some(Table {
        id: "connections",
        short: "Connections",
        title: "Connections".into(),
        lead: "What their packets say, most turns first.".into(),
        columns: network::PATH_COLUMNS.to_vec(),
        text: "connection",
        rows: network::paths(network, ROWS_MAX).into_iter().map(plain).collect(),
        more: more(all, network.paths.len().min(ROWS_MAX), "more connection", "more connections"),
    })
}

/// Round-trip times over a capture.
fn round_trips(report: &Report<'_>) -> Option<Table> {
    let network = report.network.filter(|network| network.rtts.len() > 1)?;
    Some(Table {
        id: "round-trips",
        short: "Round-trip time",
        title: "Round-trip time over the capture".into(),
        lead: "As acknowledgements measured it.".into(),
        columns: network::RTT_COLUMNS.to_vec(),
        text: "when",
        rows: network::rtts(network, RTT_ROWS_MAX).into_iter().map(plain).collect(),
        more: None,
    })
}

fn plain((numbers, text): (Vec<String>, String)) -> Row {
    let numbers = numbers.into_iter().map(Number::shown).collect();
    Row { numbers, text: Statement::up_to(&text, SCOPE_MAX), is_sql: false, class: "" }
}

fn budgets(report: &Report<'_>) -> Option<Table> {
    let verdicts = report.worst_first();
    let row = |verdict: &&Verdict| Row {
        numbers: Vec::new(),
        text: Statement::up_to(&sentence(verdict), SCOPE_MAX),
        is_sql: false,
        class: word(verdict.ruling),
    };
    let all = verdicts.len();
    (all > 0).then(|| Table {
        id: CHECKS,
        short: "Checks",
        title: "Checks".into(),
        lead: String::new(),
        columns: Vec::new(),
        text: "limit",
        rows: verdicts.iter().take(ROWS_MAX).map(row).collect(),
        more: more(all, ROWS_MAX, "more check", "more checks"),
    })
}

fn changes(comparison: &Comparison) -> Table {
    let row = |change: &Change, text: &str, is_sql: bool| Row {
        numbers: vec![
            Number::count(change.before),
            Number::count(change.now),
            Number::difference(change.difference()),
        ],
        text: Statement::up_to(text, CHANGED_MAX),
        is_sql,
        class: if change.difference() < 0 { "better" } else { "worse" },
    };
    let mut rows: Vec<Row> = Vec::new();
    for better in [true, false] {
        let findings =
            comparison.findings.iter().filter(|(_, _, change)| (change.difference() < 0) == better);
        rows.extend(findings.take(CHANGES_MAX).map(|(code, statement, change)| {
            let text = format!("avoidable trips of {code} {}: {statement}", code.title());
            row(change, text.trim_end_matches(": "), false)
        }));
        let statements =
            comparison.statements.iter().filter(|(_, change)| (change.difference() < 0) == better);
        rows.extend(statements.take(CHANGES_MAX).map(|(text, change)| row(change, text, true)));
    }
    let all = comparison.findings.len() + comparison.statements.len();
    let trips = comparison.trips;
    let lead = match trips.difference() {
        0 => format!("{}, as before.", counted(trips.now, "trip", "trips")),
        more => format!(
            "{} before, {} now ({}). What got better comes first.",
            counted(trips.before, "trip", "trips"),
            count(trips.now),
            difference(more)
        ),
    };
    Table {
        id: "comparison",
        short: "Comparison",
        title: "Compared with the earlier run".into(),
        lead,
        columns: vec!["before", "now", "change"],
        text: "statement or finding",
        more: more(all, rows.len(), "more change", "more changes"),
        rows,
    }
}

fn more(all: usize, shown: usize, one: &str, many: &str) -> Option<String> {
    let more = all.saturating_sub(shown) as u64;
    (more > 0).then(|| counted(more, one, many))
}
