//! Charts as SVG, by hand: a page draws them with its own colours, a file of their own brings them along.

mod curve;
mod histogram;
mod log_scale;
#[cfg(feature = "png")]
mod png;
mod time_scale;

pub(crate) use curve::{COLORS, alone, curve};
pub(crate) use histogram::histogram;
pub use log_scale::{LogScale, names_apart};
#[cfg(feature = "png")]
pub use png::PngError;
#[cfg(feature = "png")]
pub(crate) use png::png;

use std::fmt::Write;

use self::time_scale::{Tick, TimeScale};

/// What a chart has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// For pages from 640 px on.
    Wide,
    /// For telephones.
    Narrow,
}

/// Where the plot lies in its picture, in pixels.
#[derive(Debug, Clone, Copy)]
struct Frame {
    width: u32,
    height: u32,
    left: u32,
    right: u32,
    top: u32,
    bottom: u32,
}

impl Frame {
    fn x(&self) -> (f64, f64) {
        (f64::from(self.left), f64::from(self.width - self.right))
    }

    /// From the bottom up.
    fn y(&self) -> (f64, f64) {
        (f64::from(self.height - self.bottom), f64::from(self.top))
    }
}

/// Lines across the plot with their values left of it.
fn write_rows(svg: &mut String, frame: &Frame, ticks: &[(f64, String)]) {
    let (left, right) = frame.x();
    for (y, label) in ticks {
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>");
        let (x, y) = (left - 8.0, y + 4.0);
        let _ = writeln!(svg, "<text class=\"tick end\" x=\"{x}\" y=\"{y:.1}\">{label}</text>");
    }
}

/// Half the width of a value below the plot, in pixels.
const LABEL_HALF: f64 = 22.0;

/// Values below the plot, and what they are.
fn write_columns(svg: &mut String, frame: &Frame, scale: &TimeScale, ticks: &[Tick], what: &str) {
    let ((left, right), (bottom, _)) = (frame.x(), frame.y());
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{left} {bottom}H{right}\"/>");
    for tick in ticks {
        let x = scale.at(tick.value);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{x:.1} {bottom}v4\"/>");
        let (y, edge) = (bottom + 18.0, f64::from(frame.width));
        let (anchor, x) = if x + LABEL_HALF > edge { ("end", edge - 1.0) } else { ("middle", x) };
        let _ = writeln!(svg, "<text class=\"tick {anchor}\" x=\"{x:.1}\" y=\"{y}\">{}</text>", tick.label);
    }
    let y = bottom + 36.0;
    let _ = writeln!(svg, "<text class=\"tick end\" x=\"{right}\" y=\"{y}\">{what}</text>");
}
