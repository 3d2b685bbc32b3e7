use std::time::Duration;

use onetrip_link::BitsPerSecond;

use crate::{Curve, CurveLine, CurvePoint, Forecast, Path, Prediction};

/// Round-trip times that are priced unless others are named: the next rack, the next town, the next country, the
/// next continent.
pub const DISTANCES: [Duration; 4] = [
    Duration::from_micros(400),
    Duration::from_millis(1),
    Duration::from_millis(13),
    Duration::from_millis(70),
];
/// Distance that is looked at first unless one is named.
const LOOK_AT: Duration = Duration::from_millis(13);
/// Round-trip times between which the curve is drawn, in microseconds.
const CURVE_US: [u64; 14] =
    [50, 100, 200, 400, 700, 1_000, 2_000, 5_000, 10_000, 20_000, 35_000, 50_000, 70_000, 100_000];

/// What a run costs at several distances.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices {
    /// Round-trip time at which the run was counted, in nanoseconds; `None` on a Unix socket.
    pub measured_rtt_ns: Option<u64>,
    /// Bandwidth of the path, in bits per second; `None` where it does not matter.
    pub bandwidth: Option<u64>,
    /// The measured distance and those asked for, the nearest first.
    pub rows: Vec<Price>,
    /// Cost over distance.
    pub curve: Curve,
}

/// What a run costs at one distance; times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    /// Round-trip time.
    pub rtt_ns: u64,
    /// Whether this is what was measured, not a forecast.
    pub measured: bool,
    /// As the program is.
    pub as_is: Prediction,
    /// With the findings' fixes made.
    pub fixed: Prediction,
    /// If one trip carried everything.
    pub limit: Prediction,
    /// The same program with `--remedies exact` at their best, where none were on and there is something for them to do.
    pub with_remedies: Option<Prediction>,
    /// The same program without the remedies that were on, where they took trips out.
    pub without_remedies: Option<Prediction>,
    /// Bits per second that the run moves in its busier direction, on average.
    pub bits_per_second: u64,
}

impl Prices {
    /// The price at the distance that is looked at first.
    pub fn target(&self) -> Option<&Price> {
        self.rows.iter().find(|price| price.rtt_ns == self.curve.target_ns).or_else(|| self.rows.last())
    }
}

impl Price {
    /// Share of a path of `bandwidth` bits per second that the run uses, one for all of it.
    pub fn share_of(&self, bandwidth: u64) -> f64 {
        self.bits_per_second as f64 / bandwidth.max(1) as f64
    }
}

impl Forecast<'_> {
    /// Prices at the measured distance and at `distances` ([`DISTANCES`] if there are none), and the curve.
    pub fn prices(&self, distances: &[Duration], bandwidth: Option<BitsPerSecond>) -> Prices {
        let measured = self.measured_rtt();
        let chosen = if distances.is_empty() { &DISTANCES } else { distances };
        // Playing the run is most of the work, and the rows are points of the curve.
        let mut known: Vec<(Path, Price)> = Vec::new();
        let mut price = |path: Path| match known.iter().find(|(played, _)| *played == path) {
            Some((_, price)) => *price,
            None => {
                let price = self.price(path);
                known.push((path, price));
                price
            }
        };
        let mut rows = vec![Price { measured: true, ..price(Path { rtt: measured, bandwidth: None }) }];
        rows.extend(chosen.iter().map(|rtt| price(Path { rtt: *rtt, bandwidth })));
        rows.sort_by_key(|price| (price.rtt_ns, !price.measured));
        let mut drawn: Vec<Duration> = CURVE_US.map(Duration::from_micros).to_vec();
        drawn.extend(chosen.iter().copied().chain([measured]).filter(|rtt| !rtt.is_zero()));
        drawn.sort_unstable();
        drawn.dedup();
        let drawn: Vec<Price> = drawn.into_iter().map(|rtt| price(Path { rtt, bandwidth })).collect();
        let line = |name: &str, prediction: fn(&Price) -> Option<Prediction>| {
            let point = |price: &Price| prediction(price).map(|prediction| point(price.rtt_ns, prediction));
            let points: Vec<CurvePoint> = drawn.iter().filter_map(point).collect();
            (!points.is_empty()).then(|| CurveLine { name: name.into(), points })
        };
        let rtt_min = self.has_path().then(|| nanoseconds(measured));
        let curve = Curve {
            lines: [
                line("as is", |price| Some(price.as_is)),
                line("with code fixes", |price| Some(price.fixed)),
                line("one-trip limit", |price| Some(price.limit)),
                line("with remedies", |price| price.with_remedies),
                line("no remedies", |price| price.without_remedies),
            ]
            .into_iter()
            .flatten()
            .collect(),
            measured_ns: rtt_min,
            target_ns: nanoseconds(distances.first().copied().unwrap_or(LOOK_AT)),
        };
        Prices { measured_rtt_ns: rtt_min, bandwidth: bandwidth.map(BitsPerSecond::get), rows, curve }
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn point(rtt_ns: u64, prediction: Prediction) -> CurvePoint {
    CurvePoint { rtt_ns, time_ns: prediction.time_ns, low_ns: prediction.low_ns, high_ns: prediction.high_ns }
}
