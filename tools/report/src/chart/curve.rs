//! Cost over distance.

use std::fmt::Write;

use super::log_scale::{NAME_HEIGHT, names_apart};
use super::time_scale::TimeScale;
use super::{Frame, Size, write_columns, write_rows};
use crate::clean::{clean, cut, markup};
use crate::number::duration;
use onetrip_forecast::{Curve, CurveLine};

/// Points at which a line is drawn.
const SAMPLES: u32 = 64;
/// Colours that lines take in turn; the style sheets have as many.
pub(crate) const COLORS: usize = 4;
/// Columns of a line's name beside it.
const NAME_MAX: usize = 22;

/// What a picture of its own needs that the page has in its style sheet.
const STYLE: &str = "text{font:12px 'DejaVu Sans','Segoe UI',Helvetica,Arial,sans-serif;fill:#44403c}\
    .title{font-size:15px;font-weight:bold;fill:#1c1917}.end{text-anchor:end}.middle{text-anchor:middle}\
    .paper{fill:#ffffff}.grid{stroke:#e7e5e4;fill:none}.axis{stroke:#a8a29e;fill:none}\
    .measured{stroke:#a8a29e;stroke-dasharray:2 3;fill:none}.line{fill:none;stroke-width:2.5}\
    .band{opacity:.14}.s0{stroke:#c2410c}.s1{stroke:#1d4ed8}.s2{stroke:#15803d}.s3{stroke:#7e22ce}\
    .f0{fill:#c2410c}.f1{fill:#1d4ed8}.f2{fill:#15803d}.f3{fill:#7e22ce}.cursor{display:none}";

/// The chart as a file of its own.
pub(crate) fn alone(curve: &Curve, title: &str) -> Option<String> {
    let (frame, body) = draw(curve, Size::Wide)?;
    let (width, height) = (frame.width, frame.height + 40);
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"16\" y=\"28\">{title}</text>\n\
         <g transform=\"translate(0 40)\">\n{body}</g>\n</svg>\n",
        title = markup(&cut(title, 90))
    ))
}

/// The chart as a part of a page, whose script moves the cursor; `None` where there is nothing to draw.
pub(crate) fn curve(curve: &Curve, size: Size) -> Option<String> {
    let (frame, body) = draw(curve, size)?;
    let (x, y) = scales(curve, &frame)?;
    let class = match size {
        Size::Wide => "wide",
        Size::Narrow => "narrow",
    };
    let ((x0, x1), (y0, y1), (rtt0, rtt1), (time0, time1)) = (frame.x(), frame.y(), x.range(), y.range());
    Some(format!(
        "<svg class=\"curve {class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Time of the run over \
         round-trip time\" data-x=\"{x0} {x1}\" data-y=\"{y0} {y1}\" data-rtt=\"{rtt0} {rtt1}\" \
         data-time=\"{time0} {time1}\">\n{body}</svg>",
        frame.width, frame.height
    ))
}

fn frame(size: Size) -> Frame {
    match size {
        Size::Wide => Frame { width: 760, height: 340, left: 68, right: 156, top: 14, bottom: 44 },
        Size::Narrow => Frame { width: 360, height: 300, left: 58, right: 12, top: 10, bottom: 44 },
    }
}

fn scales(curve: &Curve, frame: &Frame) -> Option<(TimeScale, TimeScale)> {
    let (least, most) = curve.range()?;
    // A logarithmic axis has no zero: four decades are more than any two places on Earth are apart.
    let x = TimeScale::new(least.max(most / 10_000).max(1), most, frame.x());
    let points = || curve.lines.iter().flat_map(|line| x.samples(SAMPLES).filter_map(|rtt| line.at(rtt)));
    let low = points().map(|point| point.low_ns.min(point.time_ns)).min()?;
    let high = points().map(|point| point.high_ns.max(point.time_ns)).max()?;
    // Air above and below, so that a line never lies on the frame.
    Some((x, TimeScale::new(low / 5 * 4, high.saturating_add(high / 4), frame.y())))
}

