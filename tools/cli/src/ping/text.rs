use std::fmt::Write as _;
use std::time::Duration;

use onetrip_gateway::{PathTimes, Spread};
use onetrip_report::{Align, Columns, count};

use super::measured::{About, Line, Measured};

/// Servers seldom need so long for SELECT 1 every single time.
const FAR_BEHIND: Duration = Duration::from_millis(1);
const BEHIND_A_PROXY: &str = "\
A server seldom needs more than a millisecond for each SELECT 1. A proxy, pooler or tunnel may end\n\
the connection before the server; the path from there to the server then counts as server time.\n";

/// The report for people: at most 100 columns, all times in milliseconds.
pub(super) fn text(measured: &Measured) -> String {
    let mut out = heading(measured);
    out.push_str(&opening(measured));
    let Some(spread) = Spread::of(measured.trips.iter().copied()) else {
        out.push_str("\nStopped before the first SELECT 1.\n");
        return out;
    };
    let number = measured.trips.len() as u64;
    let total: Duration = measured.trips.iter().sum();
    let unit = if number == 1 { "time" } else { "times" };
    line(&mut out, format_args!("\nSELECT 1, {} {unit} in {}", count(number), ms(total)));
    let times = Columns::new("  ").column(Align::Left, 8);
    let mut times = (0..5).fold(times, |times, _| times.column(Align::Right, 11));
    times.row(["", "min", "mean", "median", "p99", "max"]);
    times.row(cells("trip", &spread));
    if let Some(path) = measured.path {
        let part = |pick: fn((Duration, Duration)) -> Duration| {
            Spread::of(measured.trips.iter().map(|trip| pick(path.split(*trip))))
        };
        for (name, spread) in [("wire", part(|(wire, _)| wire)), ("server", part(|(_, server)| server))] {
            if let Some(spread) = spread {
                times.row(cells(name, &spread));
            }
        }
    }
    for row in times.lines() {
        line(&mut out, format_args!("  {row}"));
    }
    line(&mut out, format_args!("\n{}", split_words(measured)));
    let is_behind = |path: PathTimes| spread.min >= path.smallest + path.smallest.max(FAR_BEHIND);
    if measured.path.is_some_and(is_behind) {
        out.push_str(BEHIND_A_PROXY);
    }
    if let Some(rate) = measured.trips_per_second() {
        line(&mut out, format_args!("{} per second per session is the ceiling here.", trips(rate)));
    }
    out
}

fn heading(measured: &Measured) -> String {
    let Some(server) = &measured.server else { return format!("PING {}\n\n", measured.target) };
    let address = server.address.as_ref().map_or_else(String::new, |address| format!(" ({address})"));
    let tls = server.tls.map_or_else(|| "no TLS".to_owned(), |version| format!("TLS {version}"));
    let first = format!("PING {}{address}: {}, {tls}", server.host, version(server));
    let database = server.database.as_ref().map_or_else(String::new, |name| format!(" in database {name}"));
    let as_whom = format!("as {}{database}", server.user);
    let separator = if first.chars().count() + as_whom.chars().count() + 2 > 100 { ",\n  " } else { ", " };
    format!("{first}{separator}{as_whom}\n\n")
}

/// `PostgreSQL 15.18`, without the packager's words behind it.
fn version(server: &About) -> String {
    let words = |character: char| character.is_whitespace() || character == '-';
    let number = server.version.as_deref().and_then(|version| version.split(words).next());
    format!("{} {}", server.product, number.unwrap_or("of unknown version"))
}

