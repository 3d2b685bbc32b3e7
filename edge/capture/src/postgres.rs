//! PostgreSQL's bytes to a [`Session`] that only watches: framing kept over what was not captured, found again where it is
//! lost.
//!
//! ```text
//!            bytes unknown, a header among them
//!   in step ------------------------------------> lost
//!      ^                                           |
//!      |   the client has received all that the    |
//!      +-- server said, and sends: a unit begins --+
//!      |                                           |
//!      +------ COPY data as text goes on ----------+
//! ```

use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_session::{Observed, Session, SessionConfig};
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, backend, frontend};

use crate::copying::CopySearch;
use crate::tcp::{Chunk, Way};
use crate::tls::{Closed, Tls};

/// ReadyForQuery, without its status.
const READY: [u8; 5] = *b"Z\0\0\0\x05";
const READY_BYTES: usize = 6;
/// Longest message that is believed when nothing is known of the conversation.
const LENGTH_PLAUSIBLE: u32 = 16 << 20;
/// Longest startup packet (`MAX_STARTUP_PACKET_LENGTH`).
const STARTUP_BYTES_MAX: u32 = 10_000;
const SSL_REQUEST: u32 = 80_877_103;

/// One connection's conversation.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(crate) session: Session,
    /// Bytes of messages that are not whole yet.
    up: Vec<u8>,
    down: Vec<u8>,
    is_lost: bool,
    /// Bytes of the client's are unknown since the books last were whole.
    lost_client: bool,
    /// Books began or went on in the middle: a reply that nobody asked for means that they are wrong.
    is_doubtful: bool,
    unasked_before: u64,
    /// COPY data of this form is under way, from whom.
    copying: Option<Copying>,
    /// What is lost is lost amid such data.
    search: Option<CopySearch>,
    /// A gap in the client's COPY data may hold its end.
    is_copy_doubtful: bool,
    /// The server has said something since the client last did.
    is_answered: bool,
    server_at: Moment,
    tail: Tail,
    /// The number of the server's byte after its last whole reply.
    answered_until: Option<u32>,
    pub(crate) unknown_bytes: u64,
    /// The server has agreed to encryption: what comes is no more its protocol.
    pub(crate) is_encrypted: bool,
    /// What opens it.
    pub(crate) tls: Option<Box<Tls>>,
    asked_encryption: bool,
    is_cancel: bool,
}

/// COPY data that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Copying {
    way: Way,
    is_text: bool,
}

impl Copying {
    /// What a message of the server says of it; `before` holds on where it says nothing.
    fn of(message: &[u8], before: Option<Self>) -> Option<Self> {
        let is_text = message.get(HEADER_BYTES) == Some(&0);
        match message.first() {
            Some(&backend::COPY_IN_RESPONSE) => Some(Self { way: Way::Up, is_text }),
            Some(&backend::COPY_OUT_RESPONSE) => Some(Self { way: Way::Down, is_text }),
            Some(
                &backend::COPY_DATA
                | &backend::NOTICE_RESPONSE
                | &backend::NOTIFICATION_RESPONSE
                | &backend::PARAMETER_STATUS,
            ) => before,
            _ => None,
        }
    }
}

/// The server's last bytes.
#[derive(Debug, Default)]
struct Tail {
    bytes: [u8; READY_BYTES],
    known: usize,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        if bytes.len() >= READY_BYTES {
            self.bytes.copy_from_slice(&bytes[bytes.len() - READY_BYTES..]);
            self.known = READY_BYTES;
            return;
        }
        self.bytes.copy_within(bytes.len().., 0);
        self.bytes[READY_BYTES - bytes.len()..].copy_from_slice(bytes);
        self.known = (self.known + bytes.len()).min(READY_BYTES);
    }

    /// What its ReadyForQuery says, if the server ended with one.
    fn status(&self) -> Option<TransactionStatus> {
        let is_ready = self.known == READY_BYTES && self.bytes[..5] == READY;
        match (is_ready, self.bytes[5]) {
            (true, b'I') => Some(TransactionStatus::Idle),
            (true, b'T') => Some(TransactionStatus::Active),
            (true, b'E') => Some(TransactionStatus::Failed),
            _ => None,
        }
    }
}

