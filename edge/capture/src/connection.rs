//! One TCP connection: its bytes in order, its conversation, what its segments tell.

use std::sync::Arc;

use onetrip_ledger::{Moment, StreamEncoder, UnitKind};
use onetrip_session::{MysqlConfig, SessionConfig};

use crate::mysql::{Mysql, is_greeting, tls_request};
use crate::ports::service_name;
use crate::postgres::{Postgres, is_startup};
use crate::segment::{Endpoint, Segment};
use crate::tcp::{Chunk, Marks, Path, Stream, Watcher, Way, is_after};
use crate::tls::{KeyLog, Tls, are_records, offers};
use crate::turns::Turns;

/// What a session is called whose bytes are encrypted.
const POSTGRES_OVER_TLS: &str = "postgresql over TLS";
const MYSQL_OVER_TLS: &str = "mysql over TLS";
/// PostgreSQL's name among application protocols (registered with IANA for RFC 7301).
const POSTGRES_OVER_ALPN: &[u8] = b"postgresql";

/// How long a client is taken to have needed to answer what it had received, where that cannot be measured: it is far from the
/// capture, or the clock has not moved. A client that answers sooner may not have waited.
const REACTION_NS: u64 = 30_000;
/// Moments go back by so much or more, not by less: time soon catches up with that.
const CORRECTED_NS: u64 = 1_000_000;
/// So near to the client, it can be measured.
const NEAR_NS: u64 = 100_000;

/// A connection, from its first segment that was captured.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    up: Stream,
    down: Stream,
    watcher: Watcher,
    pub(crate) path: Path,
    pub(crate) dialogue: Dialogue,
    pub(crate) last_at_ns: u64,
    pub(crate) seen: [bool; 2],
    /// Its SYN was captured.
    pub(crate) is_whole: bool,
    fins: u8,
    pub(crate) missed_bytes: u64,
    pub(crate) unknown_bytes: u64,
    ttls: [u8; 2],
    isn: Option<u32>,
    /// When the client had the connection, if that was seen.
    connected_at: Option<Moment>,
    last: Moment,
    /// When the client had what the server sent last, if that sent something.
    received: Option<Moment>,
    /// When that was seen.
    replied_at_ns: u64,
    /// Half the way between the client and the capture, as it was known then.
    half_ns: u64,
    told_rtt_ns: u64,
    /// How often the capture's clock had been set when its last segment came.
    clock_steps: u64,
    is_first: bool,
}

/// What a connection speaks.
#[derive(Debug)]
pub(crate) enum Dialogue {
    /// Nothing yet.
    Silent,
    Postgres(Box<Postgres>),
    Mysql(Box<Mysql>),
    /// Something that is not decoded.
    Opaque(Box<Opaque>),
    /// It has ended, or is of no interest.
    Over,
}

#[derive(Debug)]
pub(crate) struct Opaque {
    turns: Turns,
    pub(crate) stream: StreamEncoder,
    scope: u32,
    pub(crate) is_tls: bool,
    is_opened: bool,
    label: String,
}

/// What a connection needs to begin a conversation.
pub(crate) struct Setting<'a> {
    pub(crate) config: &'a SessionConfig,
    pub(crate) mysql: &'a MysqlConfig,
    /// What is known to listen at the server's port.
    pub(crate) is_postgres_port: bool,
    pub(crate) is_mysql_port: bool,
    /// Moment zero, in nanoseconds since 1970.
    pub(crate) base_ns: u64,
    /// How often the capture's clock was set back so far.
    pub(crate) clock_steps: u64,
    /// Secrets of TLS sessions.
    pub(crate) keys: Option<&'a Arc<KeyLog>>,
}

/// What a segment came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) marks: Marks,
    /// A round trip of the whole path was measured.
    pub(crate) rtt_ns: Option<u64>,
    /// The connection has ended.
    pub(crate) is_over: bool,
}

impl Connection {
    pub(crate) fn new(number: u32, client: Endpoint, server: Endpoint) -> Self {
        Self {
            number,
            client,
            server,
            up: Stream::default(),
            down: Stream::default(),
            watcher: Watcher::default(),
            path: Path::default(),
            dialogue: Dialogue::Silent,
            last_at_ns: 0,
            seen: [false; 2],
            is_whole: false,
            fins: 0,
            missed_bytes: 0,
            unknown_bytes: 0,
            ttls: [0; 2],
            isn: None,
            connected_at: None,
            last: Moment::default(),
            received: None,
            replied_at_ns: 0,
            half_ns: 0,
            told_rtt_ns: u64::MAX,
            clock_steps: 0,
            is_first: true,
        }
    }

