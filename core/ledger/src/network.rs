//! What packets tell of a path, beyond what a gateway sees: losses, stalls, and where the capture was made. A capture
//! gathers it, a report shows it.

use serde::Serialize;

/// Everything that a capture knows beside its exchanges.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NetworkSummary {
    /// The capture itself.
    pub capture: CaptureFacts,
    /// All connections together.
    pub totals: ConnectionPath,
    /// Connections that were looked at.
    pub connections: u64,
    /// Those with most turns, most first, at most [`Self::CONNECTIONS_MAX`].
    pub paths: Vec<NamedPath>,
    /// Round-trip times over the capture.
    pub rtts: Vec<RttSpan>,
}

impl NetworkSummary {
    /// Most connections that a summary names.
    pub const CONNECTIONS_MAX: usize = 50;
}

/// The capture itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CaptureFacts {
    /// Packets read.
    pub packets: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Packets that are no TCP.
    pub other_packets: u64,
    /// Packets that were cut within their headers, or contradict themselves.
    pub unreadable_packets: u64,
    /// Packets of link types that are not looked into.
    pub unknown_links: u64,
    /// Datagrams of which pieces are missing.
    pub incomplete_datagrams: u64,
    /// Packets that were captured in part (`tcpdump -s`).
    pub cut_packets: u64,
    /// Packets that the capture has twice, as of both ports of a bridge; they count once.
    pub doubled_packets: u64,
    /// Packets that the capture says it dropped.
    pub dropped_packets: u64,
    /// Packets without a time (Simple Packet Blocks of pcapng): with any of them, no time is measured.
    pub untimed_packets: u64,
    /// Bytes that were acknowledged and are not in the capture: the capture missed them, not the network.
    pub missed_bytes: u64,
    /// Bytes that could not be attributed, the missed ones included.
    pub unknown_bytes: u64,
    /// When the first packet was captured, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// From the first packet to the last.
    pub elapsed_ns: u64,
    /// Smallest step of the capture's clock, in nanoseconds.
    pub resolution_ns: u64,
    /// Packets older than the one before them by more than a reordering explains.
    pub clock_steps: u64,
    /// The widest of these steps back.
    pub clock_step_max_ns: u64,
    /// Connections whose beginning was not captured.
    pub joined: u64,
    /// Connections of which one direction only was captured.
    pub half_seen: u64,
    /// Connections that speak TLS which could not be read.
    pub encrypted: u64,
    /// Where the capture was made.
    pub place: Place,
}

/// Where a capture was made, seen from the path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The handshakes do not tell.
    #[default]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Direction {
    /// Segments, those without data included.
    pub segments: u64,
    /// Bytes of data, those sent again included.
    pub bytes: u64,
    /// Segments sent again, in whatever way.
    pub retransmissions: u64,
    /// Those of them that duplicate acknowledgements asked for.
    pub fast_retransmissions: u64,
    /// Those of them that had been received.
    pub spurious_retransmissions: u64,
    /// Time from when such bytes were sent first, or should have been, until they were sent again.
    pub retransmission_wait_ns: u64,
    /// Segments that came after later ones.
    pub out_of_order: u64,
    /// Segments before which others are missing.
    pub gaps: u64,
    /// Acknowledgements of bytes that are not in the capture.
    pub acks_of_gaps: u64,
    /// Segments that say that their sender takes no more.
    pub zero_windows: u64,
    /// Time in which it took no more.
    pub zero_window_ns: u64,
    /// Segments that use up what the receiver takes.
    pub windows_full: u64,
    /// Times that the sender held back the end of a message (Nagle) until an acknowledgement that the receiver held back.
    pub delayed_ack_pairs: u64,
    /// What that cost.
    pub delayed_ack_ns: u64,
    /// Waits for the path's window to grow again after a pause.
    pub slow_start_rounds: u64,
    /// What they cost.
    pub slow_start_ns: u64,
}

