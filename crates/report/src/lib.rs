//! What a run spent, shown: terminal text, JSON, JUnit XML and one self-contained page from one [`Report`].
//!
//! A report is a pure function of a [`Summary`]: no clock, no file, no terminal is looked at here, so the caller
//! decides about colour and where the text goes. Text of statements comes from strangers; none of the outputs
//! lets it reach a terminal or a parser unescaped.
//!
//! Non-scope: counting (`ledger`), flags and files (`cli`).

mod chart;
mod clean;
mod headline;
mod html;
mod json;
mod junit;
mod number;
mod proof;
mod remedies;
mod text;

use onetrip_forecast::{Curve, Prices};
use onetrip_ledger::budget::Verdict;
use onetrip_ledger::compare::Comparison;
use onetrip_ledger::timeline::Timeline;
use onetrip_ledger::{Code, Summary};

#[cfg(feature = "png")]
pub use chart::PngError;
pub use number::{count, duration};
pub use text::Style;

/// Everything that is said about one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What was counted.
    pub summary: &'a Summary,
    /// The program that was run, where there was one.
    pub run: Option<&'a RunInfo>,
    /// Budgets, and whether they were kept.
    pub verdicts: &'a [Verdict],
    /// Codes that must not be found (`--fail-on`), found or not.
    pub fail_on: &'a [Code],
    /// What differs from an earlier run.
    pub comparison: Option<&'a Comparison>,
    /// What it costs at other distances.
    pub prices: Option<&'a Prices>,
    /// How to point the program at the gateway: said when no connection reached it.
    pub how_to_connect: &'a str,
}

/// The program whose traffic was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct RunInfo {
    /// The program and its arguments; empty where a gateway served whoever came.
    pub command: Vec<String>,
    /// How it exited; `None` if a signal ended it or it still runs.
    pub exit_code: Option<i32>,
    /// Where the trace was written.
    pub trace: Option<String>,
    /// The program's variables that were pointed at the gateway.
    pub pointed: Vec<String>,
    /// How connections were led to the gateway whatever the program's settings say; `None` if they were not.
    pub redirected: Option<Redirected>,
}

/// Connections that were led to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Redirected {
    /// What led them.
    pub by: &'static str,
    /// How many were, where that is known.
    pub connections: Option<u64>,
}

impl<'a> Report<'a> {
    /// A report on `summary` with nothing else to say; fill in the other fields as there is need.
    pub fn new(summary: &'a Summary) -> Self {
        Self {
            summary,
            run: None,
            verdicts: &[],
            fail_on: &[],
            comparison: None,
            prices: None,
            how_to_connect: "",
        }
    }

    /// The one sentence that matters.
    ///
    /// "Nothing worth doing here" is said when the avoidable trips are few and short: less than 5 % of all trips
    /// or fewer than five of them, and less than 5 ms or less than 1 % of the time spent waiting.
    pub fn headline(&self) -> String {
        headline::sentence(self.summary)
    }

    /// Whether anything is worth changing: see [`Self::headline`].
    pub fn is_worth_doing(&self) -> bool {
        headline::is_worth_doing(self.summary)
    }

    /// Codes of [`Self::fail_on`] that were found, however small.
    pub fn failed_on(&self) -> impl Iterator<Item = Code> {
        self.fail_on.iter().copied().filter(|code| self.finds(*code))
    }

    /// Whether every budget was kept and nothing was found that must not be.
    pub fn is_passed(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.kept) && self.failed_on().next().is_none()
    }

    /// The report for a terminal, no line wider than 100 columns, with a line feed at its end.
    pub fn text(&self, style: Style) -> String {
        text::render(self, style)
    }

    /// The report as one JSON object: see `docs/report-json.md`.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// Budgets and `--fail-on` rules as test cases in JUnit's XML.
    pub fn junit(&self) -> String {
        junit::render(self)
    }

    /// Only what it costs at other distances, for a terminal; empty without prices.
    pub fn forecast_text(&self, style: Style) -> String {
        text::render_forecast(self, style)
    }

    /// Only what it costs at other distances, as one JSON object: `forecast` of `docs/report-json.md`.
    pub fn forecast_json(&self) -> String {
        json::render_forecast(self)
    }

    /// The report as one HTML page that asks for nothing else, at most 3 MB. Parts for which there is nothing in
    /// `timeline` are left out.
    pub fn html(&self, timeline: &Timeline) -> String {
        html::render(self, timeline)
    }

    fn finds(&self, code: Code) -> bool {
        self.summary.findings.iter().any(|finding| finding.code == code && finding.avoidable > 0)
    }
}

/// The curve as an SVG picture of its own; `None` where no line spans a range of round-trip times.
pub fn curve_svg(curve: &Curve, title: &str) -> Option<String> {
    chart::alone(curve, title)
}

/// The curve as a PNG picture; `None` where [`curve_svg`] has none.
///
/// # Errors
///
/// The drawing could not be rendered or encoded; it is our own, so that this is not expected.
#[cfg(feature = "png")]
pub fn curve_png(curve: &Curve, title: &str) -> Option<Result<Vec<u8>, PngError>> {
    curve_svg(curve, title).map(|svg| chart::png(&svg))
}

/// A drawing of this workspace's own as a PNG picture of two dots per pixel, with fonts that it brings along.
///
/// # Errors
///
/// The drawing could not be rendered or encoded.
#[cfg(feature = "png")]
pub fn svg_png(svg: &str) -> Result<Vec<u8>, PngError> {
    chart::png(svg)
}
