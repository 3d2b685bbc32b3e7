//! Numbers on a logarithmic axis.

/// Numbers to pixels.
#[derive(Debug, Clone, Copy)]
pub struct LogScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl LogScale {
    /// Numbers between the first two lie between the pixels of the other two. Numbers up from zero are shown from one
    /// on.
    pub fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        let from = if from > 0.0 { from } else { 1.0 };
        let to = if to > from { to } else { from * 1.01 };
        Self { from, to, start, end }
    }

    /// Where a number lies; numbers outside lie at the end.
    pub fn at(&self, number: f64) -> f64 {
        let (from, to) = (self.from.ln(), self.to.ln());
        let part = (number.clamp(self.from, self.to).ln() - from) / (to - from);
        self.start + part * (self.end - self.start)
    }

    /// Round numbers on the axis, at most about eight.
    pub fn ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let steps: &[f64] = match decades {
            d if d > 2.5 => &[1.0],
            d if d > 1.2 => &[1.0, 3.0],
            _ => &[1.0, 2.0, 3.0, 5.0, 7.0],
        };
        let stride = if decades > 8.0 { 2 } else { 1 };
        let first = self.from.log10().floor() as i32;
        let last = self.to.log10().ceil() as i32;
        let numbers = (first..=last)
            .step_by(stride)
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        numbers.filter(|number| (self.from..=self.to).contains(number)).collect()
    }
}

/// Places for names right of the lines' ends, so that none touches another: from the heights that they would like best,
/// in pixels from the top, each with its line's number. `bottom` is the lowest place.
pub fn names_apart(mut wanted: Vec<(f64, usize)>, bottom: f64) -> Vec<(f64, usize)> {
    wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lowest = bottom - NAME_HEIGHT * wanted.len().saturating_sub(1) as f64;
    let mut free = f64::MIN;
    for (row, (at, _)) in wanted.iter_mut().enumerate() {
        *at = at.min(lowest + NAME_HEIGHT * row as f64).max(free);
        free = *at + NAME_HEIGHT;
    }
    wanted
}

/// Closest names beside lines, in pixels.
pub(super) const NAME_HEIGHT: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside() {
        assert_eq!(
            LogScale::new((40.0, 200_000.0), (0.0, 1.0)).ticks(),
            [100.0, 1_000.0, 10_000.0, 100_000.0]
        );
        assert_eq!(LogScale::new((1.0, 4.0), (0.0, 1.0)).ticks(), [1.0, 2.0, 3.0]);
        let scale = LogScale::new((0.0, 0.0), (10.0, 20.0));
        assert!((10.0..=20.0).contains(&scale.at(0.0)));
    }

    #[test]
    fn names_are_moved_apart_and_stay_inside() {
        assert_eq!(names_apart(vec![(50.0, 0), (48.0, 1)], 100.0), [(48.0, 1), (64.0, 0)]);
        assert_eq!(names_apart(vec![(99.0, 0), (98.0, 1)], 100.0), [(84.0, 1), (100.0, 0)]);
    }
}
