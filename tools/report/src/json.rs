//! The report as one JSON object, with field names of its own so that they stay when the ledger changes.

use std::collections::BTreeMap;
use std::fmt::Write;

use onetrip_forecast::{Prediction, Price, Prices};
use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Rule, Ruling, Verdict};
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::sides::TwoSides;
use onetrip_ledger::{
    Difference, Evidence, Finding, MayNotEnd, Obstacle, PathTimes, Refusal, Remedy, ScopeTotals, Summary,
    TemplateTotals, Would,
};
use serde::Serialize;

use crate::clean::is_unsafe;
use crate::headline::{avoidable, avoidable_ns};
use crate::proof::proof;
use crate::verdict::word;
use crate::{Report, RunInfo};

/// Grows when a field changes its meaning or goes away; new fields may come at any time.
pub(crate) const FORMAT: u32 = 1;

#[derive(Debug, Serialize)]
struct Document<'a> {
    format: u32,
    headline: String,
    worth_doing: bool,
    passed: bool,
    ruling: &'static str,
    reasons: Vec<&'a str>,
    run: Option<&'a RunInfo>,
    database: Database<'a>,
    trips: Trips<'a>,
    times: PathTimes,
    elapsed_ns: u64,
    settle_ns: u64,
    connections: Connections<'a>,
    units: u64,
    statements: u64,
    errors: u64,
    errors_by_state: Vec<ErrorView<'a>>,
    rows: u64,
    bytes_sent: u64,
    bytes_received: u64,
    doubts: Doubts,
    templates: &'a [TemplateTotals],
    scopes: &'a [ScopeTotals],
    findings: Vec<FindingView<'a>>,
    budgets: Vec<BudgetView<'a>>,
    fail_on: Vec<RuleView<'a>>,
    increase: Option<IncreaseView<'a>>,
    snapshot: Vec<SnapshotView<'a>>,
    comparison: Option<ComparisonView<'a>>,
    forecast: Option<ForecastView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'a NetworkSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sides: Option<&'a TwoSides>,
}

#[derive(Debug, Serialize)]
struct ForecastView {
    measured_rtt_ns: Option<u64>,
    target_rtt_ns: u64,
    bandwidth: Option<u64>,
    distances: Vec<PriceView>,
}

#[derive(Debug, Serialize)]
struct PriceView {
    rtt_ns: u64,
    measured: bool,
    as_is: PredictionView,
    with_fixes: PredictionView,
    one_trip: PredictionView,
    with_remedies: Option<PredictionView>,
    without_remedies: Option<PredictionView>,
    bits_per_second: u64,
}

#[derive(Debug, Serialize)]
struct PredictionView {
    time_ns: u64,
    low_ns: u64,
    high_ns: u64,
}

#[derive(Debug, Serialize)]
struct Database<'a> {
    address: &'a str,
    rtt_min_ns: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Trips<'a> {
    total: u64,
    at_least: u64,
    connect: u64,
    work: u64,
    avoidable: u64,
    avoidable_ns: u64,
    removed: &'a BTreeMap<Remedy, u64>,
    would: &'a BTreeMap<Remedy, Would>,
    verified: u64,
    differed: u64,
    differences: &'a [Difference],
    may_not_end: &'a [MayNotEnd],
}

#[derive(Debug, Serialize)]
struct Connections<'a> {
    opened: u64,
    let_in: u64,
    refused: &'a [Refusal],
    still_open: u64,
    drivers: Vec<DriverView<'a>>,
}

#[derive(Debug, Serialize)]
struct DriverView<'a> {
    name: &'a str,
    connections: u64,
}

#[derive(Debug, Serialize)]
struct Doubts {
    may_share: u64,
    unanswered: u64,
    unasked_replies: u64,
    undecoded: u64,
    lost_bytes: u64,
    damaged_blocks: u64,
    damaged_bytes: u64,
    tail_bytes: u64,
    no_end: bool,
    cut_exchanges: u64,
    untold_statements: u64,
    unscoped_statements: u64,
}

#[derive(Debug, Serialize)]
struct ErrorView<'a> {
    sqlstate: &'a str,
    statements: u64,
}

