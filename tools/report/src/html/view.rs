//! What the template is given: texts that are safe to show, and numbers as people read them.

use minijinja::value::Value;
use onetrip_forecast::{Curve, CurveLine, Prices};
use onetrip_ledger::findings::Example;
use onetrip_ledger::timeline::Histogram;
use onetrip_ledger::{Driver, Finding, Summary};
use serde::Serialize;

use crate::Report;
use crate::chart::{self, Size};
use crate::clean::{clean, cut, scope_name, statement_text, tied};
use crate::number::{count, counted, duration, percent};
use crate::proof::proof;
use crate::remedies::{fate, remedy};
use crate::sites::lines;
use crate::text::{self, all_time, parts};

/// Findings shown; the rest are in the other formats.
pub(super) const FINDINGS_MAX: usize = 50;
/// Columns of a statement before it is opened.
const SHORT_MAX: usize = 160;
/// Columns of a statement at all: they bound the page.
const WHOLE_MAX: usize = 1_000;
/// Columns of any other text.
const TEXT_MAX: usize = 500;
/// Columns of a scope's name beside a finding.
const SCOPE_MAX: usize = 80;
/// Distances that people know, by nanoseconds.
const PRESETS: [(u64, &str); 5] = [
    (50_000, "50 µs, same machine"),
    (400_000, "0.4 ms, same zone"),
    (1_000_000, "1 ms, next zone"),
    (12_900_000, "12.9 ms, next data centre"),
    (70_000_000, "70 ms, across an ocean"),
];

/// A place that one can go to.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
}

/// A name and what it stands for.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Fact {
    name: &'static str,
    value: String,
}

/// What made the page.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Footer {
    version: &'static str,
    command: String,
}

/// Text of a statement, and its beginning where it is long.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Statement {
    short: Option<String>,
    whole: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Times {
    all: String,
    connections: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Serialize)]