    /// Whether a SYN is that of another connection between the same ports.
    pub(crate) fn is_replaced_by(&self, segment: &Segment<'_>) -> bool {
        segment.flags.syn()
            && !segment.flags.ack()
            && !self.is_first
            && self.isn.is_none_or(|isn| isn != segment.sequence)
    }

    /// Takes a segment.
    pub(crate) fn take(&mut self, segment: &Segment<'_>, setting: &Setting<'_>) -> Taken {
        let way = if segment.source == self.client { Way::Up } else { Way::Down };
        self.is_first = false;
        self.seen[way as usize] = true;
        self.ttls[way as usize] = segment.ttl;
        self.last_at_ns = segment.at_ns;
        if std::mem::replace(&mut self.clock_steps, setting.clock_steps) != setting.clock_steps {
            self.watcher.forget_times();
            self.path.forget_times();
        }
        let noted = self.watcher.see(way, segment);
        self.path.see(way, segment, &noted);
        if self.watcher.initial_rtt_ns.is_none() {
            self.watcher.initial_rtt_ns = self.path.facts.initial_rtt_ns;
        }
        let mut taken = Taken { marks: noted.marks, ..Taken::default() };
        if way == Way::Down {
            taken.rtt_ns = noted.rtt_ns.map(|leg| leg.saturating_add(self.path.client_leg_ns()));
        }
        if matches!(self.dialogue, Dialogue::Over) {
            return taken;
        }
        if segment.flags.syn() {
            let first = segment.sequence.wrapping_add(1);
            match way {
                Way::Up => {
                    self.isn = Some(segment.sequence);
                    self.is_whole = true;
                    self.up.begin(first);
                }
                Way::Down => self.down.begin(first),
            }
        }
        self.move_bytes(way, segment, setting);
        taken.is_over = self.ends(way, segment);
        taken
    }

    fn move_bytes(&mut self, way: Way, segment: &Segment<'_>, setting: &Setting<'_>) {
        let (sent, received) = self.moments(way, segment, setting.base_ns);
        if way == Way::Up && self.is_whole && !segment.flags.syn() {
            self.connected_at.get_or_insert(sent);
        }
        let Self { up, down, dialogue, missed_bytes, .. } = self;
        let mut talk = Talk {
            dialogue,
            setting,
            server: self.server,
            is_whole: self.is_whole,
            connected_at: self.connected_at.unwrap_or(sent),
            acknowledged: segment.acknowledged,
        };
        if segment.flags.ack() && !segment.flags.rst() {
            let before = (up.next_sequence(), down.next_sequence());
            *missed_bytes += match way {
                Way::Up => {
                    let mut next = before.1;
                    down.acknowledged(segment.acknowledged, &mut |chunk| {
                        talk.server(received, chunk, &mut next)
                    })
                }
                Way::Down => {
                    // What the client had received when it sent that is not known; the usual is everything.
                    talk.acknowledged = before.1;
                    up.acknowledged(segment.acknowledged, &mut |chunk| talk.client(sent, chunk, before.1))
                }
            };
        }
        if segment.length > 0 {
            let server_next = down.next_sequence();
            match way {
                Way::Up => up.push(segment.first_byte(), segment.data, segment.length, &mut |chunk| {
                    talk.client(sent, chunk, server_next);
                }),
                Way::Down => {
                    let mut next = server_next;
                    down.push(segment.first_byte(), segment.data, segment.length, &mut |chunk| {
                        talk.server(received, chunk, &mut next);
                    });
                }
            }
        }
    }