/// Whether a client's first bytes are PostgreSQL's.
pub(crate) fn is_startup(bytes: &[u8]) -> bool {
    let Some(packet) = bytes.first_chunk::<8>() else { return false };
    let length = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
    let code = u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
    let is_session = code >> 16 == 3 && code & 0xffff < 10_000;
    let is_request = (SSL_REQUEST - 1..=SSL_REQUEST + 1).contains(&code);
    (8..=STARTUP_BYTES_MAX).contains(&length) && (is_session || is_request)
}

/// Whether bytes are whole messages of a client, and nothing else: a unit is likely to begin with them.
fn are_requests(mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let Some(Ok(header)) = FrameHeader::peek(bytes, LENGTH_PLAUSIBLE) else { return false };
        if !is_request(header.tag) || header.frame_len() > bytes.len() {
            return false;
        }
        bytes = &bytes[header.frame_len()..];
    }
    true
}

/// Whether bytes begin a message of a client, as far as they tell.
fn begins_request(bytes: &[u8]) -> bool {
    let Some(tag) = bytes.first() else { return false };
    is_request(*tag) && FrameHeader::peek(bytes, LENGTH_PLAUSIBLE).is_none_or(|header| header.is_ok())
}

fn is_request(tag: u8) -> bool {
    use frontend::{BIND, CLOSE, DESCRIBE, EXECUTE, FLUSH, FUNCTION_CALL, PARSE, QUERY, SYNC, TERMINATE};
    matches!(
        tag,
        BIND | CLOSE | DESCRIBE | EXECUTE | FLUSH | FUNCTION_CALL | PARSE | QUERY | SYNC | TERMINATE
    )
}

impl Postgres {
    /// A conversation from its first byte.
    pub(crate) fn new(config: SessionConfig) -> Self {
        Self::with(Session::observed(config), false)
    }

    /// One whose beginning was not captured.
    pub(crate) fn joined(config: SessionConfig, now: Moment) -> Self {
        Self::with(Session::joined(config, now), true)
    }

    fn with(session: Session, is_lost: bool) -> Self {
        Self {
            session,
            up: Vec::new(),
            down: Vec::new(),
            is_lost,
            lost_client: is_lost,
            is_doubtful: is_lost,
            unasked_before: 0,
            copying: None,
            search: None,
            is_copy_doubtful: false,
            is_answered: false,
            server_at: Moment::default(),
            tail: Tail::default(),
            answered_until: None,
            unknown_bytes: 0,
            is_encrypted: false,
            tls: None,
            asked_encryption: false,
            is_cancel: false,
        }
    }

    /// The client sent something, with an acknowledgement of what it had received; `server_next` is the number of the
    /// server's next byte.
    ///
    /// # Errors
    ///
    /// It is encrypted, and cannot be opened.
    pub(crate) fn client(
        &mut self,
        now: Moment,
        chunk: Chunk<'_>,
        acknowledged: u32,
        server_next: u32,
    ) -> Result<(), Closed> {
        let Some(mut tls) = self.tls.take() else {
            self.client_said(now, chunk, acknowledged, server_next);
            return Ok(());
        };
        let has_read = !crate::tcp::is_after(server_next, acknowledged);
        tls.client_turn(now, chunk, has_read, self.session.stream());
        let taken = tls.take(Way::Up, chunk, &mut |plain| {
            self.client_said(now, plain, acknowledged, server_next);
        });
        self.tls = Some(tls);
        taken
    }