#[derive(Debug, Serialize)]
struct FindingView<'a> {
    code: &'a str,
    title: &'a str,
    statements: &'a [String],
    driver: &'a str,
    scopes: &'a [String],
    occurrences: u64,
    trips: u64,
    avoidable: u64,
    removed: u64,
    would: Would,
    left: &'a BTreeMap<Obstacle, u64>,
    impure: Option<&'a str>,
    waited_ns: u64,
    wire_ns: u64,
    target_ns: Option<u64>,
    proof: String,
    evidence: EvidenceView<'a>,
    lines: Vec<LineView<'a>>,
    fix: &'a str,
}

/// A line of the program that sent the finding's statements.
#[derive(Debug, Serialize)]
struct LineView<'a> {
    frames: &'a [String],
    seen: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum EvidenceView<'a> {
    Walk { parameters: Vec<Source<'a>>, first_row: u64, last_row: u64 },
    Rows { rows: u64, transactions: u64 },
    Fetches { size: u64, rows: u64 },
    Repeats { distinct: u64, runs: u64 },
    Alone { begins: u64, commits: u64, transactions: u64 },
    Prepares { prepares: u64, runs: u64 },
    Connections { connections: u64, connect_trips: u64 },
    Values { distinct: u64, runs: u64 },
    Objects { objects: u64, calls: u64 },
    Chatter { pings: u64, settings: u64, lookups: u64 },
    Groups { groups: u64, statements: u64 },
    Pairs { pairs: u64 },
    CheckIns { rollbacks: u64, reads: u64 },
}

#[derive(Debug, Serialize)]
struct Source<'a> {
    parameter: u16,
    column: &'a str,
}

#[derive(Debug, Serialize)]
struct BudgetView<'a> {
    measure: String,
    scope: Option<&'a str>,
    most: u64,
    #[serde(flatten)]
    verdict: VerdictView<'a>,
}

#[derive(Debug, Serialize)]
struct RuleView<'a> {
    code: &'a str,
    found: bool,
    ruling: &'static str,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct IncreaseView<'a> {
    base: &'a str,
    most: Option<u64>,
    #[serde(flatten)]
    verdict: VerdictView<'a>,
}

#[derive(Debug, Serialize)]
struct SnapshotView<'a> {
    measure: String,
    scope: Option<&'a str>,
    expected: Option<u64>,
    #[serde(flatten)]
    verdict: VerdictView<'a>,
}

#[derive(Debug, Serialize)]
struct VerdictView<'a> {
    counted: u64,
    passed: bool,
    ruling: &'static str,
    reason: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ComparisonView<'a> {
    trips: ChangeView<'a>,
    worse: bool,
    statements: Vec<ChangeView<'a>>,
    findings: Vec<ChangeView<'a>>,
}

#[derive(Debug, Serialize)]
struct ChangeView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<&'a str>,
    before: u64,
    now: u64,
    difference: i64,
}

pub(crate) fn render(report: &Report<'_>) -> String {
    safe(&document(report))
}

pub(crate) fn render_forecast(report: &Report<'_>) -> String {
    safe(&report.prices().map(forecast_view))
}

