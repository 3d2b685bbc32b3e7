//! Payloads to events: the state of a connection.

use std::collections::{HashMap, VecDeque};

use super::Settings;
use super::awaited::{Awaited, Expect};
use super::event::{Event, Lost, LostReason, Side};
use crate::WireError;
#[cfg(feature = "compression")]
use crate::mysql::Compression;
use crate::mysql::{
    Capabilities, ClientHello, ColumnCount, ColumnDefinition, ErrPacket, Handshake, OutOfSequence, Payload,
    server,
};

/// An EOF packet, to the byte.
pub(super) const EOF_BYTES: usize = 5;
/// What every client asks for that is not older than MySQL 5.0, and every server has.
const SUPPOSED: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PS_MULTI_RESULTS.0,
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The server has to greet.
    Greeting,
    /// The client has to answer.
    Response,
    Commands,
    /// Nothing more is looked at.
    Over,
}

/// What is known of a prepared statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    pub(super) unit: u64,
    pub(super) parameters: u16,
}

#[derive(Debug)]
pub(super) struct Talk {
    pub(super) settings: Settings,
    pub(super) phase: Phase,
    pub(super) server_capabilities: Capabilities,
    pub(super) capabilities: Capabilities,
    /// Number of the login's next packet.
    pub(super) login_sequence: u8,
    pub(super) is_numbered: bool,
    pub(super) is_logged_in: bool,
    /// The login was not seen: what both sides set shows as it is used.
    pub(super) is_supposed: bool,
    /// So it is with what ends definitions and rows: an EOF packet, or an OK packet, and then only the rows.
    pub(super) is_end_open: bool,
    /// A reply has ended with definitions, unless an EOF packet of this number follows.
    pub(super) end_may_follow: Option<u8>,
    pub(super) awaited: VecDeque<Awaited>,
    /// Bytes that were told of the command that the client is still sending: its answer has come.
    pub(super) told_ahead: Option<u64>,
    pub(super) statements: HashMap<u32, Prepared>,
    /// The unit that prepared a statement last, and the statement once its number is known.
    pub(super) last_prepare: Option<(u64, Option<u16>)>,
    pub(super) units: u64,
    pub(super) trips: u64,
    pub(super) lost: Option<Lost>,
}

/// How much is kept of a payload that does not come in one piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    of_rows: Option<usize>,
    of_others: usize,
}

impl Kept {
    pub(super) fn bytes_max(self, first: u8) -> usize {
        match self.of_rows {
            Some(of_rows) if !matches!(first, server::ERR | server::EOF) => of_rows,
            _ => self.of_others,
        }
    }
}

