//! A line for each series over the values of an axis, evenly apart.

use std::fmt::Write;

use onetrip_report::{LogScale, markup, names_apart};

use super::Data;

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
    for place in 0..data.columns.len() {
        let at = x(place);
        let _ = writeln!(svg, "<path class=\"axis\" d=\"M{at:.1} {bottom}v4\"/>");
        let name = markup(&data.column(place));
        let _ =
            writeln!(svg, "<text class=\"middle\" x=\"{at:.1}\" y=\"{:.1}\">{name}</text>", bottom + 18.0);
    }
    let (x_label, y_label) = (markup(&data.x_label.replace('_', " ")), markup(&data.legend()));
    let _ = writeln!(svg, "<text class=\"end\" x=\"{right}\" y=\"{:.1}\">{x_label}</text>", bottom + 38.0);
    let _ = writeln!(svg, "<text x=\"16\" y=\"48\">{y_label}</text>");
    for place in 0..data.series.len() {
        write_line(&mut svg, data, place, &x, &y);
    }
    write_names(&mut svg, data, &y);
    (WIDTH as u32, HEIGHT as u32, svg)
}

fn write_line(svg: &mut String, data: &Data<'_>, place: usize, x: &dyn Fn(usize) -> f64, y: &LogScale) {
    let (row, (color, number)) = (&data.values[place], data.color(place));
    let dashed = if number % 2 == 1 { " dashed" } else { "" };
    for (column, spread) in data.spreads[place].iter().enumerate() {
        let Some((least, most)) = spread else { continue };
        let (at, from, to) = (x(column), y.at(*least), y.at(*most));
        let _ = writeln!(svg, "<path class=\"spread s{color}\" d=\"M{at:.1} {from:.1}V{to:.1}\"/>");
    }
    let points: Vec<(f64, f64)> =
        row.iter().enumerate().filter_map(|(column, number)| Some((x(column), y.at((*number)?)))).collect();
    let mut path = String::new();
    for (at, height) in &points {
        let command = if path.is_empty() { 'M' } else { 'L' };
        let _ = write!(path, "{command}{at:.1} {height:.1}");
    }
    let _ = writeln!(svg, "<path class=\"line{dashed} s{color}\" d=\"{path}\"/>");
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
        let (x, (color, _), name) = (WIDTH - RIGHT + 10.0, data.color(place), markup(&name));
        let _ = writeln!(svg, "<text class=\"f{color}\" x=\"{x}\" y=\"{at:.1}\">{name}</text>");
    }
}