/// Times of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Times {
    /// One more.
    pub fn add(&mut self, nanos: u64) {
        self.join(&Self { count: 1, sum_ns: nanos, min_ns: nanos, max_ns: nanos });
    }

    /// All of another.
    pub fn join(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.count += other.count;
    }

    /// Their mean; `None` of none.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.count)
    }
}

/// What one connection's segments tell, or those of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionPath {
    /// From the client's SYN to its acknowledgement of the answer; of many, the smallest.
    pub initial_rtt_ns: Option<u64>,
    /// SYNs that the client sent.
    pub syns: u64,
    /// Smallest round-trip time between where the capture was made and the client.
    pub client_leg_min_ns: Option<u64>,
    /// The same to the server.
    pub server_leg_min_ns: Option<u64>,
    /// Times that the conversation turned to the server.
    pub turns: u64,
    /// From a request's last byte to the first of its reply, where the capture was made.
    pub first_byte: Times,
    /// From a request's last byte to the last of its reply.
    pub last_byte: Times,
    /// From a reply's last byte to the next request.
    pub next_request: Times,
    /// From the client.
    pub up: Direction,
    /// From the server.
    pub down: Direction,
}

/// A connection by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NamedPath {
    /// Its number, as in the trace.
    pub connection: u32,
    /// Who connected.
    pub client: String,
    /// To whom.
    pub server: String,
    /// What it spoke.
    pub protocol: String,
    /// What its segments tell.
    pub path: ConnectionPath,
}

/// Round-trip times of one span of the capture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RttSpan {
    /// Its beginning, in nanoseconds since the capture's.
    pub from_ns: u64,
    /// The round trips that acknowledgements measured in it.
    pub rtt: Times,
}

impl Direction {
    fn join(&mut self, other: &Self) {
        let Self {
            segments,
            bytes,
            retransmissions,
            fast_retransmissions,
            spurious_retransmissions,
            retransmission_wait_ns,
            out_of_order,
            gaps,
            acks_of_gaps,
            zero_windows,
            zero_window_ns,
            windows_full,
            delayed_ack_pairs,
            delayed_ack_ns,
            slow_start_rounds,
            slow_start_ns,
        } = other;
        self.segments += segments;
        self.bytes += bytes;
        self.retransmissions += retransmissions;
        self.fast_retransmissions += fast_retransmissions;
        self.spurious_retransmissions += spurious_retransmissions;
        self.retransmission_wait_ns = self.retransmission_wait_ns.saturating_add(*retransmission_wait_ns);
        self.out_of_order += out_of_order;
        self.gaps += gaps;
        self.acks_of_gaps += acks_of_gaps;
        self.zero_windows += zero_windows;
        self.zero_window_ns = self.zero_window_ns.saturating_add(*zero_window_ns);
        self.windows_full += windows_full;
        self.delayed_ack_pairs += delayed_ack_pairs;
        self.delayed_ack_ns = self.delayed_ack_ns.saturating_add(*delayed_ack_ns);
        self.slow_start_rounds += slow_start_rounds;
        self.slow_start_ns = self.slow_start_ns.saturating_add(*slow_start_ns);
    }
}

impl ConnectionPath {
    /// All of another connection.
    pub fn join(&mut self, other: &Self) {
        let least = |all: &mut Option<u64>, one: Option<u64>| {
            *all = match (*all, one) {
                (Some(all), Some(one)) => Some(all.min(one)),
                (all, one) => all.or(one),
            }
        };
        least(&mut self.initial_rtt_ns, other.initial_rtt_ns);
        least(&mut self.client_leg_min_ns, other.client_leg_min_ns);
        least(&mut self.server_leg_min_ns, other.server_leg_min_ns);
        self.syns += other.syns;
        self.turns += other.turns;
        self.first_byte.join(&other.first_byte);
        self.last_byte.join(&other.last_byte);
        self.next_request.join(&other.next_request);
        self.up.join(&other.up);
        self.down.join(&other.down);
    }
}
