//! What two captures of one path say together.

use onetrip_ledger::sides::{ClockOffset, NamedSplit, Split, TwoSides};

use super::Page;
use super::network::Rows;
use super::table::Table;
use crate::clean::clean;
use crate::number::{count, counted, duration, percent};

/// Connections listed.
const ROWS_MAX: usize = 10;

pub(crate) const PART_COLUMNS: [&str; 5] = ["time", "share", "mean", "least", "most"];
pub(crate) const PATH_COLUMNS: [&str; 5] = ["turns", "client", "wire there", "server", "wire back"];

pub(super) fn show(sides: &TwoSides, page: &mut Page) {
    page.heading("Where each millisecond went, by both captures");
    if sides.totals.turns > 0 {
        let rows = parts(&sides.totals).into_iter();
        page.table(&Table { columns: &PART_COLUMNS, text: "where", rows: rows.collect() });
    }
    for line in facts(sides) {
        page.paragraph(&format!("  {line}"), str::to_owned);
    }
    let style = page.style;
    for doubt in doubts(sides) {
        page.paragraph(&format!("  {doubt}"), |line| style.mark(line));
    }
    if sides.totals.turns > 0 {
        page.heading("Connections by both captures, mean times of a turn");
        let rows = paths(sides, ROWS_MAX).into_iter().map(|(cells, name)| (cells, clean(&name)));
        page.table(&Table { columns: &PATH_COLUMNS, text: "connection", rows: rows.collect() });
        let all = usize::try_from(sides.connections).unwrap_or(usize::MAX);
        page.left_out(sides.paths.len().min(ROWS_MAX), all, "connections");
    }
}

/// The four parts of all turns.
pub(crate) fn parts(split: &Split) -> Rows {
    let all_ns = split.all_ns();
    let parts = [
        (&split.client, "client: from a reply's end to the end of the next request"),
        (&split.there, "wire there: until the request's end is at the server"),
        (&split.server, "server: until the reply's end leaves it"),
        (&split.back, "wire back: until the reply's end is at the client"),
    ];
    let rows = parts.into_iter().map(|(times, what)| {
        let mean_ns = times.mean_ns().unwrap_or_default();
        let cells = vec![
            duration(times.sum_ns),
            percent(times.sum_ns, all_ns),
            duration(mean_ns),
            duration(times.min_ns),
            duration(times.max_ns),
        ];
        (cells, what.to_owned())
    });
    rows.collect()
}

/// What was compared, a sentence each.
pub(crate) fn facts(sides: &TwoSides) -> Vec<String> {
    let matched = counted(sides.connections, "connection is", "connections are");
    let turns = counted(sides.totals.turns, "turn", "turns");
    let mut facts = vec![format!("{matched} in both captures, with {turns} whose parts are known.")];
    if let Some(clock) = sides.clock.as_ref().filter(|clock| !clock.is_impossible) {
        facts.push(offset(clock));
    }
    facts
}

fn offset(clock: &ClockOffset) -> String {
    let side = if clock.offset_ns < 0 { "behind" } else { "ahead of" };
    let mut text = format!(
        "The server's clock is {} {side} the client's, ± {}: half of the shortest way there and back. The two ways may differ from \
         what is shown by that; their sum does not.",
        duration(clock.offset_ns.unsigned_abs()),
        duration(clock.error_ns)
    );
    if clock.drift_ppb != 0 {
        let gains = if clock.drift_ppb < 0 { "loses" } else { "gains" };
        text += &format!(" It {gains} {} a second.", duration(clock.drift_ppb.unsigned_abs()));
    }
    text
}

/// What keeps the parts from being whole, a sentence each.
pub(crate) fn doubts(sides: &TwoSides) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut say = |number: u64, one: &str, many: &str, what: &str| {
        if number > 0 {
            doubts.push(format!("{} {what}", counted(number, one, many)));
        }
    };
    let Split { crossed, missed, unclocked, .. } = sides.totals;
    say(
        crossed,
        "turn",
        "turns",
        "left out: the reply had left when the request's end arrived, as with pipelining",
    );
    say(missed, "turn", "turns", "left out: one of the captures does not have all of its packets");
    say(unclocked, "turn", "turns", "left out: what the clocks said then does not fit together");
    say(sides.client_only, "connection", "connections", "only in the client's capture");
    say(sides.server_only, "connection", "connections", "only in the server's capture");
    if let Some(clock) = &sides.clock {
        say(clock.steps, "time", "times", "one of the clocks was set or changed its rate");
        if clock.is_impossible {
            doubts.push(
                "Bytes arrive before they leave, whatever the clocks say. Is --client the capture made at the client, and \
                 --server the one made at the server?"
                    .into(),
            );
        }
    }
    if sides.is_one_place {
        doubts.push(
            "All bytes pass both captures at the same time. They were made at one place, or one is a copy of the other, so that \
             the parts are not known."
                .into(),
        );
    }
    if sides.connections == 0 {
        doubts.push(
            "No connection is in both captures, by the numbers of its SYNs or by its addresses. Were they made at the same time? \
             A proxy between them opens connections of its own, and some firewalls change the numbers."
                .into(),
        );
    }
    doubts
}

/// Connections with most turns, at most so many.
pub(crate) fn paths(sides: &TwoSides, rows_max: usize) -> Rows {
    let rows = sides.paths.iter().take(rows_max).map(|named| {
        let split = &named.split;
        let times = [&split.client, &split.there, &split.server, &split.back];
        let mean = |times: &onetrip_ledger::network::Times| times.mean_ns().map_or("?".to_owned(), duration);
        let cells = std::iter::once(count(split.turns)).chain(times.map(mean)).collect();
        (cells, name(named))
    });
    rows.collect()
}

fn name(named: &NamedSplit) -> String {
    let NamedSplit { client, server, seen_as, .. } = named;
    match seen_as {
        None => format!("{client} → {server}"),
        Some([client_seen, server_seen]) => {
            format!("{client} → {server}, at the server {client_seen} → {server_seen}")
        }
    }
}
