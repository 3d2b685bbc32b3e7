//! How often trips took how long.

use std::fmt::Write;

use super::time_scale::TimeScale;
use super::{Frame, Size, write_columns, write_rows};
use crate::number::{count, counted, duration};
use onetrip_ledger::timeline::{Bar, Histogram};

/// The chart as a part of a page; `None` where there were no trips.
pub(crate) fn histogram(histogram: &Histogram, size: Size) -> Option<String> {
    let (frame, bars_max, class) = match size {
        Size::Wide => {
            (Frame { width: 760, height: 220, left: 68, right: 12, top: 26, bottom: 44 }, 72, "wide")
        }
        Size::Narrow => {
            (Frame { width: 360, height: 220, left: 58, right: 12, top: 26, bottom: 44 }, 32, "narrow")
        }
    };
    let bars = histogram.bars(bars_max);
    let (first, last) = (bars.first()?, bars.last()?);
    let most = bars.iter().map(|bar| bar.trips).max()?;
    let x = TimeScale::new(first.from_ns, last.to_ns, frame.x());
    let mut svg = format!(
        "<svg class=\"histogram {class}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Histogram of trip \
         times: {}, half within {}, 99 % within {}, the longest {}\">\n",
        frame.width,
        frame.height,
        counted(histogram.total(), "trip", "trips"),
        duration(histogram.quantile(0.5)),
        duration(histogram.quantile(0.99)),
        duration(histogram.max())
    );
    let (bottom, top) = frame.y();
    let height = |trips: u64| (bottom - top) * (trips as f64 / most as f64);
    let rows: Vec<_> = steps(most).into_iter().map(|trips| (bottom - height(trips), count(trips))).collect();
    write_rows(&mut svg, &frame, &rows);
    for bar in &bars {
        write_bar(&mut svg, bar, &x, (bottom, height(bar.trips)));
    }
    write_columns(&mut svg, &frame, &x, &x.ticks(if size == Size::Wide { 10 } else { 5 }), "time of a trip");
    write_quantiles(&mut svg, histogram, &x, &frame);
    svg.push_str("</svg>");
    Some(svg)
}

fn write_bar(svg: &mut String, bar: &Bar, x: &TimeScale, (bottom, height): (f64, f64)) {
    if bar.trips == 0 {
        return;
    }
    let (left, right) = (x.at(bar.from_ns), x.at(bar.to_ns));
    let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
    // A single trip among millions is still seen.
    let height = height.max(1.0);
    let what = format!(
        "{} to {}: {}",
        duration(bar.from_ns),
        duration(bar.to_ns),
        counted(bar.trips, "trip", "trips")
    );
    let _ = writeln!(
        svg,
        "<rect class=\"bar\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{what}</title></rect>",
        bottom - height,
        (right - left - gap).max(0.5),
    );
}

fn write_quantiles(svg: &mut String, histogram: &Histogram, x: &TimeScale, frame: &Frame) {
    let (bottom, top) = frame.y();
    let (left, right) = frame.x();
    let mut free = left;
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        let time = histogram.quantile(share);
        let at = x.at(time);
        let _ = writeln!(svg, "<path class=\"quantile\" d=\"M{at:.1} {bottom}V{}\"/>", top - 6.0);
        let label = format!("{name} {}", duration(time));
        let width = label.chars().count() as f64 * 6.6;
        let start = (at - width / 2.0).min(right - width).max(free);
        free = start + width + 10.0;
        let y = top - 12.0;
        let _ = writeln!(svg, "<text class=\"tick strong\" x=\"{start:.1}\" y=\"{y}\">{label}</text>");
    }
}

/// Round numbers up to `most`: three or so.
fn steps(most: u64) -> Vec<u64> {
    let mut step = 1;
    for factor in [2, 5, 10].into_iter().cycle() {
        if most / step < 4 || step > u64::MAX / 100 {
            break;
        }
        let decade = 10_u64.pow(step.ilog10());
        step = decade * factor;
    }
    (1..=most / step).map(|multiple| multiple * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_round_and_few() {
        assert_eq!(steps(3), [1, 2, 3]);
        assert_eq!(steps(400), [200, 400]);
        assert_eq!(steps(10_000_000), [5_000_000, 10_000_000]);
        assert!(steps(u64::MAX).len() < 1000);
    }
}
