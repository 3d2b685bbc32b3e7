//! Shows what a run spent, as terminal text, JSON, JUnit XML or one self-contained page, from one [`Report`].
//!
//! A report is a pure function of a [`Summary`]. It reads no clock, no file and no terminal, so the caller decides
//! about colour and where the text goes. Text of statements comes from strangers. No output lets it reach a terminal
//! or a parser unescaped.
//!
//! Non-scope: counting (`ledger`), flags and files (`cli`).

mod baseline;
mod chart;
mod clean;
mod columns;
mod headline;
mod html;
mod json;
mod junit;
mod markdown;
mod number;
mod proof;
mod remedies;
mod sites;
mod sqlstate;
mod text;
mod verdict;

use onetrip_forecast::{Curve, Prices};
use onetrip_ledger::Summary;
use onetrip_ledger::judge::{Comparison, Judgement, Ruling, Verdict};
use onetrip_ledger::network::NetworkSummary;
use onetrip_ledger::sides::TwoSides;
use onetrip_ledger::timeline::Timeline;

pub use baseline::{BadReport, baseline};
#[cfg(feature = "png")]
pub use chart::PngError;
pub use chart::{LogScale, names_apart};
pub use clean::markup;
pub use columns::{Align, Columns};
pub use number::{count, duration};
pub use text::{Screen, Style};

/// Everything that is said about one run.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// What was counted.
    pub summary: &'a Summary,
    /// The program that was run, where there was one.
    pub run: Option<&'a RunInfo>,
    /// How the run met what it was judged by, if it was.
    pub judgement: Option<&'a Judgement>,
    /// What it costs at other distances.
    pub prices: Option<&'a Prices>,
    /// What packets tell of the network, where a capture was read.
    pub network: Option<&'a NetworkSummary>,
    /// Where each millisecond went, where captures of both ends were read.
    pub sides: Option<&'a TwoSides>,
    /// How to point the program at the gateway: said when no connection reached it.
    pub how_to_connect: &'a str,
    /// The command line that makes the report, without secrets; empty where nobody wants to know.
    pub command: &'a [String],
}

/// The program whose traffic was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Run"))]
pub struct RunInfo {
    /// The program and its arguments; empty where a gateway served whoever came.
    pub command: Vec<String>,
    /// How it exited; nothing if a signal ended it or it still runs.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Where the trace was written.
    pub trace: Option<String>,
    /// Why the trace does not hold the whole run, if it does not.
    pub trace_error: Option<String>,
    /// Scopes are tests that the program's runner named.
    pub has_tests: bool,
    /// The program's variables that were pointed at the gateway.
    pub pointed: Vec<String>,
    /// How connections were led to the gateway whatever the program's settings say; nothing if they were not.
    pub redirected: Option<Redirected>,
}

impl RunInfo {
    /// How the program failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        match (self.exit_code, self.signal) {
            (Some(0), _) | (None, None) => None,
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, Some(signal)) => Some(format!("signal {signal}")),
        }
    }
}

/// Connections that were led to the gateway.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
            judgement: None,
            prices: None,
            network: None,
            sides: None,
            how_to_connect: "",
            command: &[],
        }
    }

    /// The one sentence that matters; what kept the run from being judged comes before it.
    ///
    /// "Nothing worth doing here" is said when the avoidable trips are few and short: less than 5 % of all trips
    /// or fewer than five of them, and less than 5 ms or less than 1 % of the time spent waiting; never of a run that
    /// opened no session or whose program failed.
    pub fn headline(&self) -> String {
        headline::sentence(self)
    }

    /// Whether anything is worth changing: see [`Self::headline`].
    pub fn is_worth_doing(&self) -> bool {
        headline::is_worth_doing(self.summary)
    }

    /// The worst verdict.
    pub fn ruling(&self) -> Ruling {
        self.judgement.map_or(Ruling::Passed, Judgement::ruling)
    }

    /// The verdicts of this kind, each as one line that is safe to print.
    pub fn verdicts_of(&self, ruling: Ruling) -> impl Iterator<Item = String> {
        self.verdicts().iter().filter(move |verdict| verdict.ruling == ruling).map(verdict::sentence)
    }

    /// The report for a terminal, no line wider than the screen (a style alone stands for 100 columns), with a line feed at
    /// its end.
    pub fn text(&self, screen: impl Into<Screen>) -> String {
        text::render(self, screen.into())
    }

    /// The report as one JSON object: see `docs/report-json.md`.
    pub fn json(&self) -> String {
        json::render(self)
    }

    /// The report as Markdown for a pull request: verdicts, tests or scopes, findings, what changed.
    pub fn markdown(&self) -> String {
        markdown::render(self)
    }

    /// The rules as test cases in JUnit's XML.
    pub fn junit(&self) -> String {
        junit::render(self)
    }

    /// Only what it costs at other distances, for a terminal; empty without prices.
    pub fn forecast_text(&self, screen: impl Into<Screen>) -> String {
        text::render_forecast(self, screen.into())
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

    /// Why the run could not be judged, each as one line that is safe to print.
    pub fn reasons_shown(&self) -> impl Iterator<Item = String> {
        self.reasons().into_iter().map(clean::clean)
    }

    fn verdicts(&self) -> &'a [Verdict] {
        self.judgement.map_or(&[], |judgement| &judgement.verdicts)
    }

    /// The verdicts, what is wrong first.
    fn worst_first(&self) -> Vec<&'a Verdict> {
        let mut verdicts: Vec<_> = self.verdicts().iter().collect();
        verdicts.sort_by_key(|verdict| std::cmp::Reverse(verdict.ruling));
        verdicts
    }

    fn comparison(&self) -> Option<&'a Comparison> {
        self.judgement?.comparison.as_ref()
    }

    /// Why the run could not be judged.
    fn reasons(&self) -> Vec<&'a str> {
        self.judgement.map_or_else(Vec::new, Judgement::reasons)
    }

    /// A run without a session has no price.
    pub fn prices(&self) -> Option<&'a Prices> {
        self.prices.filter(|_| self.summary.sessions > 0)
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
