use std::time::Duration;

use onetrip_gateway::Spread;
use serde_json::{Value, json};

use super::measured::Measured;

/// The report as one object; all times in milliseconds.
pub(super) fn json(measured: &Measured, asked: u32) -> String {
    let server = measured.server.as_ref();
    let lines = measured.lines();
    let opening: Vec<Value> = lines
        .iter()
        .map(|line| json!({ "step": line.key, "trips": line.trips, "ms": ms(line.time) }))
        .collect();
    let spread = |pick: &dyn Fn(Duration) -> Duration| {
        Spread::of(measured.trips.iter().map(|trip| pick(*trip))).map(|spread| spread_object(&spread))
    };
    let part = |pick: fn((Duration, Duration)) -> Duration| {
        measured.path.and_then(|path| spread(&|trip| pick(path.split(trip))))
    };
    let report = json!({
        "host": server.map_or(&measured.target, |server| &server.host),
        "address": server.and_then(|server| server.address.as_ref()),
        "server_version": server.and_then(|server| server.version.as_ref()),
        "tls": server.and_then(|server| server.tls),
        "authentication": server.map(|server| server.method),
        "user": server.map(|server| &server.user),
        "database": server.map(|server| &server.database),
        "opening": {
            "trips": lines.iter().map(|line| line.trips).sum::<u32>(),
            "ms": ms(lines.iter().map(|line| line.time).sum()),
            "steps": opening,
        },
        "asked": asked,
        "trips": measured.trips.len(),
        "ms": {
            "trip": spread(&|trip| trip),
            "wire": part(|(wire, _)| wire),
            "server": part(|(_, server)| server),
        },
        "kernel_rtt_ms": measured.path.map(|path| {
            json!({ "smallest": ms(path.smallest), "smoothed": ms(path.smoothed) })
        }),
        "trips_per_second_max": measured.trips_per_second(),
    });
    format!("{report:#}\n")
}

fn spread_object(spread: &Spread) -> Value {
    json!({
        "min": ms(spread.min),
        "mean": ms(spread.mean),
        "median": ms(spread.median),
        "p99": ms(spread.p99),
        "max": ms(spread.max),
    })
}

/// Milliseconds to the nanosecond.
fn ms(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}