    /// When the client sent what is seen now, and when it receives it: half the way between it and the capture apart. What it
    /// acknowledges, it had before, however long that way took this time, and whatever the clock did.
    fn moments(&mut self, way: Way, segment: &Segment<'_>, base_ns: u64) -> (Moment, Moment) {
        let half = self.path.client_leg_ns() / 2;
        let too_late = std::mem::replace(&mut self.half_ns, half).saturating_sub(half);
        if too_late >= CORRECTED_NS {
            // The way is much shorter than it seemed: what follows is not to wait for moments that were taken for too late.
            self.last = Moment(self.last.0.saturating_sub(too_late));
            self.received = self.received.map(|received| Moment(received.0.saturating_sub(too_late)));
        }
        let at = segment.at_ns.saturating_sub(base_ns);
        let mut sent = Moment(at.saturating_sub(half)).max(self.last);
        let received = Moment(at.saturating_add(half)).max(self.last);
        let has_all = || self.down.is_begun() && !is_after(self.down.next_sequence(), segment.acknowledged);
        match (way, self.received) {
            (Way::Up, Some(before)) if segment.flags.ack() && has_all() => {
                // The way from the client and back may be known from just such answers. What was seen is not less for it.
                let seen_ns = segment.at_ns.saturating_sub(self.replied_at_ns);
                let is_measured = half <= NEAR_NS && seen_ns > 0;
                let least = if is_measured { seen_ns.min(REACTION_NS) } else { REACTION_NS };
                sent = sent.max(Moment(before.0.saturating_add(least)));
            }
            (Way::Down, before) if segment.length > 0 => {
                self.received = before.max(Some(received));
                self.replied_at_ns = segment.at_ns;
            }
            _ => {}
        }
        self.last = sent;
        (sent, received)
    }

    fn ends(&mut self, way: Way, segment: &Segment<'_>) -> bool {
        if segment.flags.fin() {
            match way {
                Way::Up => self.up.finish(),
                Way::Down => self.down.finish(),
            }
            self.fins |= 1 << way as u8;
            match (&mut self.dialogue, way) {
                (Dialogue::Postgres(postgres), Way::Up) => postgres.session.client_left(self.last),
                (Dialogue::Mysql(mysql), Way::Up) => mysql.session.client_left(self.last),
                _ => {}
            }
        }
        segment.flags.rst() && self.is_near(way, segment.sequence) || self.fins == 3
    }

    /// Whether a number is one that its receiver may take: a reset with another number ends nothing (RFC 5961).
    fn is_near(&self, way: Way, sequence: u32) -> bool {
        const WINDOW_MAX: u32 = 1 << 28;
        let stream = match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        };
        !stream.is_begun()
            || sequence.wrapping_sub(stream.next_sequence()).wrapping_add(WINDOW_MAX) <= 2 * WINDOW_MAX
    }

    /// The stream that its records go to, if it has one.
    pub(crate) fn stream(&mut self) -> Option<&mut StreamEncoder> {
        match &mut self.dialogue {
            Dialogue::Postgres(postgres) => Some(postgres.session.stream()),
            Dialogue::Mysql(mysql) => Some(mysql.session.stream()),
            Dialogue::Opaque(opaque) => Some(&mut opaque.stream),
            Dialogue::Silent | Dialogue::Over => None,
        }
    }

    /// Tells the books how far the server is, if that is known better than before.
    pub(crate) fn tell_rtt(&mut self) {
        let Some(rtt_ns) = self.path.rtt_min_ns() else { return };
        if rtt_ns.saturating_mul(20) >= self.told_rtt_ns.saturating_mul(19) {
            return;
        }
        let now = self.last;
        let rtt_us = u32::try_from(rtt_ns.div_ceil(1_000)).unwrap_or(u32::MAX);
        if let Some(stream) = self.stream() {
            stream.path(now, rtt_us, rtt_us);
            self.told_rtt_ns = rtt_ns;
        }
    }

    /// Ends its books; `is_closed` where the connection has ended, and not the capture. Returns the last records.
    pub(crate) fn close(&mut self, is_closed: bool) -> Option<Vec<u8>> {
        self.tell_rtt();
        self.up.close();
        self.down.close();
        let now = self.last;
        match std::mem::replace(&mut self.dialogue, Dialogue::Over) {
            Dialogue::Postgres(mut postgres) => {
                self.unknown_bytes += postgres.unknown_bytes;
                if postgres.is_cancel() && postgres.session.stream().is_empty() {
                    return None;
                }
                if is_closed && postgres.session.has_records() {
                    postgres.session.close(now);
                }
                Some(postgres.session.stream().take_block())
            }
            Dialogue::Mysql(mut mysql) => {
                self.unknown_bytes += mysql.unknown_bytes;
                mysql.close(now, is_closed);
                Some(mysql.session.stream().take_block())
            }
            Dialogue::Opaque(mut opaque) => {
                let unanswered = opaque.turns.unanswered();
                opaque.turns.settle(&mut opaque.stream);
                if is_closed && opaque.is_opened {
                    opaque.stream.closed(now, 0, 0, unanswered);
                }
                Some(opaque.stream.take_block())
            }
            Dialogue::Silent | Dialogue::Over => None,
        }
    }

    /// What it speaks, for people.
    pub(crate) fn protocol(&self) -> String {
        match &self.dialogue {
            Dialogue::Postgres(postgres) if postgres.tls.is_some() => POSTGRES_OVER_TLS.into(),
            Dialogue::Postgres(_) => "postgresql".into(),
            Dialogue::Mysql(mysql) if mysql.is_opened() => MYSQL_OVER_TLS.into(),
            Dialogue::Mysql(_) => "mysql".into(),
            Dialogue::Opaque(opaque) => opaque.label.clone(),
            Dialogue::Silent | Dialogue::Over => service_name(self.server.port),
        }
    }

    /// Time to live of the last packets of client and server.
    pub(crate) fn ttls(&self) -> [u8; 2] {
        self.ttls
    }
}

