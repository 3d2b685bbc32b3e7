//! Numbers for the page's script: the curve's points and the waterfall's spans.

use std::collections::{BTreeMap, HashMap};

use onetrip_forecast::{Curve, CurveLine};
use onetrip_ledger::Summary;
use onetrip_ledger::timeline::{Lane, Timeline};
use serde::Serialize;

use super::view::FINDINGS_MAX;
use crate::clean::{cut, is_unsafe, scope_name};
use crate::number::counted;

/// Connections drawn.
const LANES_MAX: usize = 60;
/// Columns of a statement beside a trip.
const STATEMENT_MAX: usize = 240;
/// Bytes of statements beside trips, all together.
const STATEMENTS_BYTES_MAX: usize = 400_000;
/// What stands for statements beyond that, and for trips without one.
const OTHERS: &str = "(another statement)";
/// Scopes that trips are told apart by.
const SCOPES_MAX: usize = 200;
/// Columns of a scope's name, and of a user's.
const NAME_MAX: usize = 80;
/// What stands for scopes beyond those, and for connections whose startup packet was not seen.
const OTHER_SCOPES: &str = "(another scope)";
const UNKNOWN_USER: &str = "(unknown)";

/// Trips over time, as the script draws them.
#[derive(Debug, Clone, Serialize)]
pub(super) struct WaterfallView {
    lanes: Vec<LaneView>,
    /// Text, and the number of the finding that it is of; zero for none.
    statements: Vec<(String, usize)>,
    /// Names and titles of the findings on the page, as many as there are.
    findings: Vec<String>,
    /// `user@database` of connections.
    users: Vec<String>,
    /// What trips were for. The first two stand for work without a scope, and for scopes that are not listed.
    scopes: Vec<String>,
    /// What is drawn, in a sentence or two.
    #[serde(skip)]
    pub(super) lead: String,
}

#[derive(Debug, Clone, Serialize)]
struct LaneView {
    connection: u32,
    trips: u64,
    /// Its place among the users.
    user: usize,
    /// Seven numbers for each span, times in microseconds: start after the start before, length, trips, how long
    /// they took, the database's part of that, place of the statement or −1 for trips that opened the session, place of
    /// the scope or −1 for several.
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
    let (scope_places, scopes) = scopes(&lanes, &timeline.scopes);
    let mut users: Vec<String> = Vec::new();
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
    let lanes = lanes.into_iter().map(|lane| {
        let user = timeline.identity(lane.connection).map_or(UNKNOWN_USER.into(), |name| cut(name, NAME_MAX));
        let place = users.iter().position(|known| *known == user).unwrap_or_else(|| {
            users.push(user);
            users.len() - 1
        });
        lane_view(lane, place, &places, &scope_places)
    });
    let lanes = lanes.collect();
    let shown = summary.findings.iter().take(FINDINGS_MAX);
    let findings = shown.map(|finding| format!("{} {}", finding.code, finding.code.title())).collect();
    Some(WaterfallView { lanes, statements, findings, users, scopes, lead })
}

fn lane_view(
    lane: &Lane,
    user: usize,
    places: &HashMap<u32, usize>,
    scopes: &HashMap<u32, usize>,
) -> LaneView {
    let microseconds = |nanoseconds: u64| (nanoseconds / 1_000) as i64;
    let mut spans = Vec::with_capacity(lane.spans.len() * 7);
    let mut before = 0;
    for span in &lane.spans {
        let started = microseconds(span.started_ns);
        let statement =
            if span.connect { -1 } else { places.get(&span.statement).map_or(0, |at| *at as i64) };
        let scope = match span.scope {
            None => -1,
            Some(0) => 0,
            Some(scope) => scopes.get(&scope).map_or(1, |at| *at as i64),
        };
        spans.extend([
            started - before,
            microseconds(span.ended_ns) - started,
            span.trips as i64,
            microseconds(span.busy_ns),
            microseconds(span.server_ns),
            statement,
            scope,
        ]);
        before = started;
    }
    LaneView { connection: lane.connection, trips: lane.trips, user, spans }
}

/// Names of the scopes that are drawn, the most frequent first, and each one's place.
fn scopes(lanes: &[&Lane], labels: &BTreeMap<u32, String>) -> (HashMap<u32, usize>, Vec<String>) {
    let drawn = lanes.iter().flat_map(|lane| &lane.spans).filter_map(|span| span.scope);
    let mut listed = vec![scope_name(""), OTHER_SCOPES.to_owned()];
    let mut places = HashMap::new();
    for scope in most_frequent(drawn.filter(|scope| *scope != 0)).into_iter().take(SCOPES_MAX) {
        let Some(label) = labels.get(&scope) else { continue };
        places.insert(scope, listed.len());
        listed.push(cut(&scope_name(label), NAME_MAX));
    }
    (places, listed)
}

/// The different ones, the most frequent first.
fn most_frequent(items: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    let mut by_count: Vec<(u32, usize)> = counts.into_iter().collect();
    by_count.sort_by_key(|(item, count)| (std::cmp::Reverse(*count), *item));
    by_count.into_iter().map(|(item, _)| item).collect()
}

/// Texts of the statements that are drawn, the most frequent first while there is room, and each one's place.
fn statements(
    lanes: &[&Lane],
    summary: &Summary,
    texts: &BTreeMap<u32, String>,
) -> (HashMap<u32, usize>, Vec<(String, usize)>) {
    let mut found: HashMap<&str, usize> = HashMap::new();
    for (number, finding) in (1..).zip(summary.findings.iter().take(FINDINGS_MAX)) {
        if let Some(text) = finding.statements.first() {
            found.entry(text).or_insert(number);
        }
    }
    let drawn = lanes.iter().flat_map(|lane| &lane.spans).filter(|span| !span.connect);
    let mut places = HashMap::new();
    let mut listed = vec![(OTHERS.to_owned(), 0)];
    // Places of what stands for statements beyond the room, by finding.
    let mut others = HashMap::from([(0, 0)]);
    let mut bytes = 0;
    for statement in most_frequent(drawn.map(|span| span.statement)) {
        let Some(text) = texts.get(&statement) else { continue };
        let finding = found.get(text.as_str()).copied().unwrap_or(0);
        let shown = cut(text, STATEMENT_MAX);
        bytes += json(&shown).len();
        let place = if bytes > STATEMENTS_BYTES_MAX {
            *others.entry(finding).or_insert_with(|| {
                listed.push((OTHERS.to_owned(), finding));
                listed.len() - 1
            })
        } else {
            listed.push((shown, finding));
            listed.len() - 1
        };
        places.insert(statement, place);
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
