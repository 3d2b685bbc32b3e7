//! Packets in, blocks of records out.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use onetrip_ledger::network::{CaptureFacts, ConnectionPath, NamedPath, NetworkSummary, Place, RttSpan};
use onetrip_ledger::trace::TRACE_STREAM;
use onetrip_ledger::{StreamEncoder, ValueHasher};
use onetrip_session::{MysqlConfig, Remedies, SessionConfig, Texts};

use crate::connection::{Connection, Dialogue, Setting};
use crate::file::Packet;
use crate::fragments::Fragments;
use crate::link::ip_packet;
use crate::ports::is_service;
use crate::segment::{Endpoint, Other, Segment};
use crate::tcp::Marks;
use crate::tls::KeyLog;
use crate::twice::Latest;

/// PostgreSQL's port.
const POSTGRES_PORT: u16 = 5432;
const MYSQL_PORT: u16 = 3306;
/// Spans of the round-trip times over the capture, at most; neighbours are joined beyond.
const RTT_SPANS_MAX: usize = 128;
/// First width of a span.
const RTT_SPAN_NS: u64 = 10_000_000;
/// A year and more: a packet that claims to be later is taken for the last one of that time, so that no sum overflows.
const SPAN_NS_MAX: u64 = 1 << 55;
/// A packet that is older than the one before by this much was not reordered: the clock was set.
const CLOCK_STEP_NS: u64 = 100_000_000;
/// Ended connections are remembered for this long: late segments of theirs are no new connections.
const LINGER_NS: u64 = 30_000_000_000;
/// Connections without a byte of data are given up after this time.
const SILENT_NS: u64 = 120_000_000_000;
/// Connections that are looked through for such, first.
const SWEEP_MIN: usize = 4_096;
/// Connections that are known to be left out, at most.
const LEFT_OUT_MAX: usize = 65_536;
/// Buffers for records that are kept.
const BLOCKS_MAX: usize = 4;

/// What a capture is told.
#[derive(Debug, Clone, Default)]
pub struct CaptureConfig {
    /// Parameters' texts are kept in the records.
    pub keep_values: bool,
    /// Server ports that are looked at; all if there are none.
    pub ports: Vec<u16>,
    /// Ports where PostgreSQL listens, apart from its own.
    pub postgres_ports: Vec<u16>,
    /// Ports where MySQL or MariaDB listens, apart from its own.
    pub mysql_ports: Vec<u16>,
    /// Names of the program whose packets these are, empty where it is not known: some drivers are known by it.
    pub program: String,
    /// Secrets of TLS sessions, as a program has written them.
    pub keys: Option<Arc<KeyLog>>,
    /// Nobody but this process gets the records: hashes of values need not withstand somebody who looks for the values.
    pub records_stay: bool,
}

/// Turns the packets of one capture into records.
#[derive(Debug)]
pub struct Capture {
    config: CaptureConfig,
    session: SessionConfig,
    mysql: MysqlConfig,
    connections: HashMap<(Endpoint, Endpoint), Box<Connection>, RandomState>,
    /// Those that are left out although the client's port is one that is looked at: their handshakes told who the server is.
    left_out: HashSet<(Endpoint, Endpoint), RandomState>,
    fragments: Fragments,
    latest: Latest,
    next_number: u32,
    base_ns: Option<u64>,
    last_at_ns: u64,
    /// By how much the capture's clock was set back.
    set_back_ns: u64,
    facts: CaptureFacts,
    totals: ConnectionPath,
    counted: u64,
    paths: Vec<NamedPath>,
    rtts: Vec<RttSpan>,
    rtt_span_ns: u64,
    servers: Vec<Endpoint>,
    places: Places,
    blocks: Vec<Vec<u8>>,
    sweep_at: usize,
}

/// What handshakes say of where the capture was made.
#[derive(Debug, Default)]
struct Places {
    client: u64,
    server: u64,
    between: u64,
    same: u64,
}