struct Part {
    name: &'static str,
    time: String,
    percent: String,
    what: &'static str,
    /// In thousandths.
    share: u64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct CurveView {
    wide: Value,
    narrow: Value,
    target: String,
    /// Of the slider, in thousandths.
    position: u64,
    presets: Vec<Preset>,
    first: String,
    lines: Vec<Cost>,
}

#[derive(Debug, Clone, Serialize)]
struct Preset {
    rtt: u64,
    name: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct Cost {
    name: String,
    color: usize,
    time: String,
    spread: String,
    share: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct HistogramView {
    wide: Value,
    narrow: Value,
    lead: String,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct FindingView {
    code: &'static str,
    title: &'static str,
    avoidable: String,
    trips: String,
    waited: String,
    /// What the fix saves at the distance that was asked about.
    price: Option<String>,
    /// Two numbers for that at any distance: nanoseconds that do not depend on it, and trips.
    price_parts: String,
    statement: Option<Statement>,
    proof: String,
    scopes: String,
    lines: Vec<String>,
    driver: Option<&'static str>,
    fix: String,
    example: Option<ExampleView>,
    /// What remedies took out, and what they left.
    left: Option<String>,
    /// What the gateway can do as the program is.
    remedy: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct ExampleView {
    before: &'static str,
    after: &'static str,
}

impl Statement {
    pub(super) fn new(text: &str) -> Self {
        Self::up_to(statement_text(text), WHOLE_MAX)
    }

    /// With an own bound of its columns.
    pub(super) fn up_to(text: &str, columns: usize) -> Self {
        let whole = cut(text, columns);
        let short = cut(&whole, SHORT_MAX);
        Self { short: (short != whole).then_some(short), whole }
    }
}

pub(super) fn how_to_connect(report: &Report<'_>) -> String {
    let summary = report.summary;
    if summary.trips.total > 0 || summary.connections > 0 {
        return String::new();
    }
    let line = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!("{}{}", " ".repeat(indent.min(20)), cut(line, TEXT_MAX))
    };
    report.how_to_connect.lines().take(50).map(line).collect::<Vec<_>>().join("\n")
}

/// What made the page: the version, and the command line where it is known.
pub(super) fn footer(report: &Report<'_>) -> Footer {
    let command = report.command.iter().map(|word| clean(word)).collect::<Vec<_>>().join(" ");
    Footer { version: env!("CARGO_PKG_VERSION"), command: cut(&command, TEXT_MAX) }
}

pub(super) fn facts(report: &Report<'_>) -> Vec<Fact> {
    let packets = report.network.map(text::network::facts).unwrap_or_default();
    let facts = text::facts(report).into_iter().chain(packets);
    facts.map(|(name, value)| Fact { name, value: tied(&cut(&value, TEXT_MAX)) }).collect()
}

/// What keeps counts from being exact, and what the packets say of the path's troubles.
pub(super) fn doubts(report: &Report<'_>) -> Vec<String> {
    let mut doubts = text::doubts(report);
    if let Some(network) = report.network {
        doubts.extend(text::network::problems(&network.totals));
        doubts.extend(text::network::doubts(&network.capture));
    }
    doubts.extend(report.sides.map(text::sides::doubts).unwrap_or_default());
    doubts
}

pub(super) fn times(summary: &Summary) -> Option<Times> {
    let all = all_time(summary.times);
    let part = |(name, time, what)| Part {
        name,
        time: duration(time),
        percent: percent(time, all),
        what,
        share: (u128::from(time) * 1000 / u128::from(all.max(1))) as u64,
    };
    (all > 0).then(|| Times {
        all: duration(all),
        connections: counted(summary.connections, "connection", "connections"),
        parts: parts(summary.times).into_iter().map(part).collect(),
    })
}

pub(super) fn curve(curve: &Curve) -> Option<CurveView> {
    let drawn = |size| chart::curve(curve, size).map(Value::from_safe_string);
    let (least, most) = curve.range()?;
    let least = least.max(most / 10_000).max(1);
    let target = curve.target_ns.clamp(least, most);
    let position = (target as f64 / least as f64).ln() / (most as f64 / least as f64).ln();
    let first = curve.lines.first()?;
    let first_time = first.at(target)?.time_ns;
    let cost = |(place, line): (usize, &CurveLine)| {
        let point = line.at(target)?;
        let spread = point.low_ns < point.high_ns;
        Some(Cost {
            name: cut(&clean(&line.name), SCOPE_MAX),
            color: place % chart::COLORS,
            time: tied(&duration(point.time_ns)),
            spread: if spread {
                tied(&format!("{} – {}", duration(point.low_ns), duration(point.high_ns)))
            } else {
                String::new()
            },
            share: if place == 0 { String::new() } else { percent(point.time_ns, first_time) },
        })
    };
    Some(CurveView {
        wide: drawn(Size::Wide)?,
        narrow: drawn(Size::Narrow)?,
        target: duration(target),
        position: (position * 1000.0).round() as u64,
        presets: PRESETS
            .into_iter()
            .filter(|(rtt, _)| (least..=most).contains(rtt))
            .map(|(rtt, name)| Preset { rtt, name })
            .collect(),
        first: cut(&clean(&first.name), SCOPE_MAX),
        lines: curve.lines.iter().enumerate().filter_map(cost).collect(),
    })
}

/// How much of the bandwidth that was asked about is used, as a sentence.
pub(super) fn bandwidth(prices: &Prices) -> Option<String> {
    let used = prices.bandwidth.and_then(|_| text::bandwidth(prices))?;
    let (first, rest) = used.split_at_checked(1)?;
    Some(tied(&format!("{}{rest}.", first.to_uppercase())))
}

pub(super) fn histogram(histogram: &Histogram) -> Option<HistogramView> {
    let drawn = |size| chart::histogram(histogram, size).map(Value::from_safe_string);
    Some(HistogramView {
        wide: drawn(Size::Wide)?,
        narrow: drawn(Size::Narrow)?,
        lead: tied(&format!(
            "{} after sessions were open: half within {}, 99 % within {}, the longest {}.",
            counted(histogram.total(), "trip", "trips"),
            duration(histogram.quantile(0.5)),
            duration(histogram.quantile(0.99)),
            duration(histogram.max())
        )),
    })
}

pub(super) fn findings(report: &Report<'_>) -> Vec<FindingView> {
    let rtt_ns = report.prices().and_then(Prices::target).map(|price| price.rtt_ns);
    report.summary.findings.iter().take(FINDINGS_MAX).map(|found| finding(found, rtt_ns)).collect()
}

pub(super) fn findings_more(report: &Report<'_>) -> Option<String> {
    let more = report.summary.findings.len().saturating_sub(FINDINGS_MAX) as u64;
    (more > 0)
        .then(|| format!("{}; the JSON report has them all", counted(more, "more finding", "more findings")))
}

fn finding(finding: &Finding, rtt_ns: Option<u64>) -> FindingView {
    let price = |rtt_ns: u64| {
        tied(&format!("{} at {}", duration(finding.price_ns(rtt_ns as f64) as u64), duration(rtt_ns)))
    };
    let scopes: Vec<_> = finding.scopes.iter().map(|label| cut(&scope_name(label), SCOPE_MAX)).collect();
    FindingView {
        code: finding.code.as_str(),
        title: finding.code.title(),
        avoidable: count(finding.avoidable),
        trips: count(finding.trips),
        waited: tied(&duration(finding.waited_ns)),
        price: rtt_ns.map(price),
        price_parts: format!("{:.0} {}", finding.price_ns(0.0), finding.avoidable),
        statement: finding.statements.first().map(|text| Statement::new(text)),
        proof: cut(&proof(finding), TEXT_MAX),
        scopes: scopes.join(", "),
        lines: lines(finding).iter().map(|line| cut(line, TEXT_MAX)).collect(),
        driver: (finding.driver != Driver::UNKNOWN).then(|| finding.driver.name()),
        fix: cut(&finding.fix, TEXT_MAX),
        example: finding.example().map(|Example { before, after }| ExampleView { before, after }),
        left: fate(finding).map(|text| cut(&text, TEXT_MAX)),
        remedy: remedy(finding),
    }
}
