//! Two captures of one path: what the terminal and the page say of them.

mod common;

use common::story;
use onetrip_ledger::network::Times;
use onetrip_ledger::sides::{ClockOffset, NamedSplit, Split, TwoSides};
use onetrip_ledger::timeline::Timeline;
use onetrip_report::{Report, Style};

fn times(mean_us: u64) -> Times {
    let ns = mean_us * 1_000;
    Times { count: 100, sum_ns: 100 * ns, min_ns: ns / 2, max_ns: 2 * ns }
}

fn merged() -> TwoSides {
    let totals = Split {
        turns: 100,
        client: times(1_000),
        there: times(5_000),
        server: times(3_000),
        back: times(11_000),
        ..Split::default()
    };
    let path = NamedSplit {
        client: "10.0.0.1:40000".into(),
        server: "10.0.0.2:5432".into(),
        seen_as: None,
        split: totals,
    };
    let clock =
        ClockOffset { offset_ns: -7_300_000, error_ns: 5_000_000, samples: 200, ..ClockOffset::default() };
    TwoSides { clock: Some(clock), totals, connections: 1, paths: vec![path], ..TwoSides::default() }
}

fn text(sides: &TwoSides) -> String {
    let summary = story();
    let report = Report { sides: Some(sides), ..Report::new(&summary) };
    let text = onetrip_report::text(&report, Style::Plain);
    // As one line: where it is wrapped does not matter.
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_four_parts_have_their_times_and_shares() {
    let text = text(&merged());
    for line in [
        "100 ms 5 % 1.00 ms 500 µs 2.00 ms client:",
        "500 ms 25 % 5.00 ms 2.50 ms 10.0 ms wire there:",
        "300 ms 15 % 3.00 ms 1.50 ms 6.00 ms server:",
        "1.10 s 55 % 11.0 ms 5.50 ms 22.0 ms wire back:",
        "The server's clock is 7.30 ms behind the client's, ± 5.00 ms",
        "100 1.00 ms 5.00 ms 3.00 ms 11.0 ms 10.0.0.1:40000 → 10.0.0.2:5432",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("left out"), "{text}");
}

#[test]
fn what_does_not_fit_together_is_said() {
    let mut sides = merged();
    sides.totals = Split { crossed: 2, missed: 1, unclocked: 3, ..sides.totals };
    sides.client_only = 4;
    sides.paths[0].seen_as = Some(["203.0.113.9:61000".into(), "10.0.0.2:5432".into()]);
    sides.clock =
        Some(ClockOffset { offset_ns: 9_000_000, drift_ppb: 50_000, steps: 1, ..sides.clock.unwrap() });
    let told = text(&sides);
    for line in [
        "2 turns left out: the reply had left",
        "1 turn left out: one of the captures",
        "3 turns left out: what the clocks said",
        "4 connections only in the client's capture",
        "9.00 ms ahead of the client's",
        "It gains 50.0 µs a second.",
        "1 time one of the clocks was set or changed its rate",
        "at the server 203.0.113.9:61000 → 10.0.0.2:5432",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let clock = ClockOffset { is_impossible: true, ..ClockOffset::default() };
    let told = text(&TwoSides { clock: Some(clock), connections: 1, ..TwoSides::default() });
    assert!(told.contains("Bytes arrive before they leave"), "{told}");
    assert!(!told.contains("ahead of") && !told.contains("wire there:"), "{told}");
    let told = text(&TwoSides { connections: 1, is_one_place: true, ..TwoSides::default() });
    assert!(told.contains("All bytes pass both captures at the same time."), "{told}");
    assert!(text(&TwoSides::default()).contains("No connection is in both captures"));
}

#[test]
fn the_page_has_both_tables() {
    let (summary, sides) = (story(), merged());
    let page =
        onetrip_report::html(&Report { sides: Some(&sides), ..Report::new(&summary) }, &Timeline::default());
    for id in ["sides", "sides-connections"] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        assert!(page.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    assert!(page.contains("wire back"));
}