    fn client_said(&mut self, now: Moment, chunk: Chunk<'_>, acknowledged: u32, server_next: u32) {
        if self.is_lost {
            let has_all = !crate::tcp::is_after(server_next, acknowledged);
            let begins = match chunk {
                Chunk::Known(bytes) => begins_request(bytes),
                Chunk::Unknown(_) => true,
            };
            let is_first = self.server_at == Moment::default();
            if self.is_answered && has_all && begins {
                self.resume();
            } else if is_first && matches!(chunk, Chunk::Known(bytes) if are_requests(bytes)) {
                self.server_at = now;
                self.resume();
            }
        }
        self.is_answered = false;
        if self.session.is_full() {
            self.lose_client();
        }
        let has_read = self.answered_until.is_none_or(|until| !crate::tcp::is_after(until, acknowledged));
        self.session.client_has_read(has_read);
        match chunk {
            Chunk::Known(bytes) if self.is_lost && self.lost_client => {
                let found = self.search(Way::Up, bytes);
                let unknown = found.unwrap_or(bytes.len());
                self.unknown_bytes += unknown as u64;
                self.session.miss_client(now, unknown as u64);
                if found.is_some() {
                    self.session.find_client();
                    self.is_copy_doubtful = true;
                    self.find();
                    self.feed(Way::Up, now, &bytes[unknown..]);
                }
            }
            Chunk::Known(bytes) => self.feed(Way::Up, now, bytes),
            Chunk::Unknown(bytes) => self.miss(Way::Up, now, bytes),
        }
        self.is_copy_doubtful &= self.session.is_copying_in();
    }

    /// The server sent something; `server_next` is the number of the byte after it.
    ///
    /// # Errors
    ///
    /// As [`Self::client`].
    pub(crate) fn server(&mut self, now: Moment, chunk: Chunk<'_>, server_next: u32) -> Result<(), Closed> {
        let Some(mut tls) = self.tls.take() else {
            self.server_said(now, chunk, server_next);
            return Ok(());
        };
        tls.handshake.server(now, chunk.bytes());
        let taken = tls.take(Way::Down, chunk, &mut |plain| self.server_said(now, plain, server_next));
        self.tls = Some(tls);
        taken
    }

    fn server_said(&mut self, now: Moment, chunk: Chunk<'_>, server_next: u32) {
        self.is_answered = true;
        self.server_at = now;
        match chunk {
            Chunk::Known(bytes) => {
                self.tail.push(bytes);
                if self.is_lost {
                    let found = self.search(Way::Down, bytes);
                    let unknown = found.unwrap_or(bytes.len());
                    self.unknown_bytes += unknown as u64;
                    self.session.miss_server(now, unknown as u64);
                    if found.is_some() {
                        self.session.find_server();
                        self.find();
                        self.feed(Way::Down, now, &bytes[unknown..]);
                    }
                } else {
                    self.feed(Way::Down, now, bytes);
                }
            }
            Chunk::Unknown(bytes) => {
                self.tail.known = 0;
                self.miss(Way::Down, now, bytes);
            }
        }
        if self.is_copy_doubtful && !self.session.is_copying_in() {
            // The server was done with the data before what we took for its end.
            self.is_copy_doubtful = false;
            self.lose_client();
        }
        if self.session.unanswered() == 0 {
            self.answered_until = Some(server_next);
        }
        if self.is_doubtful && self.session.unasked_replies() > self.unasked_before {
            self.unasked_before = self.session.unasked_replies();
            self.is_lost = true;
        }
    }

    /// Whether it only asks to cancel what another session runs.
    pub(crate) fn is_cancel(&self) -> bool {
        self.is_cancel
    }

    /// Where in the bytes that came COPY data goes on, if that was what is lost.
    fn search(&mut self, way: Way, bytes: &[u8]) -> Option<usize> {
        let is_other = self.copying.is_none_or(|copying| copying.way != way);
        if is_other || !self.session.owes_one_statement() {
            self.search = None;
        }
        self.search.as_mut()?.push(bytes)
    }

    /// The framing is found again.
    fn find(&mut self) {
        self.search = None;
        (self.is_lost, self.lost_client, self.is_doubtful) = (false, false, true);
        self.unasked_before = self.session.unasked_replies();
    }

    /// All that was said is answered, and a unit begins.
    fn resume(&mut self) {
        self.session.resume(self.server_at, !self.lost_client, self.tail.status());
        self.up.clear();
        self.down.clear();
        self.find();
        (self.copying, self.is_copy_doubtful) = (None, false);
        self.answered_until = None;
    }

    fn lose_client(&mut self) {
        self.search = None;
        self.is_lost = true;
        self.lost_client = true;
        self.unknown_bytes += self.up.len() as u64;
        self.up.clear();
        self.down.clear();
    }

