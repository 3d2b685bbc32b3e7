//! A bar for each cell, in groups, with its number at its end.

use std::fmt::Write;

use onetrip_report::{LogScale, markup};

use super::{COLORS, Data};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 16.0;
const BAR: f64 = 18.0;
const GAP: f64 = 5.0;
const HEADING: f64 = 24.0;
/// Characters of a name.
const NAME_MAX: usize = 30;

pub(super) fn draw(data: &Data<'_>) -> (u32, u32, String) {
    let (low, high) = data.range();
    // Bars start a little below the least, so that it is still a bar; a part of a whole has a whole.
    let scale = LogScale::new((low / 2.0, high), (LEFT, WIDTH - RIGHT));
    let x = |number: f64| match data.is_share() {
        true => LEFT + (WIDTH - RIGHT - LEFT) * number.clamp(0.0, 1.0),
        false => scale.at(number),
    };
    let logarithmic = if data.is_share() { "" } else { ", logarithmic" };
    let mut svg = String::new();
    let _ = writeln!(svg, "<text x=\"16\" y=\"48\">{}{logarithmic}</text>", markup(&data.y_label));
    let mut at = TOP;
    for (column, name) in data.columns.iter().enumerate() {
        let bars: Vec<(usize, f64)> =
            data.values.iter().enumerate().filter_map(|(place, row)| Some((place, row[column]?))).collect();
        if bars.is_empty() {
            continue;
        }
        let heading = format!("{} {}", data.x_label.replace('_', " "), name);
        let _ = writeln!(
            svg,
            "<text class=\"title\" x=\"16\" y=\"{:.1}\">{}</text>",
            at + 17.0,
            markup(&heading)
        );
        at += HEADING;
        for (place, number) in bars {
            write_bar(&mut svg, data, (place, number), x(number), at);
            at += BAR + GAP;
        }
        at += GAP;
    }
    (WIDTH as u32, (at + BOTTOM) as u32, svg)
}

fn write_bar(svg: &mut String, data: &Data<'_>, (place, number): (usize, f64), end: f64, at: f64) {
    let name: String = data.series[place].chars().take(NAME_MAX).collect();
    let (color, middle, name) = (place % COLORS, at + 13.0, markup(&name));
    let end = end.max(LEFT + 1.0);
    let _ = writeln!(svg, "<text class=\"end\" x=\"{:.1}\" y=\"{middle:.1}\">{name}</text>", LEFT - 8.0);
    let _ = writeln!(
        svg,
        "<rect class=\"f{color}\" x=\"{LEFT}\" y=\"{at:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
        end - LEFT
    );
    let shown = markup(&data.show(number));
    let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{middle:.1}\">{shown}</text>", end + 6.0);
}
