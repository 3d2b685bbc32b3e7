//! A dot for each cell, in groups, with its number beside it and its spread as a line. Where a number is a part of a whole, a bar.

use std::fmt::Write;

use onetrip_report::{LogScale, markup};

use super::Data;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 34.0;
const ROW: f64 = 23.0;
const BAR: f64 = 14.0;
const HEADING: f64 = 24.0;
/// Characters of a name.
const NAME_MAX: usize = 30;

pub(super) fn draw(data: &Data<'_>) -> (u32, u32, String) {
    let (low, high) = data.range();
    let scale = LogScale::new((low / 1.3, high * 1.1), (LEFT, WIDTH - RIGHT));
    let mut rows = String::new();
    let mut at = TOP;
    for column in 0..data.columns.len() {
        let shown: Vec<usize> =
            (0..data.series.len()).filter(|series| data.values[*series][column].is_some()).collect();
        if shown.is_empty() {
            continue;
        }
        let heading = format!("{} {}", data.x_label.replace('_', " "), data.column(column));
        let _ = writeln!(
            rows,
            "<text class=\"title\" x=\"16\" y=\"{:.1}\">{}</text>",
            at + 17.0,
            markup(&heading)
        );
        at += HEADING;
        for series in shown {
            write_row(&mut rows, data, (series, column), &scale, at + ROW / 2.0);
            at += ROW;
        }
        at += 5.0;
    }
    let mut svg = String::new();
    let _ = writeln!(svg, "<text x=\"16\" y=\"48\">{}</text>", markup(&data.legend()));
    if !data.is_share() {
        for tick in scale.ticks() {
            let (x, label) = (scale.at(tick), markup(&data.show(tick)));
            let _ = writeln!(svg, "<path class=\"grid\" d=\"M{x:.1} {TOP}V{at:.1}\"/>");
            let _ =
                writeln!(svg, "<text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{label}</text>", at + 18.0);
        }
    }
    svg += &rows;
    (WIDTH as u32, (at + BOTTOM) as u32, svg)
}

fn write_row(
    svg: &mut String,
    data: &Data<'_>,
    (series, column): (usize, usize),
    scale: &LogScale,
    middle: f64,
) {
    let Some(number) = data.values[series][column] else { return };
    let name: String = data.series[series].chars().take(NAME_MAX).collect();
    let ((color, _), base, name) = (data.color(series), middle + 4.0, markup(&name));
    let _ = writeln!(svg, "<text class=\"end\" x=\"{:.1}\" y=\"{base:.1}\">{name}</text>", LEFT - 8.0);
    let mut end = scale.at(number);
    if data.is_share() {
        end = LEFT + (WIDTH - RIGHT - LEFT) * number.clamp(0.0, 1.0);
        let (top, width) = (middle - BAR / 2.0, (end - LEFT).max(1.0));
        let _ = writeln!(
            svg,
            "<rect class=\"f{color}\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>"
        );
    } else {
        let _ = writeln!(svg, "<circle class=\"f{color}\" cx=\"{end:.1}\" cy=\"{middle:.1}\" r=\"4.5\"/>");
        if let Some((least, most)) = data.spreads[series][column] {
            let (from, to) = (scale.at(least), scale.at(most));
            let _ = writeln!(svg, "<path class=\"spread s{color}\" d=\"M{from:.1} {middle:.1}H{to:.1}\"/>");
            end = end.max(to);
        }
    }
    let shown = markup(&data.show(number));
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{base:.1}\">{shown}</text>", end + 10.0);
}
