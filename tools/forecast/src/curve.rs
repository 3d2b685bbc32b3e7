/// Cost over distance: how long the run takes for each round-trip time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// Ways to do the same work: as it is, with code fixes, the limit of one trip. The first is the one that
    /// others are compared with.
    pub lines: Vec<CurveLine>,
    /// Round-trip time that was measured, in nanoseconds.
    pub measured_ns: Option<u64>,
    /// Round-trip time that is looked at first, in nanoseconds.
    pub target_ns: u64,
}

/// One way to do the work.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CurveLine {
    /// What it is called.
    pub name: String,
    /// Its forecasts, by rising round-trip time. Between two of them cost is taken to be linear in the round-trip
    /// time, as it is for trips of a fixed number.
    pub points: Vec<CurvePoint>,
}

/// A forecast at one round-trip time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CurvePoint {
    /// Round-trip time.
    pub rtt_ns: u64,
    /// How long the run takes.
    pub time_ns: u64,
    /// The least that it may take.
    pub low_ns: u64,
    /// The most that it may take.
    pub high_ns: u64,
}

impl Curve {
    /// Smallest and largest round-trip time of all lines; `None` where there is no range to draw.
    pub fn range(&self) -> Option<(u64, u64)> {
        let all = || self.lines.iter().flat_map(|line| &line.points).map(|point| point.rtt_ns);
        let (least, most) = (all().min()?, all().max()?);
        (least < most).then_some((least, most))
    }
}

impl CurveLine {
    /// The forecast at `rtt_ns`; beyond the ends it is that of the end.
    pub fn at(&self, rtt_ns: u64) -> Option<CurvePoint> {
        let (first, last) = (self.points.first()?, self.points.last()?);
        if rtt_ns <= first.rtt_ns {
            return Some(CurvePoint { rtt_ns, ..*first });
        }
        let Some(next) = self.points.iter().position(|point| point.rtt_ns >= rtt_ns) else {
            return Some(CurvePoint { rtt_ns, ..*last });
        };
        let (from, to) = (self.points[next - 1], self.points[next]);
        let part = (rtt_ns - from.rtt_ns) as f64 / (to.rtt_ns - from.rtt_ns).max(1) as f64;
        let between = |from: u64, to: u64| (from as f64 + (to as f64 - from as f64) * part).round() as u64;
        Some(CurvePoint {
            rtt_ns,
            time_ns: between(from.time_ns, to.time_ns),
            low_ns: between(from.low_ns, to.low_ns),
            high_ns: between(from.high_ns, to.high_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_linear_between_forecasts_and_flat_beyond_them() {
        let point = |rtt_ns, time_ns| CurvePoint { rtt_ns, time_ns, low_ns: time_ns, high_ns: 2 * time_ns };
        let line = CurveLine { name: String::new(), points: vec![point(100, 1_000), point(200, 3_000)] };
        let times: Vec<_> = [0, 100, 150, 200, 999].into_iter().filter_map(|rtt| line.at(rtt)).collect();
        let expected = [point(0, 1_000), point(100, 1_000), point(150, 2_000), point(200, 3_000)];
        assert_eq!(times[..4], expected);
        assert_eq!(times[4], point(999, 3_000));
        assert_eq!(CurveLine::default().at(1), None);
    }
}