/// A conversation while bytes are handed to it.
struct Talk<'a, 'b> {
    dialogue: &'a mut Dialogue,
    setting: &'a Setting<'b>,
    server: Endpoint,
    is_whole: bool,
    connected_at: Moment,
    acknowledged: u32,
}

impl Talk<'_, '_> {
    fn client(&mut self, now: Moment, chunk: Chunk<'_>, server_next: u32) {
        if matches!(self.dialogue, Dialogue::Silent) {
            self.begin(now, Way::Up, chunk);
        }
        match self.dialogue {
            Dialogue::Postgres(postgres) => {
                if postgres.client(now, chunk, self.acknowledged, server_next).is_err() {
                    self.conceal(now);
                } else if postgres.is_cancel() && postgres.session.stream().is_empty() {
                    *self.dialogue = Dialogue::Over;
                }
            }
            Dialogue::Mysql(mysql) => {
                if mysql.client(now, chunk, self.acknowledged, server_next).is_err() {
                    self.conceal(now);
                }
            }
            Dialogue::Opaque(opaque) => {
                let has_read = !is_after(server_next, self.acknowledged);
                opaque.client(now, chunk, has_read);
            }
            Dialogue::Silent | Dialogue::Over => {}
        }
    }

    fn server(&mut self, now: Moment, chunk: Chunk<'_>, next: &mut u32) {
        let bytes = match chunk {
            Chunk::Known(bytes) => bytes.len() as u64,
            Chunk::Unknown(bytes) => bytes,
        };
        *next = next.wrapping_add(bytes as u32);
        if matches!(self.dialogue, Dialogue::Silent) {
            self.begin_with_server(now, chunk);
        }
        match self.dialogue {
            Dialogue::Postgres(postgres) => {
                let is_closed = postgres.server(now, chunk, *next).is_err();
                match self.setting.keys.filter(|_| !is_closed && postgres.is_encrypted) {
                    Some(keys) => {
                        postgres.is_encrypted = false;
                        postgres.tls = Some(Box::new(Tls::new(Arc::clone(keys))));
                    }
                    None if is_closed || postgres.is_encrypted => self.conceal(now),
                    None => {}
                }
            }
            Dialogue::Mysql(mysql) => {
                if mysql.server(now, chunk, *next).is_err() {
                    self.conceal(now);
                }
            }
            Dialogue::Opaque(opaque) => opaque.turns.server(now, bytes),
            Dialogue::Silent | Dialogue::Over => {}
        }
    }

