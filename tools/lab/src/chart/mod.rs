//! Charts of samples as SVG, light and dark, and as PNG.

mod dots;
mod lines;
pub(crate) mod spec;

use std::fmt::Write;

use onetrip_report::markup;

pub use spec::{ChartKind, ChartSpec};

use crate::LabError;
use crate::cell::Cell;
use crate::measure::Measure;
use crate::samples::Samples;

/// Colours of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// As the reader's system likes it.
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The cells of a chart.
pub(crate) struct Data<'s> {
    pub(crate) title: &'s str,
    pub(crate) x_label: &'s str,
    pub(crate) y_label: String,
    pub(crate) columns: Vec<&'s str>,
    pub(crate) series: Vec<&'s str>,
    /// By series, then by column.
    pub(crate) values: Vec<Vec<Option<f64>>>,
    /// The least and the greatest round of each, where there are several.
    pub(crate) spreads: Vec<Vec<Option<(f64, f64)>>>,
    measure: Measure,
    relative: bool,
}

/// Colours of series.
const COLORS: usize = 8;
/// The one of what onetrip does, in every chart; the others take the rest in turn.
const COLOR_OF_ONETRIP: usize = 3;
const LIGHT: &str = "text{font:12px 'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;fill:#44403c}\
    .title{font-size:15px;font-weight:bold;fill:#1c1917}.end{text-anchor:end}.middle{text-anchor:middle}\
    .paper{fill:#ffffff}.grid{stroke:#e7e5e4;fill:none}.axis{stroke:#a8a29e;fill:none}\
    .line{fill:none;stroke-width:2.5;stroke-linejoin:round}.dashed{stroke-dasharray:6 4}.spread{fill:none;stroke-width:1.5}\
    .s0{stroke:#c2410c}.s1{stroke:#1d4ed8}.s2{stroke:#15803d}.s3{stroke:#7e22ce}\
    .s4{stroke:#0e7490}.s5{stroke:#a16207}.s6{stroke:#be185d}.s7{stroke:#57534e}\
    .f0{fill:#c2410c}.f1{fill:#1d4ed8}.f2{fill:#15803d}.f3{fill:#7e22ce}\
    .f4{fill:#0e7490}.f5{fill:#a16207}.f6{fill:#be185d}.f7{fill:#57534e}";
const DARK: &str = "text{fill:#c4beb9}.title{fill:#f5f5f4}.paper{fill:#161412}.grid{stroke:#38332f}.axis{stroke:#78716c}\
    .s0{stroke:#fb923c}.s1{stroke:#93c5fd}.s2{stroke:#4ade80}.s3{stroke:#d8b4fe}\
    .s4{stroke:#67e8f9}.s5{stroke:#fde047}.s6{stroke:#f9a8d4}.s7{stroke:#d6d3d1}\
    .f0{fill:#fb923c}.f1{fill:#93c5fd}.f2{fill:#4ade80}.f3{fill:#d8b4fe}\
    .f4{fill:#67e8f9}.f5{fill:#fde047}.f6{fill:#f9a8d4}.f7{fill:#d6d3d1}";

/// The chart as a picture of its own; `None` where the samples have nothing for it.
pub fn svg(spec: &ChartSpec, samples: &Samples, theme: Theme) -> Option<String> {
    let data = Data::of(spec, samples)?;
    let (width, height, body) = match spec.kind {
        ChartKind::Lines => lines::draw(&data),
        ChartKind::Dots => dots::draw(&data),
    };
    let style = match theme {
        Theme::Auto => format!("{LIGHT}@media(prefers-color-scheme:dark){{{DARK}}}"),
        Theme::Light => LIGHT.to_owned(),
        Theme::Dark => format!("{LIGHT}{DARK}"),
    };
    let title = markup(data.title);
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>{style}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"16\" y=\"26\">{title}</text>\n{body}</svg>\n"
    );
    Some(out)
}

/// The chart as a PNG; `None` where [`svg`] has none.
///
/// # Errors
///
/// The picture cannot be rendered; it is our own, so that this is not expected.
pub fn png(spec: &ChartSpec, samples: &Samples, theme: Theme) -> Result<Option<Vec<u8>>, LabError> {
    Ok(svg(spec, samples, theme).map(|svg| onetrip_report::svg_png(&svg)).transpose()?)
}

