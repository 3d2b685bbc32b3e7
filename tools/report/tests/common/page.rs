//! What a ledger would gather for a page.

use onetrip_forecast::{Curve, CurveLine, CurvePoint, Prediction, Price, Prices};
use onetrip_ledger::timeline::{Timeline, TripSample};
use onetrip_ledger::{Evidence, ScopeTotals, Summary};

use super::{EMPLOYEES, SALARIES};

/// The loop of the story, 12.9 ms away, on `connections` connections that take turns. Every second one is another user's, and for
/// another scope.
pub(crate) fn story_timeline(connections: u32) -> Timeline {
    let mut timeline = Timeline::default();
    timeline.statements = [(1, EMPLOYEES), (2, SALARIES), (3, "BEGIN"), (4, "COMMIT")]
        .map(|(id, text)| (id, text.to_owned()))
        .into();
    timeline.scopes = [(1, "GET /shop".to_owned()), (2, "GET /staff".to_owned())].into();
    let mut noise = fastrand::Rng::with_seed(7);
    for connection in 1..=connections {
        let (user, scope) = if connection % 2 == 1 { ("web@shop", 1) } else { ("staff@shop", 2) };
        timeline.opened(connection, user);
        let mut now = u64::from(connection) * 90_000_000;
        for number in 0..406 / u64::from(connections).min(20) {
            let statement = match number {
                0..=3 => 3,
                4 => 1,
                number if number % 40 == 0 => 4,
                _ => 2,
            };
            let took = 12_900_000 + noise.u64(..600_000) + if noise.u64(..60) == 0 { 9_000_000 } else { 0 };
            let connect = number < 3;
            timeline.add(TripSample {
                connection,
                started_ns: now,
                ended_ns: now + took,
                server_ns: took - 12_880_000,
                statement,
                scope: if connect { 0 } else { scope },
                connect,
                ..TripSample::default()
            });
            now += took + 20_000 + noise.u64(..30_000) * if number % 50 == 0 { 2_000 } else { 1 };
        }
    }
    timeline
}

/// What the story costs anywhere.
pub(crate) fn story_prices() -> Prices {
    let curve = story_curve();
    let prediction = |line: usize, rtt_ns: u64| {
        let point = curve.lines[line].at(rtt_ns).unwrap_or_default();
        Prediction { time_ns: point.time_ns, low_ns: point.low_ns, high_ns: point.high_ns }
    };
    let price = |rtt_ns: u64| Price {
        rtt_ns,
        measured: rtt_ns == 12_900_000,
        as_is: prediction(0, rtt_ns),
        fixed: prediction(1, rtt_ns),
        limit: prediction(2, rtt_ns),
        with_remedies: Some(prediction(3, rtt_ns)),
        without_remedies: None,
        bits_per_second: 146_000 * 8 * 1_000_000_000 / prediction(0, rtt_ns).time_ns,
    };
    let rows = [12_900_000, 400_000, 1_000_000, 13_000_000, 70_000_000].map(price).into();
    Prices { measured_rtt_ns: Some(12_900_000), bandwidth: Some(32_000_000), rows, curve }
}

/// 406 trips, 7 once fixed, one at least.
pub(crate) fn story_curve() -> Curve {
    let line = |name: &str, trips: u64, rest_ns: u64| CurveLine {
        name: name.into(),
        points: [50_000, 400_000, 1_000_000, 13_000_000, 70_000_000]
            .map(|rtt_ns| {
                let time_ns = rest_ns + trips * rtt_ns;
                CurvePoint { rtt_ns, time_ns, low_ns: time_ns / 100 * 94, high_ns: time_ns / 100 * 107 }
            })
            .into(),
    };
    Curve {
        lines: vec![
            line("as is", 406, 53_000_000),
            line("with code fixes", 7, 51_000_000),
            line("one-trip limit", 1, 50_000_000),
            line("with remedies", 104, 53_000_000),
        ],
        measured_ns: Some(12_900_000),
        target_ns: 12_900_000,
    }
}

/// Long, hostile and many of everything that a page lists, and as many trips as are wanted.
pub(crate) fn worst(
    trips: u64,
    template: impl Fn(&str, u64) -> onetrip_ledger::TemplateTotals,
) -> (Summary, Timeline) {
    let hostile = |number: u64| {
        format!("SELECT {number} <script>alert(1)</script> & {}", "\"<&'>\u{202e}".repeat(1_000))
    };
    let mut finding = super::story().findings.remove(0);
    finding.scopes = (0..5).map(hostile).collect();
    finding.fix = hostile(0);
    finding.evidence = Evidence::Walk { sources: vec![(1, hostile(1)); 40], rows: (1, 2) };
    let summary = Summary {
        templates: (0..5_000).map(|number| template(&hostile(number), 10_000_000 - number)).collect(),
        scopes: (0..5_000)
            .map(|number| ScopeTotals {
                label: hostile(number),
                trips: 9,
                requests: 2,
                ..ScopeTotals::default()
            })
            .collect(),
        findings: (0..500)
            .map(|number| {
                let statements = vec![hostile(number), hostile(number + 1)];
                onetrip_ledger::Finding { statements, ..finding.clone() }
            })
            .collect(),
        upstream: hostile(0),
        ..super::story()
    };
    let mut noise = fastrand::Rng::with_seed(1);
    let mut timeline = Timeline::default();
    let mut clocks = [0_u64; 64];
    for number in 0..trips {
        let connection = noise.u64(..64);
        let clock = &mut clocks[connection as usize];
        let took = 30_000 + noise.u64(..2_000_000);
        timeline.add(TripSample {
            connection: connection as u32,
            started_ns: *clock,
            ended_ns: *clock + took,
            server_ns: took / 3,
            statement: (number % 5_000) as u32,
            ..TripSample::default()
        });
        *clock += took + noise.u64(..500_000);
    }
    timeline.statements = (0..5_000).map(|number| (number as u32, hostile(number))).collect();
    (summary, timeline)
}
