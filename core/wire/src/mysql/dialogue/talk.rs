//! Payloads to events: the state of a connection.

use std::collections::{HashMap, VecDeque};

use super::Settings;
use super::awaited::{Awaited, Expect, Form, answer_to};
use super::event::{Command, Event, Lost, LostReason, ReplyKind, Row, Side, Statement};
use crate::WireError;
#[cfg(feature = "compression")]
use crate::mysql::Compression;
use crate::mysql::{
    AuthMoreData, AuthSwitch, BulkExecute, CachingSha2, Capabilities, ClientHello, ColumnCount,
    ColumnDefinition, EofPacket, ErrPacket, Execute, Fetch, Handshake, LAST_STATEMENT, LongData, OkPacket,
    OutOfSequence, PAYLOAD_MAX, Payload, PrepareOk, Progress, Query, StatementId, Status, TextCommand,
    command, server,
};

/// Payloads that begin like the end of rows and are not shorter than this are rows.
const END_BYTES_MAX: u64 = PAYLOAD_MAX as u64;
/// An EOF packet, to the byte.
const EOF_BYTES: usize = 5;
/// Sets of attributes.
const SETS: u8 = 1;
/// The first character that a text may begin with.
const FIRST_OF_TEXT: u8 = b'\t';
/// What every client asks for that is not older than MySQL 5.0, and every server has.
const SUPPOSED: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::PS_MULTI_RESULTS.0,
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The server has to greet.
    Greeting,
    /// The client has to answer.
    Response,
    Commands,
    /// Nothing more is looked at.
    Over,
}

/// What the answer to a unit has come to with a payload.
enum Next {
    Goes(Expect),
    Ends,
}

/// What is known of a prepared statement.
#[derive(Debug, Clone, Copy)]
struct Prepared {
    unit: u64,
    parameters: u16,
}

#[derive(Debug)]
pub(super) struct Talk {
    settings: Settings,
    phase: Phase,
    server_capabilities: Capabilities,
    capabilities: Capabilities,
    /// Number of the login's next packet.
    login_sequence: u8,
    is_numbered: bool,
    is_logged_in: bool,
    /// The login was not seen: what both sides set shows as it is used.
    is_supposed: bool,
    /// So it is with what ends definitions and rows: an EOF packet, or an OK packet, and then only the rows.
    is_end_open: bool,
    /// A reply has ended with definitions, unless an EOF packet of this number follows.
    end_may_follow: Option<u8>,
    awaited: VecDeque<Awaited>,
    statements: HashMap<u32, Prepared>,
    /// The unit that prepared a statement last, and the statement once its number is known.
    last_prepare: Option<(u64, Option<u16>)>,
    units: u64,
    trips: u64,
    lost: Option<Lost>,
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
        (self.lost, self.end_may_follow) = (None, None);
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
    fn unasked(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        let first = payload.head.first().copied().unwrap_or_default();
        let error = payload.whole().and_then(|body| ErrPacket::decode(body).ok());
        on(Event::Unasked(error.ok_or(LostReason::NothingAsked(first))?));
        Ok(())
    }
}

/// What the client sends after its login.
impl Talk {
    fn client(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        let Some(front) = self.awaited.front_mut() else { return self.command(payload, on) };
        match front.expect {
            Expect::Login { asked: false } if front.reply.unit == 0 => return Err(LostReason::OutOfTurn),
            Expect::Login { asked: true } => {
                if self.is_numbered {
                    check_sequence(&mut front.sequence, payload)?;
                }
                front.expect = Expect::Login { asked: false };
                self.trips += 1;
                on(Event::AuthData(Side::Client, payload.head));
            }
            Expect::File { form, has_begun } => {
                if self.is_numbered {
                    check_sequence(&mut front.sequence, payload)?;
                }
                let ends = payload.len == 0;
                front.expect =
                    if ends { Expect::Result(form) } else { Expect::File { form, has_begun: true } };
                self.trips += u64::from(!has_begun);
                on(Event::FileSent(payload.len));
            }
            Expect::Stream => on(Event::Streamed(Side::Client, payload.len)),
            _ => return self.command(payload, on),
        }
        Ok(())
    }