impl Capture {
    /// A capture of which nothing was read.
    pub fn new(config: CaptureConfig) -> Self {
        let session = SessionConfig {
            hasher: if config.records_stay { ValueHasher::of_process() } else { ValueHasher::new() },
            cancel_key: [0; 4],
            keep_values: config.keep_values,
            remedies: Remedies::default(),
            verify: None,
            lobs: Arc::default(),
            isolation: None,
            question_burst: Duration::ZERO,
            common: Arc::default(),
            texts: Arc::new(Texts::remembered()),
            private: [0; 8],
            overflow: None,
        };
        let mysql = MysqlConfig {
            hasher: session.hasher.clone(),
            keep_values: session.keep_values,
            hides_tls: false,
            common: Arc::clone(&session.common),
            texts: Arc::clone(&session.texts),
        };
        Self {
            config,
            session,
            mysql,
            connections: HashMap::default(),
            left_out: HashSet::default(),
            fragments: Fragments::default(),
            latest: Latest::default(),
            next_number: TRACE_STREAM + 1,
            base_ns: None,
            last_at_ns: 0,
            set_back_ns: 0,
            facts: CaptureFacts { resolution_ns: 1_000_000_000, ..CaptureFacts::default() },
            totals: ConnectionPath::default(),
            counted: 0,
            paths: Vec::new(),
            rtts: Vec::new(),
            rtt_span_ns: RTT_SPAN_NS,
            servers: Vec::new(),
            places: Places::default(),
            blocks: Vec::new(),
            sweep_at: SWEEP_MIN,
        }
    }

    /// Connections that are followed.
    pub fn open_connections(&self) -> usize {
        self.connections.len()
    }

    /// When the first packet was captured, in nanoseconds since 1970.
    pub fn started_unix_ns(&self) -> Option<u64> {
        self.base_ns
    }

    /// Takes a packet; `out` gets blocks of records by their stream. Returns what its segment is, if it has one that is
    /// looked at.
    pub fn packet(&mut self, packet: &Packet<'_>, out: &mut impl FnMut(u32, &[u8])) -> Option<Marks> {
        let at_ns = self.clock(packet);
        let Some(ip) = ip_packet(packet.link, packet.data) else {
            match packet.link.is_known() {
                true => self.facts.other_packets += 1,
                false => self.facts.unknown_links += 1,
            }
            return None;
        };
        let before = packet.data.len() - ip.len();
        let mut fragments = std::mem::take(&mut self.fragments);
        let wire_bytes = packet.length.saturating_sub(before);
        let mut marks = None;
        match Segment::of_ip_packet(ip, wire_bytes, at_ns, &mut fragments) {
            Ok(segment) if self.latest.has(segment.fingerprint, at_ns) => self.facts.doubled_packets += 1,
            Ok(segment) => {
                self.facts.cut_packets += u64::from((segment.data.len() as u64) < u64::from(segment.length));
                marks = self.segment(&segment, out);
            }
            Err(Other::NotTcp) => self.facts.other_packets += 1,
            Err(Other::Fragment) => {}
            Err(Other::Cut | Other::Malformed) => self.facts.unreadable_packets += 1,
        }
        self.fragments = fragments;
        marks
    }

    /// Ends the books of the connections that are open; what is known of the network.
    pub fn finish(mut self, dropped: u64, out: &mut impl FnMut(u32, &[u8])) -> NetworkSummary {
        let mut open: Vec<Box<Connection>> =
            self.connections.drain().map(|(_, connection)| connection).collect();
        open.sort_by_key(|connection| connection.number);
        for mut connection in open {
            self.end(&mut connection, false, out);
        }
        self.origin(out);
        self.facts.dropped_packets = dropped;
        self.facts.incomplete_datagrams = self.fragments.incomplete();
        self.facts.started_unix_ns = self.base_ns.unwrap_or_default();
        self.facts.elapsed_ns = self.last_at_ns.saturating_sub(self.facts.started_unix_ns);
        self.facts.place = self.places.place();
        self.paths.sort_by_key(|named| (std::cmp::Reverse(named.path.turns), named.connection));
        self.paths.truncate(NetworkSummary::CONNECTIONS_MAX);
        NetworkSummary {
            capture: self.facts,
            totals: self.totals,
            connections: self.counted,
            paths: self.paths,
            rtts: self.rtts,
        }
    }

