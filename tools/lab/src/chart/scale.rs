//! Numbers on a logarithmic axis.

/// Numbers to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

/// Numbers to pixels, in either way.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scale {
    Log(LogScale),
    /// From zero to the whole.
    Linear {
        whole: f64,
        start: f64,
        end: f64,
    },
}

impl Scale {
    /// Where a number lies.
    pub(super) fn at(&self, number: f64) -> f64 {
        match self {
            Self::Log(scale) => scale.at(number),
            Self::Linear { whole, start, end } => start + (end - start) * (number / whole).clamp(0.0, 1.0),
        }
    }
}

impl LogScale {
    /// Numbers up from zero are shown from one on.
    pub(super) fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> Self {
        let from = if from > 0.0 { from } else { 1.0 };
        Self { from, to: to.max(from * 1.01), start, end }
    }

    /// Where a number lies; numbers outside lie at the end.
    pub(super) fn at(&self, number: f64) -> f64 {
        let part = (number.clamp(self.from, self.to) / self.from).ln() / (self.to / self.from).ln();
        self.start + part * (self.end - self.start)
    }

    /// Round numbers on the axis, at most about eight.
    pub(super) fn ticks(&self) -> Vec<f64> {
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
}