    fn command(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        if self.is_numbered && payload.sequence_first != 0 {
            return Err(OutOfSequence { expected: 0, found: payload.sequence_first }.into());
        }
        let code = *payload.head.first().ok_or(WireError::Truncated)?;
        if self.is_supposed && has_attributes(payload.head) {
            self.capabilities = self.capabilities | Capabilities::QUERY_ATTRIBUTES;
        }
        let expect = answer_to(code, payload.head);
        if self.awaited.len() >= self.settings.awaited_max && expect.is_some() {
            return Err(LostReason::TooManyAwaited(self.settings.awaited_max));
        }
        self.units += 1;
        let unit = self.units;
        if expect.is_some() && self.awaited.is_empty() {
            self.trips += 1;
        }
        let is_in_trip = expect.is_some() || !self.awaited.is_empty();
        on(Event::Command(Command {
            unit,
            code,
            payload: payload.head,
            payload_len: payload.len,
            bytes: payload.bytes_on_wire,
            text: self.text_of(code, payload.head),
            statement: self.statement_of(code, payload.head),
            is_answered: expect.is_some(),
            trip: is_in_trip.then_some(self.trips),
        }));
        match code {
            command::STMT_PREPARE => self.last_prepare = Some((unit, None)),
            command::STMT_CLOSE => {
                if let Ok(closed) = StatementId::decode(code, payload.head) {
                    self.statements.remove(&closed.statement);
                }
            }
            _ => {}
        }
        if let Some(expect) = expect {
            let sequence = payload.sequence_last.wrapping_add(1);
            self.awaited.push_back(Awaited::new(unit, code, self.trips, expect, sequence));
        }
        Ok(())
    }

    fn text_of<'a>(&self, code: u8, body: &'a [u8]) -> Option<&'a [u8]> {
        match code {
            command::QUERY => Query::decode(body, self.capabilities).ok().map(|query| query.text),
            command::STMT_PREPARE => TextCommand::decode(code, body).ok().map(|prepare| prepare.text),
            _ => None,
        }
    }

    fn statement_of(&self, code: u8, body: &[u8]) -> Option<Statement> {
        let id = match code {
            command::STMT_EXECUTE => Execute::peek(body).ok()?.0,
            command::STMT_BULK_EXECUTE => BulkExecute::peek(body).ok()?.0,
            command::STMT_FETCH => Fetch::decode(body).ok()?.statement,
            command::STMT_SEND_LONG_DATA => LongData::decode(body).ok()?.statement,
            command::STMT_CLOSE | command::STMT_RESET => StatementId::decode(code, body).ok()?.statement,
            _ => return None,
        };
        let known = self.statements.get(&id);
        Some(match self.last_prepare {
            Some((unit, parameters)) if id == LAST_STATEMENT => {
                Statement { id, prepared_by: Some(unit), parameters }
            }
            _ => Statement {
                id,
                prepared_by: known.map(|known| known.unit),
                parameters: known.map(|known| known.parameters),
            },
        })
    }
}

