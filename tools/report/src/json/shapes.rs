//! The shape of what the ledger writes of its own, for the JSON Schema. A test holds reports to it.

// These are only described: no value of them is ever made.
#![allow(dead_code)]

use schemars::JsonSchema;

/// What became of a check.
#[derive(JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ruling {
    /// It passed.
    Passed,
    /// It could not be judged.
    Unjudged,
    /// It failed.
    Failed,
}

/// Where trips' wall time went, in nanoseconds.
#[derive(JsonSchema)]
pub(super) struct PathTimes {
    /// The database.
    server_ns: u64,
    /// The path to it.
    wire_ns: u64,
    /// The program, between a reply and its next unit.
    think_ns: u64,
}

/// A statement with its literals lifted.
#[derive(JsonSchema)]
pub(super) struct Template {
    /// Statement text with its literals lifted.
    text: String,
    /// Trips that it started.
    trips: u64,
    /// Times it was run.
    executions: u64,
    /// Rows returned or changed.
    rows: u64,
    /// Time spent in its trips, in nanoseconds.
    waited_ns: u64,
    /// The slowest of them, in nanoseconds.
    waited_max_ns: u64,
    /// Bytes sent and received.
    bytes: u64,
}

/// A scope.
#[derive(JsonSchema)]
pub(super) struct Scope {
    /// The scope's name.
    label: String,
    /// Trips of its work.
    trips: u64,
    /// Statements run.
    statements: u64,
    /// Time spent in its trips, in nanoseconds.
    waited_ns: u64,
    /// Distinct requests seen in it (from `traceparent`); zero if no statement has one.
    requests: u64,
    /// Trips of the request in the middle, by trips: half of the requests have no fewer. Zero without requests.
    request_trips_median: u64,
    /// Trips of the request that had most.
    request_trips_max: u64,
}

/// Trips that remedies would have removed at least, had they been on.
#[derive(JsonSchema)]
pub(super) struct Would {
    /// By `--remedies exact`.
    exact: u64,
    /// More, if the program's transactions also ran at `--isolation repeatable-read`.
    isolated: u64,
}

/// An answer from memory that was not what the server answered.
#[derive(JsonSchema)]
pub(super) struct Difference {
    /// The statement, its literals lifted.
    statement: String,
    /// Bytes up to the first difference.
    at: u64,
}

/// A statement that may never end at the level that `--isolation` sets, and would at the program's own.
#[derive(JsonSchema)]
pub(super) struct MayNotEnd {
    /// The statement, its literals lifted; empty where that is not known.
    statement: String,
    /// How often in a row it has failed with 23505 or 40001, at most; zero where it ran for longer than ten seconds.
    failures: u64,
}

/// Why sessions did not come about.
#[derive(JsonSchema)]
pub(super) struct Refusal {
    /// SQLSTATE of the error.
    sqlstate: String,
    /// The server's words, or the gateway's where it did not reach the server.
    message: String,
    /// How many sessions.
    sessions: u64,
}

/// What the packets of a capture tell of the network.
#[derive(JsonSchema)]
pub(super) struct Network {
    /// The capture itself.
    capture: Capture,
    /// All connections together.
    totals: Path,
    /// Connections that were looked at.
    connections: u64,
    /// Those with most turns, most first, at most 50.
    paths: Vec<NamedPath>,
    /// Round-trip times over the capture.
    rtts: Vec<RttSpan>,
}

/// The capture itself.
#[derive(JsonSchema)]
pub(super) struct Capture {
    /// Packets read.
    packets: u64,
    /// Bytes read.
    bytes: u64,
    /// Packets that are no TCP.
    other_packets: u64,
    /// Packets that were cut within their headers, or contradict themselves.
    unreadable_packets: u64,
    /// Packets of link types that are not looked into.
    unknown_links: u64,
    /// Datagrams of which pieces are missing.
    incomplete_datagrams: u64,
    /// Packets that were captured in part (`tcpdump -s`).
    cut_packets: u64,
    /// Packets that the capture has twice, as of both ports of a bridge; they count once.
    doubled_packets: u64,
    /// Packets that the capture says it dropped.
    dropped_packets: u64,
    /// Packets without a time (Simple Packet Blocks of pcapng): with any of them, no time is measured.
    untimed_packets: u64,
    /// Bytes that were acknowledged and are not in the capture: the capture missed them, not the network.
    missed_bytes: u64,
    /// Bytes that could not be attributed, the missed ones included.
    unknown_bytes: u64,
    /// When the first packet was captured, in nanoseconds since 1970.
    started_unix_ns: u64,
    /// From the first packet to the last.
    elapsed_ns: u64,
    /// Smallest step of the capture's clock, in nanoseconds.
    resolution_ns: u64,
    /// Packets older than the one before them by more than a reordering explains.
    clock_steps: u64,
    /// The widest of these steps back.
    clock_step_max_ns: u64,
    /// Connections whose beginning was not captured.
    joined: u64,
    /// Connections of which one direction only was captured.
    half_seen: u64,
    /// Connections that speak TLS which could not be read.
    encrypted: u64,
    /// Where the capture was made.
    place: Place,
}

/// Where a capture was made, seen from the path.
#[derive(JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Place {
    /// The handshakes do not tell.
    Unknown,
    /// On the client's machine, or next to it.
    Client,
    /// On the server's machine, or next to it.
    Server,
    /// Between the two.
    Between,
    /// Client and server share the machine.
    SameMachine,
}