    /// When a packet was captured. Where the clock was set back, time goes on from the packet before.
    fn clock(&mut self, packet: &Packet<'_>) -> u64 {
        self.facts.packets += 1;
        self.facts.bytes += packet.data.len() as u64;
        self.base_ns.get_or_insert(packet.at_ns);
        while self.facts.resolution_ns > 1 && packet.at_ns % self.facts.resolution_ns != 0 {
            self.facts.resolution_ns /= 10;
        }
        if packet.at_ns >= self.last_at_ns {
            // It has been set right, or this packet's clock is another one.
            self.set_back_ns = 0;
        }
        let end_ns = self.base_ns.unwrap_or_default().saturating_add(SPAN_NS_MAX);
        let at_ns = packet.at_ns.saturating_add(self.set_back_ns).min(end_ns);
        let back = self.last_at_ns.saturating_sub(at_ns);
        if back < CLOCK_STEP_NS {
            self.last_at_ns = self.last_at_ns.max(at_ns);
            return at_ns;
        }
        self.facts.clock_steps += 1;
        self.facts.clock_step_max_ns = self.facts.clock_step_max_ns.max(back);
        self.set_back_ns = self.set_back_ns.saturating_add(back);
        self.last_at_ns
    }

    fn segment(&mut self, segment: &Segment<'_>, out: &mut impl FnMut(u32, &[u8])) -> Option<Marks> {
        let (low, high) = match segment.source <= segment.destination {
            true => (segment.source, segment.destination),
            false => (segment.destination, segment.source),
        };
        let known = self.connections.get(&(low, high)).map(|known| known.is_replaced_by(segment));
        if known == Some(true) {
            if let Some(mut old) = self.connections.remove(&(low, high)) {
                self.end(&mut old, true, out);
            }
        }
        if known != Some(false) {
            let (client, server) = roles(segment, &self.config);
            let is_wanted = self.is_looked_at((low, high), segment.flags.syn(), (client, server));
            // A segment of a connection that is over, or a reset of one that never was.
            if !is_wanted || segment.flags.rst() || (segment.flags.fin() && segment.length == 0) {
                return None;
            }
            self.sweep(segment.at_ns, out);
            let connection = Connection::new(self.next_number, client, server);
            self.next_number += 1;
            if !self.servers.contains(&server) && self.servers.len() < 16 {
                self.servers.push(server);
                if self.servers.len() == 1 {
                    self.origin(out);
                }
            }
            self.connections.insert((low, high), Box::new(connection));
        }
        let connection = self.connections.get_mut(&(low, high))?;
        let port = connection.server.port;
        let setting = Setting {
            config: &self.session,
            mysql: &self.mysql,
            is_postgres_port: port == POSTGRES_PORT || self.config.postgres_ports.contains(&port),
            is_mysql_port: port == MYSQL_PORT || self.config.mysql_ports.contains(&port),
            base_ns: self.base_ns.unwrap_or_default(),
            clock_steps: self.facts.clock_steps,
            keys: self.config.keys.as_ref(),
        };
        if segment.length > 0 {
            if let Some(stream) = connection.stream().filter(|stream| stream.is_empty()) {
                stream.recycle_unsent(self.blocks.pop().unwrap_or_default());
            }
        }
        let taken = connection.take(segment, &setting);
        connection.tell_rtt();
        let number = connection.number;
        if let Some(stream) = connection.stream() {
            let mut block = stream.take_block();
            if !block.is_empty() {
                out(number, &block);
                block.clear();
            }
            if block.capacity() > 0 && self.blocks.len() < BLOCKS_MAX {
                self.blocks.push(block);
            }
        }
        if let Some(rtt_ns) = taken.rtt_ns {
            self.rtt(segment.at_ns, rtt_ns);
        }
        if taken.is_over {
            // It stays for a while, so that late segments are known to be its own.
            if let Some(mut connection) = self.connections.remove(&(low, high)) {
                self.end(&mut connection, true, out);
                self.connections.insert((low, high), connection);
            }
        }
        Some(taken.marks)
    }