fn draw(curve: &Curve, size: Size) -> Option<(Frame, String)> {
    let frame = frame(size);
    let (x, y) = scales(curve, &frame)?;
    let mut svg = String::new();
    let mut ticks: Vec<_> = y.ticks(8).into_iter().map(|tick| (y.at(tick.value), tick.label)).collect();
    // 50 s and 1 min are nearer to each other than other round times.
    ticks.dedup_by(|next, last| last.0 - next.0 < NAME_HEIGHT);
    write_rows(&mut svg, &frame, &ticks);
    let most = if size == Size::Wide { 8 } else { 5 };
    write_columns(&mut svg, &frame, &x, &x.ticks(most), "round-trip time to the database");
    if let Some(measured) = curve.measured_ns {
        write_measured(&mut svg, &frame, &x, measured);
    }
    // Backwards, so that the first line lies above the others.
    for (place, line) in curve.lines.iter().enumerate().rev() {
        write_line(&mut svg, line, place % COLORS, &x, &y);
    }
    if size == Size::Wide {
        write_names(&mut svg, curve, &frame, &y);
    }
    write_cursor(&mut svg, curve, &frame, (&x, &y));
    Some((frame, svg))
}

fn write_measured(svg: &mut String, frame: &Frame, x: &TimeScale, measured: u64) {
    let (from, to) = x.range();
    if !(from..=to).contains(&measured) {
        return;
    }
    let (at, (bottom, top)) = (x.at(measured), frame.y());
    let _ = writeln!(svg, "<path class=\"measured\" d=\"M{at:.1} {bottom}V{top}\"/>");
    let (side, at) = if at > frame.x().1 - 90.0 { (" end", at - 5.0) } else { ("", at + 5.0) };
    let (y, measured) = (top + 10.0, duration(measured));
    let _ = writeln!(svg, "<text class=\"tick{side}\" x=\"{at:.1}\" y=\"{y}\">measured {measured}</text>");
}

fn write_line(svg: &mut String, line: &CurveLine, color: usize, x: &TimeScale, y: &TimeScale) {
    let points: Vec<_> = x.samples(SAMPLES).filter_map(|rtt| line.at(rtt)).collect();
    let path = |points: &mut dyn Iterator<Item = (u64, u64)>| {
        points.fold(String::new(), |mut path, (rtt, time)| {
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{:.1} {:.1}", x.at(rtt), y.at(time));
            path
        })
    };
    let upper = points.iter().map(|point| (point.rtt_ns, point.high_ns.max(point.time_ns)));
    let lower = points.iter().rev().map(|point| (point.rtt_ns, point.low_ns.min(point.time_ns)));
    let _ = writeln!(svg, "<path class=\"band f{color}\" d=\"{}Z\"/>", path(&mut upper.chain(lower)));
    let middle = path(&mut points.iter().map(|point| (point.rtt_ns, point.time_ns)));
    let _ = writeln!(svg, "<path class=\"line s{color}\" d=\"{middle}\"/>");
}

/// Names right of the lines' ends, moved apart where they would touch.
fn write_names(svg: &mut String, curve: &Curve, frame: &Frame, y: &TimeScale) {
    let ends = curve
        .lines
        .iter()
        .enumerate()
        .filter_map(|(place, line)| Some((y.at(line.points.last()?.time_ns) + 4.0, place)));
    for (at, place) in names_apart(ends.collect(), frame.y().0) {
        let line = &curve.lines[place];
        let (x, color, name) =
            (frame.x().1 + 10.0, place % COLORS, markup(&cut(&clean(&line.name), NAME_MAX)));
        let _ = writeln!(svg, "<text class=\"name f{color}\" x=\"{x}\" y=\"{at:.1}\">{name}</text>");
    }
}

/// A line at the round-trip time that is looked at, with a dot on each curve.
fn write_cursor(svg: &mut String, curve: &Curve, frame: &Frame, (x, y): (&TimeScale, &TimeScale)) {
    let (at, (bottom, top)) = (x.at(curve.target_ns), frame.y());
    let _ = writeln!(svg, "<g class=\"cursor\" transform=\"translate({at:.1} 0)\">");
    let _ = writeln!(svg, "<path d=\"M0 {bottom}V{top}\"/>");
    for (place, line) in curve.lines.iter().enumerate() {
        let height = line.at(curve.target_ns).map_or(bottom, |point| y.at(point.time_ns));
        let color = place % COLORS;
        let _ = writeln!(svg, "<circle class=\"f{color}\" cx=\"0\" cy=\"{height:.1}\" r=\"4.5\"/>");
    }
    svg.push_str("</g>\n");
}
