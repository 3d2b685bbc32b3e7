//! Times on a logarithmic axis.

use super::log_scale::LogScale;
use crate::number::duration;

const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;

/// Times in nanoseconds to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeScale {
    from: u64,
    to: u64,
    scale: LogScale,
}

/// A value that an axis names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub(super) value: u64,
    pub(super) label: String,
}

impl TimeScale {
    /// `from` and `to` are at least one nanosecond apart and from zero.
    pub(super) fn new(from: u64, to: u64, pixels: (f64, f64)) -> Self {
        let from = from.max(1);
        let to = to.max(from.saturating_add(1));
        Self { from, to, scale: LogScale::new((from as f64, to as f64), pixels) }
    }

    pub(super) fn range(&self) -> (u64, u64) {
        (self.from, self.to)
    }

    /// Where a time lies; times outside lie at the end.
    pub(super) fn at(&self, value: u64) -> f64 {
        self.scale.at(value as f64)
    }

    /// Times at equal distances on the axis, both ends included.
    pub(super) fn samples(&self, number: u32) -> impl Iterator<Item = u64> {
        let (from, to) = self.range();
        let growth = to as f64 / from as f64;
        (0..number).map(move |sample| {
            let part = f64::from(sample) / f64::from(number.saturating_sub(1).max(1));
            ((from as f64 * growth.powf(part)).round() as u64).clamp(from, to)
        })
    }

    /// Round times on the axis, at most `most` and evenly chosen.
    pub(super) fn ticks(&self, most: usize) -> Vec<Tick> {
        let all: Vec<(u64, bool)> =
            round_times().into_iter().filter(|(time, _)| (self.from..=self.to).contains(time)).collect();
        if all.len() < 3 {
            return self.linear_ticks(most);
        }
        let majors: Vec<u64> = all.iter().filter(|(_, major)| *major).map(|(time, _)| *time).collect();
        let chosen: Vec<u64> = if all.len() <= most || majors.len() < 2 {
            all.into_iter().map(|(time, _)| time).collect()
        } else {
            majors
        };
        let step = chosen.len().div_ceil(most.max(1)).max(1);
        chosen.into_iter().step_by(step).map(|value| Tick { value, label: label(value) }).collect()
    }
}

impl TimeScale {
    /// Round times at equal steps, for ranges that are too narrow for powers of ten.
    fn linear_ticks(&self, most: usize) -> Vec<Tick> {
        let range = self.to - self.from;
        let step = round_times().into_iter().map(|(time, _)| time).find(|step| range / step < most as u64);
        let step = step.unwrap_or(range).max(1);
        let first = self.from.div_ceil(step);
        let values =
            (first..).map(|multiple| multiple.saturating_mul(step)).take_while(|value| *value <= self.to);
        values.take(most).map(|value| Tick { value, label: label(value) }).collect()
    }
}

/// Round times, and whether they are the first of their kind.
fn round_times() -> Vec<(u64, bool)> {
    let decades = (0..11).map(|decade| 10_u64.pow(decade));
    let mut times: Vec<(u64, bool)> = decades
        .flat_map(|decade| [(decade, true), (2 * decade, false), (5 * decade, false)])
        .filter(|(time, _)| *time < MINUTE)
        .collect();
    times.extend([1, 2, 5, 10, 20, 30].map(|minutes| (minutes * MINUTE, minutes == 1 || minutes == 10)));
    let hours = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000, 1_000_000];
    times.extend(hours.map(|hours: u64| (hours * HOUR, hours.to_string().starts_with('1'))));
    times
}

fn label(time: u64) -> String {
    match time {
        HOUR.. if time % HOUR == 0 => format!("{} h", time / HOUR),
        MINUTE..HOUR if time % MINUTE == 0 => format!("{} min", time / MINUTE),
        _ => match duration(time).split_once(' ') {
            Some((number, unit)) if number.contains('.') => {
                format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => duration(time),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        let labels = |from, to, most| -> Vec<String> {
            TimeScale::new(from, to, (0.0, 1.0)).ticks(most).into_iter().map(|tick| tick.label).collect()
        };
        assert_eq!(labels(40_000, 80_000_000, 6), ["100 µs", "1 ms", "10 ms"]);
        assert_eq!(
            labels(900_000, 200 * MINUTE, 9)[2..],
            ["100 ms", "1 s", "10 s", "1 min", "10 min", "1 h"]
        );
        assert_eq!(labels(3_000_000, 30_000_000, 6), ["5 ms", "10 ms", "20 ms"]);
        assert_eq!(labels(12_900_000, 22_300_000, 6), ["14 ms", "16 ms", "18 ms", "20 ms", "22 ms"]);
        assert_eq!(labels(1_200_000, 1_300_000, 3), ["1.2 ms", "1.25 ms", "1.3 ms"]);
        assert!(labels(1, u64::MAX, 7).len() <= 7);
    }

    #[test]
    fn samples_reach_both_ends() {
        let scale = TimeScale::new(50_000, 70_000_000, (10.0, 110.0));
        let samples: Vec<u64> = scale.samples(60).collect();
        assert_eq!((samples.len(), samples[0], samples[59]), (60, 50_000, 70_000_000));
        assert_eq!((scale.at(50_000), scale.at(70_000_000), scale.at(0)), (10.0, 110.0, 10.0));
    }
}
