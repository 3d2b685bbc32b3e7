//! A line for each series over the values of an axis, evenly apart.

use std::fmt::Write;

use onetrip_report::{LogScale, markup, names_apart};

use super::{COLORS, Data};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 48.0;
/// Characters of a name.
const NAME_MAX: usize = 26;

pub(super) fn draw(data: &Data<'_>) -> (u32, u32, String) {
    let (low, high) = data.range();
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let y = LogScale::new((low / 1.3, high * 1.3), (bottom, TOP));
    let x = |column: usize| {
        let gaps = data.columns.len().saturating_sub(1).max(1) as f64;
        LEFT + 14.0 + (right - LEFT - 28.0) * column as f64 / gaps
    };
    let mut svg = String::new();
    for tick in y.ticks() {
        let at = y.at(tick);
        let _ = writeln!(svg, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>");
        let label = data.show(tick);
        let _ =
            writeln!(svg, "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{label}</text>", LEFT - 8.0, at + 4.0);
    }
    let _ = writeln!(svg, "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>");
    for (place, name) in data.columns.iter().enumerate() {
        let at = x(place);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{at:.1} {bottom}v4\"/>");
        let name = markup(name);
        let _ =
            writeln!(svg, "<text class=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{name}</text>", bottom + 18.0);
    }
    let (x_label, y_label) = (markup(&data.x_label.replace('_', " ")), markup(&data.y_label));
    let _ = writeln!(svg, "<text class=\"end\" x=\"{right}\" y=\"{:.1}\">{x_label}</text>", bottom + 38.0);
    let _ = writeln!(svg, "<text x=\"16\" y=\"48\">{y_label}</text>");
    for (place, row) in data.values.iter().enumerate() {
        write_line(&mut svg, row, place % COLORS, &x, &y);
    }
    write_names(&mut svg, data, &y);
    (WIDTH as u32, HEIGHT as u32, svg)
}

fn write_line(svg: &mut String, row: &[Option<f64>], color: usize, x: &dyn Fn(usize) -> f64, y: &LogScale) {
    let points: Vec<(f64, f64)> =
        row.iter().enumerate().filter_map(|(column, number)| Some((x(column), y.at((*number)?)))).collect();
    let mut path = String::new();
    for (at, height) in &points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{at:.1} {height:.1}");
    }
    let _ = writeln!(svg, "<path class=\"line s{color}\" d=\"{path}\"/>");
    for (at, height) in points {
        let _ = writeln!(svg, "<circle class=\"f{color}\" cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"3.5\"/>");
    }
}

/// Names right of the lines' ends, moved apart where they would touch.
fn write_names(svg: &mut String, data: &Data<'_>, y: &LogScale) {
    let ends = data.values.iter().enumerate().filter_map(|(place, row)| {
        let last = row.iter().rev().find_map(|number| *number)?;
        Some((y.at(last) + 4.0, place))
    });
    for (at, place) in names_apart(ends.collect(), HEIGHT - BOTTOM) {
        let name: String = data.series[place].chars().take(NAME_MAX).collect();
        let (x, color, name) = (WIDTH - RIGHT + 10.0, place % COLORS, markup(&name));
        let _ = writeln!(svg, "<text class=\"f{color}\" x=\"{x}\" y=\"{at:.1}\">{name}</text>");
    }
}