fn opening(measured: &Measured) -> String {
    let columns = Columns::new("  ").column(Align::Left, 24).column(Align::Right, 4);
    let mut columns = columns.column(Align::Right, 14).column(Align::Left, 0);
    columns.row(["Opening the session", "trips", "time"]);
    let lines = measured.lines();
    let entry = lines.iter().rposition(|step| step.trips > 0);
    for (index, step) in lines.iter().enumerate() {
        let note = match &measured.server {
            // How we were let in stands after the trip that brought us in.
            Some(server) if Some(index) == entry => server.method,
            Some(server) if asked_for_another_key(step, server) => {
                "one of them because of the server's ssl_ecdh_curve"
            }
            _ => "",
        };
        let trips = if step.trips == 0 { "-".to_owned() } else { step.trips.to_string() };
        columns.row([format!("  {}", step.name), trips, ms(step.time), note.to_owned()]);
    }
    let (trips, time): (u32, Duration) =
        (lines.iter().map(|step| step.trips).sum(), lines.iter().map(|step| step.time).sum());
    columns.row(["  in all".to_owned(), trips.to_string(), ms(time)]);
    columns.lines().iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Whether the server wanted a key on another curve than was offered first (HelloRetryRequest).
fn asked_for_another_key(step: &Line, server: &About) -> bool {
    let is_postgres = server.product == "PostgreSQL";
    is_postgres && step.key == "tls_handshake" && step.trips > 1 && server.tls == Some("1.3")
}

fn cells(name: &str, spread: &Spread) -> [String; 6] {
    let Spread { min, mean, median, p99, max } = *spread;
    [name.to_owned(), ms(min), ms(mean), ms(median), ms(p99), ms(max)]
}

/// How trips were split.
fn split_words(measured: &Measured) -> String {
    let is_unix = measured.lines().iter().any(|step| step.key == "socket_connect");
    match measured.path {
        Some(PathTimes { smallest, smoothed }) => format!(
            "wire: the kernel's smallest round trip on this connection, {} (TCP_INFO; smoothed {}).\n\
             server: the rest of each trip, with a proxy's time and the path's jitter where there are such.",
            ms(smallest),
            ms(smoothed)
        ),
        None if !measured.mysql.is_empty() => {
            "Trips of MySQL are not split: the time of TCP connect is about that of the wire.".to_owned()
        }
        None if is_unix => "A unix socket has no wire: all of a trip is the server's.".to_owned(),
        None => "The kernel does not tell the path's round trip (TCP_INFO): trips are not split.".to_owned(),
    }
}

/// `16,093 trips`, `4.8 trips`.
fn trips(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1} trips") } else { format!("{} trips", count(rate as u64)) }
}

/// Milliseconds, as `psql` and `ping` have them.
fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinged() -> About {
        About {
            product: "PostgreSQL",
            host: "db.example:5432".to_owned(),
            address: Some("10.0.0.7:5432".to_owned()),
            version: Some("15.18 (Debian 15.18-0+deb12u1)".to_owned()),
            tls: Some("1.3"),
            method: "SCRAM-SHA-256",
            user: "ann".to_owned(),
            database: Some("shop".to_owned()),
        }
    }

    #[test]
    fn trips_are_split_and_the_ceiling_follows_from_their_mean() {
        let path = PathTimes { smallest: Duration::from_millis(20), smoothed: Duration::from_millis(21) };
        let trips = vec![Duration::from_millis(21), Duration::from_millis(29)];
        let measured = Measured { server: Some(pinged()), trips, path: Some(path), ..Measured::default() };
        let text = text(&measured);
        let row = |name: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
            found.split_whitespace().skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(row("trip "), ["21.000", "25.000", "25.000", "29.000", "29.000"]);
        assert_eq!(row("wire "), ["20.000", "20.000", "20.000", "20.000", "20.000"]);
        assert_eq!(row("server "), ["1.000", "5.000", "5.000", "9.000", "9.000"]);
        assert!(text.ends_with("\n40 trips per second per session is the ceiling here.\n"), "{text}");
        assert!(text.starts_with("PING db.example:5432 (10.0.0.7:5432): PostgreSQL 15.18, TLS 1.3, as ann"));
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn a_path_that_goes_on_behind_a_proxy_is_suspected() {
        let path = PathTimes { smallest: Duration::from_micros(9), smoothed: Duration::from_micros(30) };
        let of = |trip| Measured {
            server: Some(pinged()),
            trips: vec![trip, Duration::from_millis(50)],
            path: Some(path),
            ..Measured::default()
        };
        let far = text(&of(Duration::from_millis(20)));
        assert!(far.contains("proxy, pooler or tunnel"), "{far}");
        assert!(far.lines().all(|line| line.chars().count() <= 100), "{far}");
        assert!(!text(&of(Duration::from_micros(60))).contains("proxy, pooler or tunnel"));
    }

    #[test]
    fn nothing_measured_is_said_and_not_divided_by() {
        let measured = Measured { target: "db:5432".to_owned(), ..Measured::default() };
        let text = text(&measured);
        assert!(text.contains("PING db:5432\n") && text.contains("Stopped before"), "{text}");
        assert!(!text.contains("ceiling"), "{text}");
    }

    #[test]
    fn slow_paths_keep_a_digit() {
        assert_eq!([16_093.7, 4.84].map(trips), ["16,093 trips", "4.8 trips"]);
    }
}