    /// Books what is whole of what came; the rest waits.
    fn feed(&mut self, way: Way, now: Moment, bytes: &[u8]) {
        let mut waiting = std::mem::take(if way == Way::Up { &mut self.up } else { &mut self.down });
        let used = if waiting.is_empty() {
            let used = self.book(way, now, bytes, false);
            waiting.extend_from_slice(&bytes[used.min(bytes.len())..]);
            used
        } else {
            waiting.extend_from_slice(bytes);
            let used = self.book(way, now, &waiting, false);
            waiting.drain(..used.min(waiting.len()));
            used
        };
        let is_gone = self.is_lost || self.is_encrypted || self.is_cancel;
        if is_gone {
            self.unknown_bytes += waiting.len() as u64;
            waiting.clear();
        }
        if waiting.is_empty() {
            waiting = give_back(waiting);
        }
        *(if way == Way::Up { &mut self.up } else { &mut self.down }) = waiting;
        if way == Way::Down && used > 0 && !self.up.is_empty() && !is_gone {
            // What the client sent ahead may be due now.
            self.feed(Way::Up, now, &[]);
        }
    }

    /// How much of `input` is booked.
    fn book(&mut self, way: Way, now: Moment, input: &[u8], is_cut: bool) -> usize {
        let mut used = 0;
        while used < input.len() && !self.is_encrypted && !self.is_cancel {
            let rest = &input[used..];
            if way == Way::Down {
                let rows = self.session.observe_rows(now, rest);
                if rows > 0 {
                    self.copying = None;
                    used += rows;
                    continue;
                }
            }
            let serving = self.session.is_serving();
            let observed = match way {
                Way::Up => {
                    self.asked_encryption |= !serving && is_startup(rest) && rest[4..6] == [4, 210];
                    self.session.observe_client(now, rest, is_cut)
                }
                Way::Down => {
                    if std::mem::take(&mut self.asked_encryption) && matches!(rest[0], b'S' | b'G') {
                        self.is_encrypted = true;
                    }
                    if !self.session.is_server_passing() {
                        self.copying = Copying::of(rest, self.copying);
                    }
                    self.session.observe_server(now, rest, is_cut)
                }
            };
            match observed {
                Ok(Observed::Booked(bytes)) => used += bytes,
                Ok(Observed::Wait) => break,
                Ok(Observed::Cancel) => self.is_cancel = true,
                Err(_) => {
                    self.is_lost = true;
                    self.lost_client |= way == Way::Up;
                    self.search = None;
                    break;
                }
            }
        }
        used
    }

    /// Bytes that were sent and are not known.
    fn miss(&mut self, way: Way, now: Moment, bytes: u64) {
        self.unknown_bytes += bytes;
        let is_known = !self.is_lost;
        let waiting = std::mem::take(if way == Way::Up { &mut self.up } else { &mut self.down });
        if !waiting.is_empty() && !self.is_lost {
            let used = self.book(way, now, &waiting, true);
            if used < waiting.len() {
                self.is_lost = true; // not even the header of a message
                self.lost_client |= way == Way::Up;
            }
        }
        let outside = match way {
            Way::Up => self.session.miss_client(now, bytes),
            Way::Down => self.session.miss_server(now, bytes),
        };
        if outside > 0 {
            self.is_lost = true;
            self.lost_client |= way == Way::Up;
        }
        if is_known && self.is_lost {
            let is_copy = self.copying == Some(Copying { way, is_text: true });
            let goes_on = way == Way::Down || self.session.is_copying_in();
            self.search = (is_copy && goes_on).then(CopySearch::default);
        }
        match &mut self.search {
            Some(search) if self.copying.is_some_and(|copying| copying.way == way) => search.miss(),
            _ => self.search = None,
        }
    }
}

/// Small buffers are kept for the next message.
fn give_back(buffer: Vec<u8>) -> Vec<u8> {
    const KEPT_BYTES_MAX: usize = 2_048;
    if buffer.capacity() > KEPT_BYTES_MAX { Vec::new() } else { buffer }
}