/// What the server answers.
impl Talk {
    fn answer(&mut self, payload: Payload<'_>, on: &mut dyn FnMut(Event<'_>)) -> Result<(), LostReason> {
        let Some(mut awaited) = self.awaited.pop_front() else { return self.unasked(payload, on) };
        awaited.reply.bytes += payload.bytes_on_wire;
        let is_error = payload.head.first() == Some(&server::ERR);
        if self.is_numbered && !is_error && awaited.expect != Expect::Stream {
            check_sequence(&mut awaited.sequence, payload)?;
        } else {
            awaited.sequence = payload.sequence_last.wrapping_add(1);
        }
        let next = if is_error {
            self.error(&mut awaited, payload, on)
        } else {
            self.good(&mut awaited, payload, on)
        };
        match next? {
            Next::Goes(expect) => {
                if matches!(expect, Expect::Login { asked: true } | Expect::File { has_begun: false, .. }) {
                    on(Event::Asked(awaited.reply.bytes));
                }
                awaited.expect = expect;
                self.awaited.push_front(awaited);
            }
            Next::Ends => on(Event::Replied(awaited.reply)),
        }
        Ok(())
    }

    fn error(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let body = whole(payload)?;
        if Progress::is(body) {
            on(Event::Progress(Progress::decode(body)?));
            return Ok(Next::Goes(awaited.expect));
        }
        let error = ErrPacket::decode(body)?;
        awaited.reply.kind = ReplyKind::Failed(error.code);
        on(Event::Failed(error));
        Ok(Next::Ends)
    }

    fn good(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        match awaited.expect {
            Expect::Login { .. } => self.login(awaited, whole(payload)?, on),
            Expect::Single => self.single(awaited, whole(payload)?, on),
            Expect::Text => {
                awaited.reply.kind = ReplyKind::Text;
                on(Event::Text(payload.head));
                Ok(Next::Ends)
            }
            Expect::FieldList => self.field_list(awaited, payload, on),
            Expect::Result(form) => self.result(awaited, form, payload, on),
            Expect::File { .. } => Err(unexpected(awaited, payload)),
            Expect::Definitions { form, left } => {
                on(Event::Column(self.column(whole(payload)?)?));
                Ok(Next::Goes(self.behind_definition(form, left - 1)))
            }
            Expect::DefinitionsEnd(form) => self.definitions_end(awaited, form, payload, on),
            Expect::Rows(form) => self.row(awaited, form, payload, on),
            Expect::Prepare => self.prepare(awaited, whole(payload)?, on),
            Expect::Prepared { parameters, columns, is_end_due } => {
                self.prepared(awaited, (parameters, columns, is_end_due), payload, on)
            }
            Expect::Stream => {
                awaited.reply.kind = ReplyKind::Stream;
                on(Event::Streamed(Side::Server, payload.len));
                let ends = payload.whole().is_some_and(|body| EofPacket::decode(body).is_ok());
                Ok(if ends { Next::Ends } else { Next::Goes(Expect::Stream) })
            }
        }
    }

    fn login(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let asked = match body.first() {
            Some(&server::OK) => {
                let ok = OkPacket::decode(body, self.capabilities)?;
                awaited.reply.status = Some(ok.status);
                self.forget_statements();
                self.is_logged_in = true;
                on(Event::Done(ok));
                return Ok(Next::Ends);
            }
            Some(&server::EOF) => {
                on(Event::AuthSwitch(AuthSwitch::decode(body)?));
                true
            }
            _ => {
                on(Event::AuthData(Side::Server, body));
                // The one message behind which the server goes on by itself.
                AuthMoreData::decode(body).map(|more| more.caching_sha2()) != Ok(CachingSha2::FastOk)
            }
        };
        Ok(Next::Goes(Expect::Login { asked }))
    }

    fn single(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.results = 1;
        awaited.reply.status = Some(self.end(body, awaited, on)?);
        if awaited.reply.code == command::RESET_CONNECTION {
            self.forget_statements();
        }
        Ok(Next::Ends)
    }

    /// An OK or EOF packet, whichever it is.
    fn end(
        &self,
        body: &[u8],
        awaited: &mut Awaited,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Status, LostReason> {
        if body.first() == Some(&server::EOF) && body.len() == EOF_BYTES {
            let EofPacket { warnings, status } = EofPacket::decode(body)?;
            on(Event::RowsDone { warnings, status });
            return Ok(status);
        }
        let ok = OkPacket::decode(body, self.capabilities)?;
        awaited.reply.affected_rows = awaited.reply.affected_rows.saturating_add(ok.affected_rows);
        on(Event::Done(ok));
        Ok(ok.status)
    }

    fn field_list(
        &mut self,
        awaited: &mut Awaited,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.kind = ReplyKind::Columns;
        let body = whole(payload)?;
        if is_end(payload) {
            awaited.reply.status = Some(self.end(body, awaited, on)?);
            return Ok(Next::Ends);
        }
        on(Event::Column(self.column(body)?));
        Ok(Next::Goes(Expect::FieldList))
    }

    fn result(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let body = whole(payload)?;
        match body.first() {
            Some(&server::OK) => {
                let status = self.end(body, awaited, on)?;
                Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes))
            }
            Some(&server::LOCAL_INFILE) => {
                if !self.awaited.is_empty() {
                    return Err(LostReason::FileBehindCommands);
                }
                on(Event::FileWanted(TextCommand::decode(server::LOCAL_INFILE, body)?.text));
                Ok(Next::Goes(Expect::File { form, has_begun: false }))
            }
            Some(&server::EOF) | None => Err(unexpected(awaited, payload)),
            Some(_) => {
                let columns = self.column_count(body)?;
                awaited.reply.kind = ReplyKind::Rows;
                on(Event::Columns(columns.count));
                Ok(Next::Goes(self.behind_definition(form, columns.definitions())))
            }
        }
    }

    fn behind_definition(&self, form: Form, left: u64) -> Expect {
        if left > 0 {
            Expect::Definitions { form, left }
        } else if self.capabilities.has(Capabilities::DEPRECATE_EOF) {
            Expect::Rows(form)
        } else {
            Expect::DefinitionsEnd(form)
        }
    }

    fn definitions_end(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        if self.is_end_open && !self.shows_end(payload) {
            return self.row(awaited, form, payload, on);
        }
        let EofPacket { warnings, status } = EofPacket::decode(whole(payload)?)?;
        if !(form.may_be_cursor && status.has(Status::CURSOR_EXISTS)) {
            return Ok(Next::Goes(Expect::Rows(form)));
        }
        awaited.reply.opened_cursor = true;
        on(Event::RowsDone { warnings, status });
        Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes))
    }

    fn row(
        &mut self,
        awaited: &mut Awaited,
        form: Form,
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        awaited.reply.kind = ReplyKind::Rows;
        if is_end(payload) {
            let status = self.end(whole(payload)?, awaited, on)?;
            awaited.reply.opened_cursor |= form.may_be_cursor && status.has(Status::CURSOR_EXISTS);
            return Ok(awaited.end_result(status, form).map_or(Next::Ends, Next::Goes));
        }
        match payload.head.first() {
            None if payload.len == 0 => return Err(unexpected(awaited, payload)),
            Some(&first) if form.is_binary && first != server::OK => {
                return Err(unexpected(awaited, payload));
            }
            _ => {}
        }
        awaited.reply.rows += 1;
        let row = Row { payload: payload.head, payload_len: payload.len, is_binary: form.is_binary };
        on(Event::Row(row));
        Ok(Next::Goes(Expect::Rows(form)))
    }

    fn prepare(
        &mut self,
        awaited: &mut Awaited,
        body: &[u8],
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        let ok = PrepareOk::decode(body)?;
        let unit = awaited.reply.unit;
        awaited.reply.kind = ReplyKind::Prepared;
        if self.statements.len() < self.settings.statements_max {
            self.statements.insert(ok.statement, Prepared { unit, parameters: ok.parameters });
        }
        if let Some((last, parameters)) = &mut self.last_prepare {
            if *last == unit {
                *parameters = Some(ok.parameters);
            }
        }
        on(Event::Prepared(ok));
        let follows = ok.metadata_follows != Some(false);
        let (parameters, columns) = if follows { (ok.parameters, ok.columns) } else { (0, 0) };
        Ok(prepared_next(parameters, columns, false))
    }

    fn prepared(
        &mut self,
        awaited: &Awaited,
        (mut parameters, mut columns, is_end_due): (u16, u16, bool),
        payload: Payload<'_>,
        on: &mut dyn FnMut(Event<'_>),
    ) -> Result<Next, LostReason> {
        if is_end_due && (!self.is_end_open || self.shows_end(payload)) {
            return match is_end(payload) {
                true => Ok(prepared_next(parameters, columns, false)),
                false => Err(unexpected(awaited, payload)),
            };
        }
        on(Event::Column(self.column(whole(payload)?)?));
        let left = if parameters > 0 { &mut parameters } else { &mut columns };
        *left -= 1;
        let is_end_due = *left == 0 && !self.capabilities.has(Capabilities::DEPRECATE_EOF);
        if is_end_due && self.is_end_open && (parameters, columns) == (0, 0) {
            self.end_may_follow = Some(awaited.sequence);
            return Ok(Next::Ends);
        }
        Ok(prepared_next(parameters, columns, is_end_due))
    }

    fn forget_statements(&mut self) {
        self.statements.clear();
        self.last_prepare = None;
    }
}