    /// Whether its server's port is one that is looked at.
    fn is_looked_at(
        &mut self,
        ends: (Endpoint, Endpoint),
        is_handshake: bool,
        roles: (Endpoint, Endpoint),
    ) -> bool {
        let ports = &self.config.ports;
        if ports.is_empty() {
            return true;
        }
        let (client, server) = roles;
        let is_named = ports.contains(&server.port);
        if !is_handshake {
            return is_named && !self.left_out.contains(&ends);
        }
        if is_named {
            self.left_out.remove(&ends);
        } else if ports.contains(&client.port) && self.left_out.len() < LEFT_OUT_MAX {
            self.left_out.insert(ends);
        }
        is_named
    }

    /// Books what is known of a connection, and forgets its conversation.
    fn end(&mut self, connection: &mut Connection, is_closed: bool, out: &mut impl FnMut(u32, &[u8])) {
        if matches!(connection.dialogue, Dialogue::Over) && connection.path.facts == ConnectionPath::default()
        {
            return;
        }
        let protocol = connection.protocol();
        self.facts.encrypted +=
            u64::from(matches!(&connection.dialogue, Dialogue::Opaque(opaque) if opaque.is_tls));
        if let Some(block) = connection.close(is_closed).filter(|block| !block.is_empty()) {
            out(connection.number, &block);
        }
        connection.path.end_turn();
        let path = std::mem::take(&mut connection.path.facts);
        let is_half_seen = connection.seen != [true; 2] && (path.up.bytes > 0 || path.down.bytes > 0);
        if path.turns == 0 && path.syns == 0 && !is_half_seen {
            return;
        }
        self.counted += 1;
        self.facts.joined += u64::from(!connection.is_whole);
        self.facts.half_seen += u64::from(is_half_seen);
        self.facts.missed_bytes += connection.missed_bytes;
        self.facts.unknown_bytes += connection.unknown_bytes;
        self.places.note(&path, connection.ttls());
        self.totals.join(&path);
        self.paths.push(NamedPath {
            connection: connection.number,
            client: connection.client.to_string(),
            server: connection.server.to_string(),
            protocol,
            path,
        });
        if self.paths.len() >= 8 * NetworkSummary::CONNECTIONS_MAX {
            self.paths.sort_by_key(|named| std::cmp::Reverse(named.path.turns));
            self.paths.truncate(NetworkSummary::CONNECTIONS_MAX);
        }
    }