impl<'s> Data<'s> {
    fn of(spec: &'s ChartSpec, samples: &'s Samples) -> Option<Self> {
        let is_meant = |cell: &&Cell| spec.only.iter().all(|(axis, value)| cell.on(axis) == Some(value));
        let cells: Vec<&Cell> = samples.cells.iter().filter(is_meant).collect();
        let present = |axis: &str| -> Vec<&'s str> {
            let mut values = samples.values_of(axis);
            values.retain(|value| cells.iter().any(|cell| cell.on(axis) == Some(value)));
            values
        };
        let (columns, series) = (present(&spec.x), present(&spec.series));
        let cell = |series: &str, column: &str| {
            let is_there =
                |cell: &&&Cell| cell.on(&spec.x) == Some(column) && cell.on(&spec.series) == Some(series);
            cells.iter().find(is_there).copied()
        };
        let of_row = |series: &&str| columns.iter().map(|column| cell(series, column)).collect();
        let rows: Vec<Vec<Option<&Cell>>> = series.iter().map(of_row).collect();
        let mut values = each(&rows, |cell| spec.y.of(cell));
        let mut spreads = each(&rows, |cell| spec.y.spread(cell));
        if spec.relative {
            make_relative(&mut values, &mut spreads, columns.len());
        }
        values.iter().flatten().any(Option::is_some).then_some(Self {
            title: &spec.title,
            x_label: &spec.x,
            y_label: match spec.relative {
                true => format!("{}, the least is 1", spec.y.label()),
                false => spec.y.label().to_owned(),
            },
            columns,
            series,
            values,
            spreads,
            measure: spec.y,
            relative: spec.relative,
        })
    }

    /// A number as it stands in the chart.
    pub(crate) fn show(&self, value: f64) -> String {
        if self.relative { format!("{} ×", crate::measure::digits(value)) } else { self.measure.show(value) }
    }

    /// Whether numbers are parts of a whole.
    pub(crate) fn is_share(&self) -> bool {
        self.measure == Measure::ServerIdle && !self.relative
    }

    /// What is drawn, in words.
    pub(crate) fn legend(&self) -> String {
        let logarithmic = if self.is_share() { "" } else { ", logarithmic" };
        let has_spread = self.spreads.iter().flatten().any(Option::is_some);
        let spread = if has_spread { "; thin line: least to greatest round" } else { "" };
        format!("{}{logarithmic}{spread}", self.y_label)
    }

    /// The name of a place on the x axis.
    pub(crate) fn column(&self, place: usize) -> String {
        self.columns[place].parse().map_or_else(|_| self.columns[place].to_owned(), onetrip_report::count)
    }

    /// The colour of a series, and how many before it have the same.
    pub(crate) fn color(&self, place: usize) -> (usize, usize) {
        let before = self.series[..place].iter().filter(|name| is_onetrips(name)).count();
        if is_onetrips(self.series[place]) {
            return (COLOR_OF_ONETRIP, before);
        }
        let turn = place - before;
        let color = turn % (COLORS - 1);
        (if color >= COLOR_OF_ONETRIP { color + 1 } else { color }, turn / (COLORS - 1))
    }

    /// The least and the greatest number.
    pub(crate) fn range(&self) -> (f64, f64) {
        let ends = self.spreads.iter().flatten().flatten().flat_map(|(least, most)| [*least, *most]);
        let numbers = || self.values.iter().flatten().flatten().copied().chain(ends.clone());
        (numbers().fold(f64::INFINITY, f64::min), numbers().fold(0.0, f64::max))
    }
}

/// What onetrip does, by its name: what goes through the gateway, and its own server.
fn is_onetrips(series: &str) -> bool {
    series.contains("gateway") || series.contains("onetrip") || series == "embedded"
}

/// Something of each cell that there is.
fn each<T>(rows: &[Vec<Option<&Cell>>], of: impl Fn(&Cell) -> Option<T>) -> Vec<Vec<Option<T>>> {
    rows.iter().map(|row| row.iter().map(|cell| cell.and_then(&of)).collect()).collect()
}

fn make_relative(values: &mut [Vec<Option<f64>>], spreads: &mut [Vec<Option<(f64, f64)>>], columns: usize) {
    for column in 0..columns {
        let least = values.iter().filter_map(|row| row[column]).fold(f64::INFINITY, f64::min);
        let part = |number: f64| number / least.max(f64::MIN_POSITIVE);
        for (row, spread) in values.iter_mut().zip(spreads.iter_mut()) {
            row[column] = row[column].map(part);
            spread[column] = spread[column].map(|(least, most)| (part(least), part(most)));
        }
    }
}