/// One direction of a connection.
#[derive(JsonSchema)]
pub(super) struct Direction {
    /// Segments, those without data included.
    segments: u64,
    /// Bytes of data, those sent again included.
    bytes: u64,
    /// Segments sent again, in whatever way.
    retransmissions: u64,
    /// Those of them that duplicate acknowledgements asked for.
    fast_retransmissions: u64,
    /// Those of them that had been received.
    spurious_retransmissions: u64,
    /// Time from when such bytes were sent first, or should have been, until they were sent again.
    retransmission_wait_ns: u64,
    /// Segments that came after later ones.
    out_of_order: u64,
    /// Segments before which others are missing.
    gaps: u64,
    /// Acknowledgements of bytes that are not in the capture.
    acks_of_gaps: u64,
    /// Segments that say that their sender takes no more.
    zero_windows: u64,
    /// Time in which it took no more.
    zero_window_ns: u64,
    /// Segments that use up what the receiver takes.
    windows_full: u64,
    /// Times that the sender held back the end of a message (Nagle) until an acknowledgement that the receiver held back.
    delayed_ack_pairs: u64,
    /// What that cost.
    delayed_ack_ns: u64,
    /// Waits for the path's window to grow again after a pause.
    slow_start_rounds: u64,
    /// What they cost.
    slow_start_ns: u64,
}

/// Times of one kind.
#[derive(JsonSchema)]
pub(super) struct Times {
    /// How many.
    count: u64,
    /// Their sum, in nanoseconds.
    sum_ns: u64,
    /// The shortest.
    min_ns: u64,
    /// The longest.
    max_ns: u64,
}

/// What one connection's segments tell, or those of many.
#[derive(JsonSchema)]
pub(super) struct Path {
    /// From the client's SYN to its acknowledgement of the answer; of many, the smallest.
    initial_rtt_ns: Option<u64>,
    /// SYNs that the client sent.
    syns: u64,
    /// Smallest round-trip time between where the capture was made and the client.
    client_leg_min_ns: Option<u64>,
    /// The same to the server.
    server_leg_min_ns: Option<u64>,
    /// Times that the conversation turned to the server.
    turns: u64,
    /// From a request's last byte to the first of its reply, where the capture was made.
    first_byte: Times,
    /// From a request's last byte to the last of its reply.
    last_byte: Times,
    /// From a reply's last byte to the next request.
    next_request: Times,
    /// From the client.
    up: Direction,
    /// From the server.
    down: Direction,
}

/// A connection by name.
#[derive(JsonSchema)]
pub(super) struct NamedPath {
    /// Its number, as in the trace.
    connection: u32,
    /// Who connected.
    client: String,
    /// To whom.
    server: String,
    /// What it spoke.
    protocol: String,
    /// What its segments tell.
    path: Path,
}

/// Round-trip times of one span of the capture.
#[derive(JsonSchema)]
pub(super) struct RttSpan {
    /// Its beginning, in nanoseconds since the capture's.
    from_ns: u64,
    /// The round trips that acknowledgements measured in it.
    rtt: Times,
}

/// What two captures of one path tell together: where each millisecond went.
#[derive(JsonSchema)]
pub(super) struct Sides {
    /// The server's clock against the client's; null where no connection has data that both captures saw in both directions.
    clock: Option<Clock>,
    /// All bytes passed both captures at the same time: they were made at one place, or one is a copy of the other. There is no
    /// clock then, and no turn with parts.
    one_place: bool,
    /// All connections together.
    totals: Split,
    /// Connections that both captures have.
    connections: u64,
    /// Connections with data that only the client's capture has.
    client_only: u64,
    /// Connections with data that only the server's capture has.
    server_only: u64,
    /// Those with most turns, most first, at most 50.
    paths: Vec<NamedSplit>,
}

/// The server's clock against the client's.
#[derive(JsonSchema)]
pub(super) struct Clock {
    /// The server's clock less the client's when the client's capture began, in nanoseconds.
    offset_ns: i64,
    /// The offset is off by at most this: half of the shortest way there and back that was seen.
    error_ns: u64,
    /// What the server's clock gains, in billionths; zero where a constant offset explains all times.
    drift_ppb: i64,
    /// Times that one of the clocks was set or changed its rate.
    steps: u64,
    /// Transfers that both captures have; the offset of the clocks is estimated from them.
    samples: u64,
    /// No offset explains the times: bytes arrive before they leave. The captures are of different paths, or the two are mistaken
    /// for each other.
    impossible: bool,
}

/// Where the time of turns went. The four parts add up to the time from the first request to the last reply of the turns that
/// are counted.
#[derive(JsonSchema)]
pub(super) struct Split {
    /// Turns whose parts are known: a request, and its reply.
    turns: u64,
    /// Turns that are left out because the reply's end left the server before the request's end arrived: the client pipelines.
    crossed: u64,
    /// Turns that are left out because one of the captures missed packets of theirs, or has not seen them.
    missed: u64,
    /// Turns that are left out because a clock was set while they lasted, or because no clock is known.
    unclocked: u64,
    /// From a reply's end to the end of the next request, at the client.
    client: Times,
    /// A request's end on its way to the server, and waits for the path while the request was sent.
    there: Times,
    /// From the request's end to the end of its reply, at the server.
    server: Times,
    /// The reply's end on its way to the client, and waits for the path while the reply was sent.
    back: Times,
}

/// A connection by name.
#[derive(JsonSchema)]
pub(super) struct NamedSplit {
    /// Who connected, as the client's capture has it.
    client: String,
    /// To whom.
    server: String,
    /// Both as the server's capture has them, where addresses were translated between the captures.
    seen_as: Option<[String; 2]>,
    /// Where its time went.
    split: Split,
}