    /// Forgets connections of which nothing more is to come.
    fn sweep(&mut self, now_ns: u64, out: &mut impl FnMut(u32, &[u8])) {
        if self.connections.len() < self.sweep_at {
            return;
        }
        let is_gone = |connection: &Connection| {
            let age = now_ns.saturating_sub(connection.last_at_ns);
            match connection.dialogue {
                Dialogue::Over => age >= LINGER_NS,
                Dialogue::Silent => age >= SILENT_NS,
                _ => false,
            }
        };
        let gone: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_gone(connection))
            .map(|(key, _)| *key)
            .collect();
        for key in gone {
            if let Some(mut connection) = self.connections.remove(&key) {
                self.end(&mut connection, true, out);
            }
        }
        self.sweep_at = SWEEP_MIN.max(2 * self.connections.len());
    }

    fn rtt(&mut self, at_ns: u64, rtt_ns: u64) {
        let from = at_ns.saturating_sub(self.base_ns.unwrap_or_default());
        let mut span = from / self.rtt_span_ns * self.rtt_span_ns;
        if self.rtts.last().is_none_or(|last| last.from_ns < span) {
            if self.rtts.len() >= RTT_SPANS_MAX {
                self.join_rtts(from);
                span = from / self.rtt_span_ns * self.rtt_span_ns;
            }
            if self.rtts.last().is_none_or(|last| last.from_ns < span) {
                self.rtts.push(RttSpan { from_ns: span, ..RttSpan::default() });
            }
        }
        if let Some(last) = self.rtts.last_mut() {
            last.rtt.add(rtt_ns);
        }
    }

    /// Makes spans so wide that there is room for one at `from`.
    fn join_rtts(&mut self, from: u64) {
        while self.rtts.len() >= RTT_SPANS_MAX || from / self.rtt_span_ns >= 4 * RTT_SPANS_MAX as u64 {
            self.rtt_span_ns = self.rtt_span_ns.saturating_mul(2);
            let width = self.rtt_span_ns;
            let mut joined: Vec<RttSpan> = Vec::with_capacity(RTT_SPANS_MAX);
            for span in &self.rtts {
                let from_ns = span.from_ns / width * width;
                match joined.last_mut().filter(|last| last.from_ns == from_ns) {
                    Some(last) => last.rtt.join(&span.rtt),
                    None => joined.push(RttSpan { from_ns, rtt: span.rtt }),
                }
            }
            self.rtts = joined;
            if self.rtt_span_ns > u64::MAX / 4 {
                break;
            }
        }
    }

    /// Says who wrote the records, and of which servers.
    fn origin(&self, out: &mut impl FnMut(u32, &[u8])) {
        let mut stream = StreamEncoder::default();
        let program = concat!("onetrip ", env!("CARGO_PKG_VERSION"), " (capture)");
        let mut upstream = self.servers.first().map(ToString::to_string).unwrap_or_default();
        if self.servers.len() > 1 {
            upstream += &format!(" and {} more", self.servers.len() - 1);
        }
        stream.origin(program.as_bytes(), upstream.as_bytes(), 0, self.config.program.as_bytes());
        out(TRACE_STREAM, &stream.take_block());
    }
}

impl Places {
    /// A handshake's two halves: who was farther from the capture.
    fn note(&mut self, path: &ConnectionPath, ttls: [u8; 2]) {
        let (Some(client), Some(server)) = (path.client_leg_min_ns, path.server_leg_min_ns) else { return };
        // Packets that were never routed have the number of hops that systems begin with.
        let is_fresh = |ttl: u8| matches!(ttl, 64 | 128 | 255);
        let share = |near: u64, far: u64| near.saturating_mul(10) < far;
        let is_local = client.max(server) < 100_000 && ttls.iter().all(|ttl| is_fresh(*ttl));
        if is_local {
            self.same += 1;
        } else if share(client, server) {
            self.client += 1;
        } else if share(server, client) {
            self.server += 1;
        } else {
            self.between += 1;
        }
    }

    fn place(&self) -> Place {
        let counts = [
            (self.client, Place::Client),
            (self.server, Place::Server),
            (self.between, Place::Between),
            (self.same, Place::SameMachine),
        ];
        let most = counts.into_iter().max_by_key(|(count, _)| *count);
        most.filter(|(count, _)| *count > 0).map_or(Place::Unknown, |(_, place)| place)
    }
}

/// Who of a segment's two ends is the client: by the handshake, else by the ports.
pub(crate) fn roles(segment: &Segment<'_>, config: &CaptureConfig) -> (Endpoint, Endpoint) {
    let (source, destination) = (segment.source, segment.destination);
    let flags = segment.flags;
    if flags.syn() {
        return if flags.ack() { (destination, source) } else { (source, destination) };
    }
    let rank = |port: u16| {
        let is_named = [&config.ports, &config.postgres_ports, &config.mysql_ports]
            .iter()
            .any(|ports| ports.contains(&port));
        (!is_named, !is_service(port), port)
    };
    match rank(source.port) < rank(destination.port) {
        true => (destination, source),
        false => (source, destination),
    }
}
