//! Shows what a run spent, as terminal text, JSON, JUnit XML or one self-contained page, from one [`Report`].
//!
//! A report is a pure function of a [`Summary`](onetrip_ledger::Summary). It reads no clock, no file and no terminal, so
//! the caller decides about colour and where the text goes. Text of statements comes from strangers. No output lets it
//! reach a terminal or a parser unescaped.
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
mod report;
mod sites;
mod sqlstate;
mod text;
mod verdict;

use onetrip_forecast::Curve;

pub use baseline::{BadReport, baseline};
#[cfg(feature = "png")]
pub use chart::PngError;
pub use chart::{LogScale, names_apart};
pub use clean::markup;
pub use columns::{Align, Columns};
pub use html::html;
pub use json::{forecast_json, json};
pub use junit::junit;
pub use markdown::markdown;
pub use number::{count, duration};
pub use report::{Redirected, Report, RunInfo};
pub use text::{Screen, Style, forecast_text, text};

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
