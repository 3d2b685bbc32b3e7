//! The report as one JSON object, with field names of its own so that they stay when the ledger changes. Its JSON Schema and
//! `docs/report-json.md` are made from the types in `view`.

#[cfg(test)]
mod schema;
#[cfg(test)]
mod shapes;
mod view;

use std::fmt::Write;

use onetrip_forecast::{Prediction, Price, Prices};
use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Rule, Ruling, Verdict};
use onetrip_ledger::{Evidence, Finding, Summary};
use serde::Serialize;
use view::{
    BudgetView, ChangeView, ComparisonView, Connections, Database, Document, Doubts, DriverView, ErrorView,
    EvidenceView, FindingView, ForecastView, IncreaseView, LineView, PredictionView, PriceView, RuleView,
    SnapshotView, Source, Trips, VerdictView,
};

use crate::Report;
use crate::clean::is_unsafe;
use crate::headline::{avoidable, avoidable_ns};
use crate::proof::proof;
use crate::verdict::word;

/// Grows when a field changes its meaning or goes away; new fields may come at any time.
pub(crate) const FORMAT: u32 = 1;

/// The report as one JSON object: see `docs/report-json.md`.
pub fn json(report: &Report<'_>) -> String {
    safe(&document(report))
}

/// Only what it costs at other distances, as one JSON object: `forecast` of `docs/report-json.md`.
pub fn forecast_json(report: &Report<'_>) -> String {
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
        reason: verdict.reason.as_ref().map(|reason| reason.text.as_str()),
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
        reason: verdict.reason.as_ref().map(|reason| reason.text.as_str()),
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
