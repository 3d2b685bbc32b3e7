//! Numbers for the page's script: the curve's points and the waterfall's spans.

use std::collections::{BTreeMap, HashMap, HashSet};

use onetrip_forecast::{Curve, CurveLine};
use onetrip_ledger::Summary;
use onetrip_ledger::timeline::{Lane, Timeline};
use serde::Serialize;

use crate::clean::{cut, is_unsafe};
use crate::number::counted;

/// Connections drawn.
const LANES_MAX: usize = 60;
/// Columns of a statement beside a trip.
const STATEMENT_MAX: usize = 240;
/// Bytes of statements beside trips, all together.
const STATEMENTS_BYTES_MAX: usize = 400_000;
/// What stands for statements beyond that, and for trips without one.
const OTHERS: &str = "(another statement)";

/// Trips over time, as the script draws them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WaterfallView {
    lanes: Vec<LaneView>,
    /// Text, and whether it is one of a finding.
    statements: Vec<(String, u8)>,
    /// What is drawn, in a sentence or two.
    #[serde(skip)]
    pub(super) lead: String,
}

#[derive(Debug, Clone, Serialize)]
struct LaneView {
    connection: u32,
    trips: u64,
    /// Six numbers for each span, times in microseconds: start after the start before, length, trips, how long
    /// they took, the database's part of that, place of the statement or −1 for trips that opened the session.
    spans: Vec<i64>,
}

#[derive(Debug, Clone, Serialize)]
struct LineView {
    rtt: Vec<u64>,
    time: Vec<u64>,
    low: Vec<u64>,
    high: Vec<u64>,
}

#[derive(Debug, Clone, Serialize)]
struct ScriptData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    curve: Option<Vec<LineView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waterfall: Option<&'a WaterfallView>,
}

/// The waterfall, unless there are no trips.
pub(super) fn waterfall(summary: &Summary, timeline: &Timeline) -> Option<WaterfallView> {
    let (lanes, left_out) = timeline.waterfall.lanes(LANES_MAX);
    if lanes.is_empty() {
        return None;
    }
    let (places, statements) = statements(&lanes, summary, &timeline.statements);
    let mut lead = String::from(if timeline.waterfall.is_joined() {
        "A lane is a connection. Trips that follow each other closely are joined, as there are too many to draw each."
    } else {
        "A lane is a connection, a bar is a trip."
    });
    if left_out > 0 {
        lead.push_str(&format!(
            " The connections with most trips are shown; the others had {}.",
            counted(left_out, "trip", "trips")
        ));
    }
    let lanes = lanes.into_iter().map(|lane| lane_view(lane, &places)).collect();
    Some(WaterfallView { lanes, statements, lead })
}

fn lane_view(lane: &Lane, places: &HashMap<u32, usize>) -> LaneView {
    let microseconds = |nanoseconds: u64| (nanoseconds / 1_000) as i64;
    let mut spans = Vec::with_capacity(lane.spans.len() * 6);
    let mut before = 0;
    for span in &lane.spans {
        let started = microseconds(span.started_ns);
        let statement =
            if span.connect { -1 } else { places.get(&span.statement).map_or(0, |at| *at as i64) };
        spans.extend([
            started - before,
            microseconds(span.ended_ns) - started,
            span.trips as i64,
            microseconds(span.busy_ns),
            microseconds(span.server_ns),
            statement,
        ]);
        before = started;
    }
    LaneView { connection: lane.connection, trips: lane.trips, spans }
}

/// Texts of the statements that are drawn, the most frequent first while there is room, and each one's place.
fn statements(
    lanes: &[&Lane],
    summary: &Summary,
    texts: &BTreeMap<u32, String>,
) -> (HashMap<u32, usize>, Vec<(String, u8)>) {
    let found: HashSet<&str> = summary
        .findings
        .iter()
        .filter_map(|finding| finding.statements.first())
        .map(String::as_str)
        .collect();
    let mut drawn: BTreeMap<u32, usize> = BTreeMap::new();
    for span in lanes.iter().flat_map(|lane| &lane.spans).filter(|span| !span.connect) {
        *drawn.entry(span.statement).or_default() += 1;
    }
    let mut by_spans: Vec<(u32, usize)> = drawn.into_iter().collect();
    by_spans.sort_by_key(|(statement, spans)| (std::cmp::Reverse(*spans), *statement));
    let mut places = HashMap::new();
    let mut listed = vec![(OTHERS.to_owned(), 0), (OTHERS.to_owned(), 1)];
    let mut bytes = 0;
    for (statement, _) in by_spans {
        let Some(text) = texts.get(&statement) else { continue };
        let is_found = found.contains(text.as_str());
        let shown = cut(text, STATEMENT_MAX);
        bytes += json(&shown).len();
        if bytes > STATEMENTS_BYTES_MAX {
            places.insert(statement, usize::from(is_found));
            continue;
        }
        places.insert(statement, listed.len());
        listed.push((shown, u8::from(is_found)));
    }
    (places, listed)
}

/// Everything that the script reads, as JSON that may stand in a page; `None` if it has nothing to do.
pub(super) fn script_data(curve: Option<&Curve>, waterfall: Option<&WaterfallView>) -> Option<String> {
    if curve.is_none() && waterfall.is_none() {
        return None;
    }
    let line = |line: &CurveLine| LineView {
        rtt: line.points.iter().map(|point| point.rtt_ns).collect(),
        time: line.points.iter().map(|point| point.time_ns).collect(),
        low: line.points.iter().map(|point| point.low_ns).collect(),
        high: line.points.iter().map(|point| point.high_ns).collect(),
    };
    let curve = curve.map(|curve| curve.lines.iter().map(line).collect());
    Some(json(&ScriptData { curve, waterfall }))
}

/// JSON without anything that ends a script element or steers whoever looks at the source.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    // Serialising plain numbers, texts and lists to a string has no way to fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '<' | '>' | '&') || is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
    }
    safe
}