    /// TLS that cannot be opened: what was the database's protocol is told by whose turn it is from here on.
    fn conceal(&mut self, now: Moment) {
        let (mut opaque, hello, turns) = match std::mem::replace(self.dialogue, Dialogue::Over) {
            Dialogue::Postgres(mut postgres) => {
                let stream = std::mem::take(postgres.session.stream());
                let (hello, turns) = postgres.tls.take().map(|tls| tls.into_unread()).unwrap_or_default();
                (Opaque::new(POSTGRES_OVER_TLS.into(), stream), hello, turns)
            }
            Dialogue::Mysql(mysql) => {
                let is_opened = mysql.is_joined();
                let (stream, hello, turns) = mysql.into_sealed();
                let opaque = Opaque { is_opened, ..Opaque::new(MYSQL_OVER_TLS.into(), stream) };
                (opaque, hello, turns)
            }
            other => {
                *self.dialogue = other;
                return;
            }
        };
        if hello.is_empty() {
            opaque.turns = turns;
        } else {
            opaque.client(now, Chunk::Known(&hello), true);
        }
        *self.dialogue = Dialogue::Opaque(Box::new(opaque));
    }

    /// Finds out what is spoken, by what the server says first.
    fn begin_with_server(&mut self, now: Moment, first: Chunk<'_>) {
        if !self.is_whole {
            return self.begin(now, Way::Down, first);
        }
        if first.known().is_some_and(|bytes| is_greeting(bytes, self.setting.is_mysql_port)) {
            let (config, keys) = (self.setting.mysql.clone(), self.setting.keys.cloned());
            *self.dialogue = Dialogue::Mysql(Box::new(Mysql::new(config, keys, self.connected_at)));
        }
    }

    /// Finds out what is spoken, by the first bytes if these are seen.
    fn begin(&mut self, now: Moment, way: Way, first: Chunk<'_>) {
        let config = || self.setting.config.clone();
        let first = first.known().unwrap_or_default();
        let begins_session = way == Way::Up && is_startup(first);
        let begins_tls = way == Way::Up && first.starts_with(&[0x16, 3]);
        // PostgreSQL 17 and later, by `sslnegotiation=direct`: at any port.
        let is_direct = begins_tls && (self.setting.is_postgres_port || offers(first, POSTGRES_OVER_ALPN));
        let asks_tls = way == Way::Up && self.setting.is_mysql_port && tls_request(first).is_some();
        let is_tls = begins_tls || asks_tls || are_records(first);
        *self.dialogue = if let Some(keys) = self.setting.keys.filter(|_| is_direct) {
            let mut postgres = Postgres::new(config());
            postgres.tls = Some(Box::new(Tls::new(Arc::clone(keys))));
            Dialogue::Postgres(Box::new(postgres))
        } else if begins_session {
            Dialogue::Postgres(Box::new(Postgres::new(config())))
        } else if self.setting.is_postgres_port && !is_tls {
            Dialogue::Postgres(Box::new(Postgres::joined(config(), now)))
        } else if self.setting.is_mysql_port && !is_tls {
            Dialogue::Mysql(Box::new(Mysql::joined(self.setting.mysql.clone(), now)))
        } else {
            let service = service_name(self.server.port);
            let label = match is_tls {
                true if is_direct || self.setting.is_postgres_port => POSTGRES_OVER_TLS.into(),
                true if self.setting.is_mysql_port => MYSQL_OVER_TLS.into(),
                true => format!("{service} over TLS"),
                false => service,
            };
            Dialogue::Opaque(Box::new(Opaque::new(label, StreamEncoder::default())))
        };
    }
}

impl Opaque {
    fn new(label: String, stream: StreamEncoder) -> Self {
        let is_tls = label.ends_with("TLS");
        Self { turns: Turns::default(), stream, scope: 0, is_tls, is_opened: false, label }
    }

    fn client(&mut self, now: Moment, chunk: Chunk<'_>, has_read: bool) {
        if !std::mem::replace(&mut self.is_opened, true) {
            self.stream.opened(now, []);
        }
        if std::mem::replace(&mut self.scope, 1) == 0 {
            self.stream.scope(1, self.label.as_bytes());
        }
        let (bytes, first) = match chunk {
            Chunk::Known(bytes) => (bytes.len() as u64, bytes.first_chunk::<6>()),
            Chunk::Unknown(bytes) => (bytes, None),
        };
        // The turn of a ClientHello opens the session; what follows cannot be told from work.
        let is_hello = self.is_tls && matches!(first, Some([0x16, 3, _, _, _, 1]));
        let kind = if is_hello { UnitKind::Connect } else { UnitKind::Query };
        self.turns.client(now, bytes, kind, self.scope, has_read, &mut self.stream);
    }
}
