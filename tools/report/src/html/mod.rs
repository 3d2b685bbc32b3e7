//! The report as one page that needs nothing else: style, script, drawings and data are in it.
//!
//! The page's size depends on what it lists and draws, not on the trace. Its content policy allows the one script
//! that is part of it and no request. So a statement's text cannot run, and nothing leaves the page.

mod data;
mod tables;
mod view;

use std::fmt::Write as _;

use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, HtmlEscape};
use onetrip_ledger::judge::Ruling;
use onetrip_ledger::timeline::Timeline;
use serde::Serialize;

use self::view::Section;
use crate::Report;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(
    include_str!("common.js"),
    include_str!("curve.js"),
    include_str!("waterfall.js"),
    include_str!("tables.js")
);
/// Digest of [`SCRIPT`] for the page's content policy; a test compares them.
const SCRIPT_HASH: &str = "sha256-/zTPk8fnbIOzHY3GUf8QiO4t32hRq3SRn6tOyPGq5uM=";

/// What the template is given.
#[derive(Debug, Serialize)]
struct Page {
    headline: String,
    /// How the headline is meant: `worth` a change, `calm`, or `unreached`.
    mood: &'static str,
    worth_doing: bool,
    how_to_connect: String,
    facts: Vec<view::Fact>,
    doubts: Vec<String>,
    contents: Vec<Section>,
    times: Option<view::Times>,
    curve: Option<view::CurveView>,
    /// How much of the path's bandwidth is used, where one was given.
    bandwidth: Option<String>,
    findings: Vec<view::FindingView>,
    findings_more: Option<String>,
    waterfall_lead: Option<String>,
    histogram: Option<view::HistogramView>,
    /// What comes before everything else: checks of which one did not pass.
    wrong: Vec<tables::Table>,
    tables: Vec<tables::Table>,
    footer: view::Footer,
    /// For the script, as JSON.
    data: Option<Value>,
    style: Value,
    script: Value,
    script_hash: Value,
}

/// The report as one HTML page that asks for nothing else, at most 3 MB. Parts for which there is nothing in
/// `timeline` are left out.
pub fn html(report: &Report<'_>, timeline: &Timeline) -> String {
    let times = view::times(report.summary);
    let drawn = report.prices().map(|prices| &prices.curve);
    let curve = drawn.and_then(view::curve);
    let findings = view::findings(report);
    let waterfall = data::waterfall(report.summary, timeline);
    let histogram = view::histogram(&timeline.histogram);
    let tables = tables::tables(report);
    let is_passed = report.ruling() == Ruling::Passed;
    let (wrong, tables): (Vec<_>, Vec<_>) =
        tables.into_iter().partition(|table| table.id == tables::CHECKS && !is_passed);
    let of_table = |table: &tables::Table| Section { id: table.id, title: table.short };
    let mut contents: Vec<Section> = wrong.iter().map(of_table).collect();
    let parts = [
        ("time", "Time", times.is_some()),
        ("distance", "Distance", curve.is_some()),
        ("findings", "Findings", !findings.is_empty()),
        ("trips", "Trips", waterfall.is_some()),
        ("histogram", "Trip times", histogram.is_some()),
    ];
    let parts = parts.into_iter().filter(|(_, _, shown)| *shown);
    contents.extend(parts.map(|(id, title, _)| Section { id, title }));
    contents.extend(tables.iter().map(of_table));
    let data = data::script_data(curve.as_ref().and(drawn), waterfall.as_ref());
    let page = Page {
        headline: crate::clean::tied(&report.headline()),
        mood: match (report.summary.sessions, report.is_worth_doing()) {
            (0, _) => "unreached",
            (_, true) => "worth",
            (_, false) => "calm",
        },
        worth_doing: report.is_worth_doing(),
        how_to_connect: view::how_to_connect(report),
        facts: view::facts(report),
        doubts: view::doubts(report),
        contents,
        times,
        curve,
        bandwidth: report.prices().and_then(view::bandwidth),
        findings,
        findings_more: view::findings_more(report),
        waterfall_lead: waterfall.map(|waterfall| waterfall.lead),
        histogram,
        wrong,
        tables,
        footer: view::footer(report),
        data: data.map(Value::from_safe_string),
        style: Value::from_safe_string(STYLE.into()),
        script: Value::from_safe_string(SCRIPT.into()),
        script_hash: Value::from_safe_string(SCRIPT_HASH.into()),
    };
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_filter("code", code);
    // The template is part of this crate and what it is given are plain texts, numbers and lists; tests render
    // every part of it.
    environment
        .render_str(PAGE, Serde(&page))
        .unwrap_or_else(|error| format!("<!doctype html><pre>{error}</pre>"))
}

/// A text with what stands between backticks as code.
fn code(text: &str) -> Value {
    let mut marked = String::with_capacity(text.len() + 32);
    let mut parts = text.split('`').peekable();
    let mut is_code = false;
    while let Some(part) = parts.next() {
        // The last backtick has no partner.
        if is_code && parts.peek().is_none() {
            marked.push('`');
            is_code = false;
        }
        let escaped = HtmlEscape(part);
        let _ = if is_code { write!(marked, "<code>{escaped}</code>") } else { write!(marked, "{escaped}") };
        is_code = !is_code;
    }
    Value::from_safe_string(marked)
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64, Encoding};
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn what_stands_between_backticks_is_code_and_nothing_of_it_is_markup() {
        let marked = |text| code(text).to_string();
        assert_eq!(
            marked("`--html <b>` writes `it`."),
            "<code>--html &lt;b&gt;</code> writes <code>it</code>."
        );
        assert_eq!(marked("a ` <b>"), "a ` &lt;b&gt;");
        assert_eq!((marked(""), marked("``")), (String::new(), "<code></code>".into()));
    }

    #[test]
    fn the_content_policy_allows_the_script_of_the_page_and_no_other() {
        let digest = Base64::encode_string(&Sha256::digest(SCRIPT));
        assert_eq!(SCRIPT_HASH, format!("sha256-{digest}"), "put the digest of the script there");
        assert!(!SCRIPT.contains("</script"));
    }
}