/// JSON whose texts cannot steer whoever looks at it.
fn safe(value: &impl Serialize) -> String {
    // Serialising plain numbers, texts and lists to a string has no way to fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut safe = String::with_capacity(text.len() + 1);
    for character in text.chars() {
        if character != '\n' && is_unsafe(character) {
            // Such characters stand inside strings only; there every one may be written by its code.
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe.push('\n');
    safe
}

fn document<'a>(report: &Report<'a>) -> Document<'a> {
    let summary: &Summary = report.summary;
    let driver = |(driver, connections): (&'a onetrip_ledger::Driver, &u64)| DriverView {
        name: driver.name(),
        connections: *connections,
    };
    let verdicts = report.verdicts().iter();
    Document {
        format: FORMAT,
        headline: report.headline(),
        worth_doing: report.is_worth_doing(),
        passed: report.ruling() == Ruling::Passed,
        ruling: word(report.ruling()),
        reasons: report.reasons(),
        run: report.run,
        database: Database {
            address: &summary.upstream,
            rtt_min_ns: summary.rtt_min_us.map(|rtt| u64::from(rtt) * 1000),
        },
        trips: Trips {
            total: summary.trips.total,
            at_least: summary.trips.at_least(),
            connect: summary.trips.connect,
            work: summary.trips.work(),
            avoidable: avoidable(summary),
            avoidable_ns: avoidable_ns(summary),
            removed: &summary.removed,
            would: &summary.would,
            verified: summary.verified,
            differed: summary.differed,
            differences: &summary.differences,
            may_not_end: &summary.may_not_end,
        },
        times: summary.times,
        elapsed_ns: summary.elapsed_ns,
        settle_ns: summary.settle_ns,
        connections: Connections {
            opened: summary.connections,
            let_in: summary.sessions,
            refused: &summary.refusals,
            still_open: summary.open_connections,
            drivers: summary.drivers.iter().map(driver).collect(),
        },
        units: summary.units,
        statements: summary.statements,
        errors: summary.errors,
        errors_by_state: summary
            .errors_by_state
            .iter()
            .map(|(sqlstate, statements)| ErrorView { sqlstate, statements: *statements })
            .collect(),
        rows: summary.rows,
        bytes_sent: summary.bytes_sent,
        bytes_received: summary.bytes_received,
        doubts: Doubts {
            may_share: summary.trips.may_share,
            unanswered: summary.unanswered,
            unasked_replies: summary.unasked_replies,
            undecoded: summary.undecoded,
            lost_bytes: summary.gaps.lost_bytes,
            damaged_blocks: summary.gaps.damaged_blocks,
            damaged_bytes: summary.gaps.damaged_bytes,
            tail_bytes: summary.gaps.tail_bytes,
            no_end: summary.gaps.is_open,
            cut_exchanges: summary.gaps.cut_exchanges,
            untold_statements: summary.gaps.untold_statements,
            unscoped_statements: summary.gaps.unscoped_statements,
        },
        templates: &summary.templates,
        scopes: &summary.scopes,
        findings: summary.findings.iter().map(|finding| finding_view(finding, report.prices())).collect(),
        budgets: verdicts.clone().filter_map(budget_view).collect(),
        fail_on: verdicts.clone().filter_map(rule_view).collect(),
        increase: verdicts.clone().find_map(increase_view),
        snapshot: verdicts.filter_map(snapshot_view).collect(),
        comparison: report.comparison().map(|comparison| ComparisonView {
            trips: change_view(None, None, comparison.trips),
            worse: comparison.is_worse(),
            statements: comparison
                .statements
                .iter()
                .map(|(statement, change)| change_view(None, Some(statement), *change))
                .collect(),
            findings: comparison
                .findings
                .iter()
                .map(|(code, statement, change)| change_view(Some(code.as_str()), Some(statement), *change))
                .collect(),
        }),
        forecast: report.prices().map(forecast_view),
        network: report.network,
        sides: report.sides,
    }
}

fn verdict_view(verdict: &Verdict) -> VerdictView<'_> {
    VerdictView {
        counted: verdict.counted,
        passed: verdict.ruling == Ruling::Passed,
        ruling: word(verdict.ruling),
        reason: verdict.reason.as_deref(),
    }
}

fn budget_view(verdict: &Verdict) -> Option<BudgetView<'_>> {
    let Rule::Limit { measure, scope } = &verdict.rule else { return None };
    Some(BudgetView {
        measure: measure.to_string(),
        scope: scope.as_deref(),
        most: verdict.allowed.unwrap_or_default(),
        verdict: verdict_view(verdict),
    })
}

fn rule_view(verdict: &Verdict) -> Option<RuleView<'_>> {
    let Rule::FailOn(code) = &verdict.rule else { return None };
    Some(RuleView {
        code: code.as_str(),
        found: verdict.counted > 0,
        ruling: word(verdict.ruling),
        reason: verdict.reason.as_deref(),
    })
}

fn increase_view(verdict: &Verdict) -> Option<IncreaseView<'_>> {
    let Rule::Increase { base } = &verdict.rule else { return None };
    Some(IncreaseView { base, most: verdict.allowed, verdict: verdict_view(verdict) })
}