/// What a login that was not seen has settled, by what both sides say.
impl Talk {
    /// Whether the payload where definitions end is an EOF packet; so, or not, it is with all results.
    fn shows_end(&mut self, payload: Payload<'_>) -> bool {
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

    fn column<'a>(&mut self, body: &'a [u8]) -> Result<ColumnDefinition<'a>, WireError> {
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

    fn column_count(&mut self, body: &[u8]) -> Result<ColumnCount, WireError> {
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

/// Whether a command says how many attributes it has: no text begins so.
fn has_attributes(body: &[u8]) -> bool {
    match body {
        [command::QUERY, count, SETS, ..] => *count < FIRST_OF_TEXT,
        [command::STMT_EXECUTE, ..] => {
            Execute::peek(body).is_ok_and(|(_, flags)| flags & Execute::COUNT_IS_SAID != 0)
        }
        _ => false,
    }
}

fn prepared_next(parameters: u16, columns: u16, is_end_due: bool) -> Next {
    if parameters == 0 && columns == 0 && !is_end_due {
        return Next::Ends;
    }
    Next::Goes(Expect::Prepared { parameters, columns, is_end_due })
}

/// Whether a payload, where rows or definitions may be, ends them.
fn is_end(payload: Payload<'_>) -> bool {
    payload.head.first() == Some(&server::EOF) && payload.len < END_BYTES_MAX
}

fn whole(payload: Payload<'_>) -> Result<&[u8], LostReason> {
    payload.whole().ok_or(LostReason::TooLong(payload.len))
}

fn unexpected(awaited: &Awaited, payload: Payload<'_>) -> LostReason {
    let first = payload.head.first().copied().unwrap_or_default();
    LostReason::UnexpectedAnswer { code: awaited.reply.code, first }
}

/// Checks the number of an exchange's next packet, and goes on behind it.
fn check_sequence(sequence: &mut u8, payload: Payload<'_>) -> Result<(), OutOfSequence> {
    let (expected, found) = (*sequence, payload.sequence_first);
    *sequence = payload.sequence_last.wrapping_add(1);
    if found == expected { Ok(()) } else { Err(OutOfSequence { expected, found }) }
}