impl Talk {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Greeting,
            server_capabilities: Capabilities::default(),
            capabilities: Capabilities::default(),
            login_sequence: 0,
            is_numbered: true,
            is_logged_in: false,
            is_supposed: false,
            is_end_open: false,
            end_may_follow: None,
            awaited: VecDeque::new(),
            told_ahead: None,
            statements: HashMap::new(),
            last_prepare: None,
            units: 0,
            trips: 0,
            lost: None,
        }
    }

    pub(super) fn join(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
    }

    pub(super) fn suppose(&mut self) {
        self.capabilities = SUPPOSED;
        (self.is_supposed, self.is_end_open) = (true, true);
    }

    pub(super) fn is_given_decrypted(&mut self) {
        self.settings.is_decrypted = true;
    }

    pub(super) fn resume(&mut self, knows_statements: bool) {
        self.phase = Phase::Commands;
        self.is_logged_in = true;
        #[cfg(feature = "compression")]
        {
            self.is_numbered = self.compression().is_none();
        }
        self.awaited.clear();
        (self.lost, self.end_may_follow, self.told_ahead) = (None, None, None);
        if !knows_statements {
            self.forget_statements();
        }
    }

    pub(super) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(super) fn trips(&self) -> u64 {
        self.trips
    }

    pub(super) fn awaited(&self) -> usize {
        self.awaited.len()
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        self.lost
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether packets have the numbers that the protocol gives them; within a compressed stream they need not.
    pub(super) fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    pub(super) fn lose(&mut self, lost: Lost, on: &mut dyn FnMut(Event<'_>)) {
        self.phase = Phase::Over;
        self.lost = Some(lost);
        on(Event::Lost(lost));
    }

    /// True once, when all that follows is compressed.
    pub(super) fn starts_compression(&mut self) -> bool {
        let compressed = [Capabilities::COMPRESS, Capabilities::ZSTD_COMPRESSION];
        let starts = self.is_logged_in
            && self.is_numbered
            && compressed.iter().any(|flag| self.capabilities.has(*flag));
        self.is_numbered &= !starts;
        starts
    }

    #[cfg(feature = "compression")]
    pub(super) fn compression(&self) -> Option<Compression> {
        if self.capabilities.has(Capabilities::COMPRESS) {
            Some(Compression::Zlib)
        } else {
            self.capabilities.has(Capabilities::ZSTD_COMPRESSION).then_some(Compression::Zstd)
        }
    }

    pub(super) fn kept(&self, side: Side) -> Kept {
        let Settings { command_bytes_max, row_bytes_max, control_bytes_max, .. } = self.settings;
        let expect = self.awaited.front().map(|awaited| awaited.expect);
        match (side, self.phase, expect) {
            (Side::Client, Phase::Commands, Some(Expect::File { .. })) | (_, _, Some(Expect::Stream)) => {
                Kept { of_rows: Some(0), of_others: control_bytes_max }
            }
            (Side::Client, Phase::Commands, _) => Kept { of_rows: None, of_others: command_bytes_max },
            (Side::Server, _, Some(Expect::Rows(_))) => {
                Kept { of_rows: Some(row_bytes_max), of_others: control_bytes_max }
            }
            _ => Kept { of_rows: None, of_others: control_bytes_max },
        }
    }

    pub(super) fn take(
        &mut self,
        side: Side,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        match (side, self.phase) {
            (_, Phase::Over) => Ok(()),
            (Side::Client, Phase::Greeting) => Err(LostReason::OutOfTurn),
            (Side::Client, Phase::Response) => self.hello(payload, on),
            (Side::Client, Phase::Commands) => self.client(payload, on),
            (Side::Server, Phase::Greeting) => self.greeting(payload, on),
            (Side::Server, Phase::Response) => self.unasked(payload, on),
            (Side::Server, Phase::Commands) if self.ends_definitions(payload) => Ok(()),
            (Side::Server, Phase::Commands) if self.awaited.is_empty() => self.unasked(payload, on),
            (Side::Server, Phase::Commands) => self.answer(payload, on),
        }
    }

    pub(super) fn forget_statements(&mut self) {
        self.statements.clear();
        self.last_prepare = None;
    }

    fn greeting(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        let body = whole(payload)?;
        if body.first() == Some(&server::ERR) {
            self.phase = Phase::Over;
            on(Event::Unasked(ErrPacket::decode(body)?));
            return Ok(());
        }
        check_sequence(&mut self.login_sequence, payload)?;
        let greeting = Handshake::decode(body)?;
        self.server_capabilities = greeting.capabilities;
        self.phase = Phase::Response;
        on(Event::Greeting(greeting));
        Ok(())
    }

    fn hello(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        check_sequence(&mut self.login_sequence, payload)?;
        match ClientHello::decode(whole(payload)?)? {
            ClientHello::Ssl(request) => {
                self.phase = if self.settings.is_decrypted { Phase::Response } else { Phase::Over };
                on(Event::Tls(request.capabilities));
            }
            ClientHello::Response(response) => {
                self.capabilities = response.head.capabilities & self.server_capabilities;
                self.phase = Phase::Commands;
                self.trips += 1;
                let expect = Expect::Login { asked: false };
                self.awaited.push_back(Awaited::new(0, 0, self.trips, expect, self.login_sequence));
                on(Event::Login(response));
            }
        }
        Ok(())
    }

    /// The server speaks and nothing is awaited: an error that ends the connection, or nonsense.
    pub(super) fn unasked(
        &mut self,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), LostReason> {
        let first = payload.head.first().copied().unwrap_or_default();
        let error = payload.whole().and_then(|body| ErrPacket::decode(body).ok());
        on(Event::Unasked(error.ok_or(LostReason::NothingAsked(first))?));
        Ok(())
    }
}

/// What a login that was not seen has settled, by what both sides say.
impl Talk {
    /// Whether the payload where definitions end is an EOF packet; so, or not, it is with all results.
    pub(super) fn shows_end(&mut self, payload: Payload<'_>) -> bool {
        let is_eof = payload.head.first() == Some(&server::EOF) && payload.len == EOF_BYTES as u64;
        self.is_end_open = false;
        if !is_eof {
            self.capabilities = self.capabilities | Capabilities::DEPRECATE_EOF;
        }
        is_eof
    }

    /// Whether a payload is the end of definitions whose reply was taken for complete.
    fn ends_definitions(&mut self, payload: Payload<'_>) -> bool {
        let number = self.end_may_follow.take();
        number.is_some_and(|number| self.shows_end(payload) && payload.sequence_first == number)
    }

    pub(super) fn column<'a>(&mut self, body: &'a [u8]) -> Result<ColumnDefinition<'a>, WireError> {
        let known = ColumnDefinition::decode(body, self.capabilities);
        // What extends a definition may look like a default, which only the reply to COM_FIELD_LIST has.
        if !self.is_supposed || known.is_ok_and(|column| column.default.is_none()) {
            return known;
        }
        let capabilities = self.capabilities | Capabilities::MARIADB_EXTENDED_METADATA;
        let extended = ColumnDefinition::decode(body, capabilities);
        if extended.is_ok() {
            self.capabilities = capabilities;
        }
        extended.or(known)
    }

    pub(super) fn column_count(&mut self, body: &[u8]) -> Result<ColumnCount, WireError> {
        let known = ColumnCount::decode(body, self.capabilities);
        if !self.is_supposed || known.is_ok() {
            return known;
        }
        let capabilities = self.capabilities | Capabilities::MARIADB_CACHE_METADATA;
        let columns = ColumnCount::decode(body, capabilities)?;
        self.capabilities = capabilities;
        Ok(columns)
    }
}

pub(super) fn whole(payload: Payload<'_>) -> Result<&[u8], LostReason> {
    payload.whole().ok_or(LostReason::TooLong(payload.len))
}

/// Checks the number of an exchange's next packet, and goes on behind it.
pub(super) fn check_sequence(sequence: &mut u8, payload: Payload<'_>) -> Result<(), OutOfSequence> {
    let (expected, found) = (*sequence, payload.sequence_first);
    *sequence = payload.sequence_last.wrapping_add(1);
    if found == expected { Ok(()) } else { Err(OutOfSequence { expected, found }) }
}