fn snapshot_view(verdict: &Verdict) -> Option<SnapshotView<'_>> {
    let Rule::Snapshot { measure, scope } = &verdict.rule else { return None };
    Some(SnapshotView {
        measure: measure.to_string(),
        scope: scope.as_deref(),
        expected: verdict.allowed,
        verdict: verdict_view(verdict),
    })
}

fn change_view<'a>(code: Option<&'a str>, statement: Option<&'a str>, change: Change) -> ChangeView<'a> {
    ChangeView { code, statement, before: change.before, now: change.now, difference: change.difference() }
}

fn forecast_view(prices: &Prices) -> ForecastView {
    let prediction = |prediction: Prediction| PredictionView {
        time_ns: prediction.time_ns,
        low_ns: prediction.low_ns,
        high_ns: prediction.high_ns,
    };
    let price = |price: &Price| PriceView {
        rtt_ns: price.rtt_ns,
        measured: price.measured,
        as_is: prediction(price.as_is),
        with_fixes: prediction(price.fixed),
        one_trip: prediction(price.limit),
        with_remedies: price.with_remedies.map(prediction),
        without_remedies: price.without_remedies.map(prediction),
        bits_per_second: price.bits_per_second,
    };
    ForecastView {
        measured_rtt_ns: prices.measured_rtt_ns,
        target_rtt_ns: prices.curve.target_ns,
        bandwidth: prices.bandwidth,
        distances: prices.rows.iter().map(price).collect(),
    }
}

fn finding_view<'a>(finding: &'a Finding, prices: Option<&Prices>) -> FindingView<'a> {
    let target = prices.and_then(Prices::target).map(|price| price.rtt_ns as f64);
    FindingView {
        code: finding.code.as_str(),
        title: finding.code.title(),
        statements: &finding.statements,
        driver: finding.driver.name(),
        scopes: &finding.scopes,
        occurrences: finding.occurrences,
        trips: finding.trips,
        avoidable: finding.avoidable,
        removed: finding.removed,
        would: finding.would,
        left: &finding.left,
        impure: finding.impure.as_deref(),
        waited_ns: finding.waited_ns,
        wire_ns: finding.wire_ns,
        target_ns: target.map(|rtt_ns| finding.price_ns(rtt_ns) as u64),
        proof: proof(finding),
        evidence: evidence_view(&finding.evidence),
        lines: finding.sites.iter().map(|site| LineView { frames: &site.frames, seen: site.spots }).collect(),
        fix: &finding.fix,
    }
}

fn evidence_view(evidence: &Evidence) -> EvidenceView<'_> {
    match evidence {
        Evidence::Walk { sources, rows } => EvidenceView::Walk {
            parameters: sources
                .iter()
                .map(|(parameter, column)| Source { parameter: *parameter, column })
                .collect(),
            first_row: rows.0,
            last_row: rows.1,
        },
        &Evidence::Rows { rows, transactions } => EvidenceView::Rows { rows, transactions },
        &Evidence::Fetches { size, rows } => EvidenceView::Fetches { size, rows },
        &Evidence::Repeats { distinct, runs } => EvidenceView::Repeats { distinct, runs },
        &Evidence::Alone { begins, commits, transactions } => {
            EvidenceView::Alone { begins, commits, transactions }
        }
        &Evidence::Prepares { prepares, runs } => EvidenceView::Prepares { prepares, runs },
        &Evidence::Connections { connections, connect_trips } => {
            EvidenceView::Connections { connections, connect_trips }
        }
        &Evidence::Values { distinct, runs } => EvidenceView::Values { distinct, runs },
        &Evidence::Objects { objects, calls } => EvidenceView::Objects { objects, calls },
        &Evidence::Chatter { pings, settings, lookups } => EvidenceView::Chatter { pings, settings, lookups },
        &Evidence::Groups { groups, statements } => EvidenceView::Groups { groups, statements },
        &Evidence::Pairs { pairs } => EvidenceView::Pairs { pairs },
        &Evidence::CheckIns { rollbacks, reads } => EvidenceView::CheckIns { rollbacks, reads },
    }
}
