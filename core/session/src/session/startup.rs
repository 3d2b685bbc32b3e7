//! From the startup packet to the first ReadyForQuery: authentication is relayed, parameters are learnt.

use std::borrow::Cow;

use onetrip_ledger::{Moment, UnitKind};
use onetrip_wire::WireError;
use onetrip_wire::pg::{
    Authentication, BackendKeyData, ErrorResponse, FrameHeader, NegotiateProtocolVersion, PROTOCOL_3_0,
    ParameterStatus, Startup, StartupMessage, backend, encode_sasl_mechanisms, encode_startup, frontend,
};

use super::Session;
use super::core::Phase;
use crate::config::IsolationLevel;
use crate::contract::{
    BackendKey, INSPECT_BYTES_MAX, LENGTH_BEFORE_AUTH_MAX, LENGTH_MAX, Opening, SessionError, Verdict,
};
use crate::events::Event;
use crate::facts::Doubt;
use crate::reading::kept_parameter;

/// Answers "yes" to SSLRequest.
const ENCRYPTED: u8 = b'S';
/// Answers "no" to SSLRequest and GSSENCRequest.
const NOT_ENCRYPTED: u8 = b'N';
/// So many bytes of a SCRAM login hold the mechanism and what it says of channel binding.
const BINDING_BYTES: usize = 64;
/// Protocol extensions begin with it.
const EXTENSION_PREFIX: &[u8] = b"_pq_.";

/// Messages that have no place before the server is ready.
fn is_request(tag: u8) -> bool {
    use frontend::{BIND, CLOSE, DESCRIBE, EXECUTE, FLUSH, FUNCTION_CALL, PARSE, QUERY, SYNC};
    matches!(tag, BIND | CLOSE | DESCRIBE | EXECUTE | FLUSH | FUNCTION_CALL | PARSE | QUERY | SYNC)
}

/// Messages that a server ready for queries takes.
pub(crate) fn is_taken_when_serving(tag: u8) -> bool {
    use frontend::{COPY_DATA, COPY_DONE, COPY_FAIL, TERMINATE};
    is_request(tag) || matches!(tag, COPY_DATA | COPY_DONE | COPY_FAIL | TERMINATE)
}

impl Session {
    /// The client's first packets: requests for encryption, then the startup packet or a cancel request.
    pub(super) fn see_opening(&mut self, now: Moment, input: &[u8]) -> Result<Opening, SessionError> {
        let length = match Startup::peek_len(input) {
            None => return Ok(Opening::Wait),
            Some(Err(error)) => return Err(self.client_broke(error)),
            Some(Ok(length)) => length,
        };
        let Some(packet) = input.get(..length) else { return Ok(Opening::Wait) };
        match Startup::decode(&packet[4..]) {
            Ok(Startup::SslRequest | Startup::GssEncRequest) if self.core.is_observed => {
                self.connect_unit(now, length);
                Ok(Opening::Answer(length))
            }
            Ok(request @ (Startup::SslRequest | Startup::GssEncRequest)) => {
                self.answer_encryption(now, &request, packet, input.len() - length)
            }
            // Like every length that cannot be, a key of another is nothing to answer.
            Ok(Startup::Cancel(request)) => match request.key.try_into() {
                Ok(key) => Ok(Opening::Cancel { bytes: length, process_id: request.process_id, key }),
                Err(_) => Err(self.client_broke(WireError::Truncated)),
            },
            Ok(Startup::Session(message)) => {
                self.open(now, message);
                self.connect_unit(now, length);
                self.core.phase = Phase::Entering;
                Ok(Opening::Connect(length))
            }
            Err(error @ WireError::UnsupportedProtocol { .. }) => Err(self.client_broke(error)),
            Err(error) if Startup::is_cancel(&packet[4..]) => Err(self.client_broke(error)),
            Err(error) => {
                let message = "invalid startup packet layout: expected terminator as last byte";
                self.refuse("08P01", message, None);
                Err(SessionError::Client(error))
            }
        }
    }

    /// Answers a request for encryption, once for each kind (`ProcessStartupPacket`).
    fn answer_encryption(
        &mut self,
        now: Moment,
        request: &Startup<'_>,
        packet: &[u8],
        more: usize,
    ) -> Result<Opening, SessionError> {
        let (was_answered, name) = match request {
            Startup::SslRequest => (&mut self.core.answered.ssl, "SSL"),
            _ => (&mut self.core.answered.gssapi, "GSSAPI encryption"),
        };
        if std::mem::replace(was_answered, true) {
            // A request that was answered is no request any more.
            let code = packet[4..].first_chunk().map_or(0, |code| u32::from_be_bytes(*code));
            let (major, minor) = ((code >> 16) as u16, code as u16);
            return Err(self.client_broke(WireError::UnsupportedProtocol { major, minor }));
        }
        let grants = self.core.client_tls.is_offered && matches!(request, Startup::SslRequest);
        let unit = self.connect_unit(now, packet.len());
        if !grants {
            self.core.to_client.push(NOT_ENCRYPTED);
        } else if more == 0 {
            self.core.to_client.push(ENCRYPTED); // after it, words in clear text would be nonsense
            self.core.answered.gssapi = true; // inside TLS there is no other encryption
            self.core.client_tls.begins = true;
        }
        self.core.units.bytes_received(unit, 1, now);
        self.core.units.settled(unit);
        self.book_answered(now);
        if more > 0 {
            // What came along was sent before the answer: it may be somebody else's (CVE-2021-23214).
            self.refuse("08P01", &format!("received unencrypted data after {name} request"), None);
            return Err(SessionError::Client(WireError::Trailing(more)));
        }
        Ok(Opening::Answer(packet.len()))
    }

    /// The gateway speaks TLS with clients that ask for it.
    pub fn offer_tls(&mut self) {
        self.core.client_tls.is_offered = true;
    }

    /// Whether TLS begins now: the client was just told so.
    pub fn tls_begins(&mut self) -> bool {
        std::mem::take(&mut self.core.client_tls.begins)
    }

    /// TLS is there, after so many trips of its own.
    pub fn tls_began(&mut self, now: Moment, trips: u32) {
        self.core.client_tls.is_offered = false;
        for _ in 0..trips {
            let unit = self.connect_unit(now, 0);
            self.answer_connect(unit, now);
        }
    }

    /// The client's TLS shows the certificate that the database shows.
    pub fn shows_databases_certificate(&mut self) {
        self.core.client_tls.has_same_certificate = true;
    }

    /// Refuses a login that the server will refuse for a reason it cannot know: to a client that speaks TLS, a list
    /// without channel binding looks like somebody's work between it and the database, and so it is.
    fn check_binding(&mut self, header: FrameHeader, input: &[u8]) -> Result<bool, SessionError> {
        if !self.core.client_tls.is_stripped || header.tag != frontend::PASSWORD {
            return Ok(true);
        }
        let Some(start) = input.get(..header.frame_len().min(BINDING_BYTES)) else { return Ok(false) };
        self.core.client_tls.is_stripped = false;
        let body = &start[onetrip_wire::pg::HEADER_BYTES..];
        let mechanism = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
        if body.get(mechanism + 5) != Some(&b'y') {
            return Ok(true);
        }
        let text = "SCRAM cannot pass a gateway between two TLS connections with different certificates";
        let hint = "Connect with channel_binding=disable or sslmode=disable, or start onetrip with the database's own \
                    certificate (--tls-cert, --tls-key), or with --upstream and sslmode=disable if nobody can listen on \
                    the way to the database.";
        self.refuse("28000", text, Some(hint));
        Err(SessionError::BindingMissed)
    }

    /// A password or an authentication step: forwarded as it is.
    pub(crate) fn handle_entering_client(
        &mut self,
        now: Moment,
        input: &[u8],
    ) -> Result<Verdict, SessionError> {
        let Some(header) = self.client_frame(input, LENGTH_BEFORE_AUTH_MAX)? else {
            return Ok(Verdict::Wait);
        };
        if self.waits_for_entry(input) {
            // A client sure to be let in sends ahead; the server would read it afterwards, too.
            return Ok(Verdict::Wait);
        }
        if !self.check_binding(header, input)? {
            return Ok(Verdict::Wait);
        }
        if header.tag == frontend::PASSWORD {
            self.core.proofs_due -= 1;
            self.connect_unit(now, 0);
        }
        self.core.client_passing = header.frame_len();
        let bytes = input.len().min(self.core.client_passing);
        self.core.client_passing -= bytes;
        self.core.units.bytes_sent(bytes);
        Ok(Verdict::Forward(bytes))
    }

    /// Whether the client sent a request before the server is ready: it waits until then, whole or not.
    pub fn waits_for_entry(&self, input: &[u8]) -> bool {
        self.core.phase == Phase::Entering
            && self.core.proofs_due <= 0
            && input.first().is_some_and(|tag| is_request(*tag))
    }

    /// What the server says before it is ready: its mechanisms, its parameters, its key.
    pub(crate) fn handle_entering_server(
        &mut self,
        now: Moment,
        input: &[u8],
    ) -> Result<Verdict, SessionError> {
        if self.core.phase == Phase::Opening {
            return self.see_encryption_answer(now, input);
        }
        // A client that knows what it will be asked for sends ahead: the oldest of its packets is answered next.
        let unit = self.core.units.oldest();
        let header = match FrameHeader::peek(input, LENGTH_MAX) {
            None => return Ok(Verdict::Wait),
            Some(Err(error)) => return Err(self.server_broke(error)),
            Some(Ok(header)) => header,
        };
        let length = header.frame_len();
        if length > INSPECT_BYTES_MAX {
            self.core.last_reply_unit = unit;
            self.core.server_passing = length;
            return Ok(Verdict::Forward(0));
        }
        let available = if self.core.is_cut { length.min(input.len()) } else { length };
        let Some(frame) = input.get(..available) else { return Ok(Verdict::Wait) };
        let body = &frame[onetrip_wire::pg::HEADER_BYTES..];
        self.core.last_reply_unit = unit;
        self.core.server_passing = length - available;
        self.core.units.bytes_received(unit, available, now);
        let mut verdict = Verdict::Forward(available);
        match header.tag {
            backend::AUTHENTICATION => {
                let (forward, waits) = self.authentication(body)?;
                if !forward {
                    verdict = Verdict::Replace(available);
                }
                if waits {
                    self.core.proofs_due += 1;
                    self.answer_connect(unit, now);
                }
            }
            backend::BACKEND_KEY_DATA => {
                if let Ok(data) = BackendKeyData::decode(body) {
                    self.core.backend_key =
                        Some(BackendKey { process_id: data.process_id, key: data.key.into() });
                    BackendKeyData { process_id: data.process_id, key: &self.config.cancel_key }
                        .encode(&mut self.core.to_client);
                    verdict = Verdict::Replace(available);
                } else {
                    self.core.undecoded += 1;
                }
            }
            backend::PARAMETER_STATUS => self.parameter_changed(body),
            backend::ERROR_RESPONSE => {
                if let Some(exchange) = self.core.units.exchange_mut(unit) {
                    exchange.outcome = super::server::failure(body);
                }
                let error = ErrorResponse::decode(body).ok();
                let message = error.as_ref().and_then(|error| error.field(b'M')).unwrap_or_default();
                let sqlstate = error.as_ref().and_then(|error| error.sqlstate()).unwrap_or(*b"?????");
                self.core.refused(sqlstate, message);
                self.answer_connect(unit, now);
            }
            backend::READY_FOR_QUERY => {
                self.core.units.settle_all();
                self.book_answered(now);
                self.core.phase = Phase::Serving;
                self.core.stream.entered();
                self.facts.entered();
                self.got_ready(now);
            }
            _ => {}
        }
        Ok(verdict)
    }

    /// The server's own answer to a request for encryption: one byte.
    fn see_encryption_answer(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        let unit = self.core.units.oldest();
        if !self.core.is_observed || self.core.units.len() == 0 {
            return Err(SessionError::Server(WireError::Truncated));
        }
        if input.is_empty() {
            return Ok(Verdict::Wait);
        }
        self.core.units.bytes_received(unit, 1, now);
        self.answer_connect(unit, now);
        Ok(Verdict::Forward(1))
    }

    /// A setting that the server reports changed.
    pub(crate) fn parameter_changed(&mut self, body: &[u8]) {
        match ParameterStatus::decode(body) {
            Ok(ParameterStatus { name, value }) => {
                if name == b"application_name" {
                    self.core.scopes.application(value, &mut self.core.names, &mut self.core.stream);
                }
                self.tell(&Event::ParameterReported { name, value });
            }
            Err(_) => {
                self.core.undecoded += 1;
                self.tell(&Event::UnknownReported);
            }
        }
    }

    /// Books the startup packet, puts the one for the server into its outbox and tells a client that asks for more
    /// than protocol 3.0 that there is no more.
    fn open(&mut self, now: Moment, message: StartupMessage<'_>) {
        let keep_values = self.config.keep_values;
        let kept = |(name, value)| {
            (name, if keep_values { Cow::Borrowed(value) } else { kept_parameter(name, value) })
        };
        let kept: Vec<_> = message.parameters.iter().map(kept).collect();
        self.core.stream.opened(now, kept.iter().map(|(name, value)| (*name, &**value)));
        self.config.common.tally.opened();
        if let Some(name) = message.parameters.get("application_name") {
            self.core.scopes.application(name, &mut self.core.names, &mut self.core.stream);
        }
        let parameters: Vec<(&[u8], &[u8])> = message.parameters.iter().collect();
        self.tell(&Event::Opened(&parameters));
        self.doubt_functions(Doubt::Login);
        let is_extension = |name: &[u8]| name.starts_with(EXTENSION_PREFIX);
        let unknown_options: Vec<&[u8]> =
            message.parameters.iter().map(|(name, _)| name).filter(|name| is_extension(name)).collect();
        if message.version > PROTOCOL_3_0 || !unknown_options.is_empty() {
            NegotiateProtocolVersion { version: PROTOCOL_3_0, unknown_options }
                .encode(&mut self.core.to_client);
        }
        let kept = message.parameters.iter().filter(|(name, _)| !is_extension(name));
        let setting = IsolationLevel::SETTING.as_bytes();
        let is_free = message.parameters.get("replication").is_none()
            && message.parameters.iter().all(|(name, _)| !name.eq_ignore_ascii_case(setting));
        let level =
            self.config.isolation.filter(|_| is_free).map(|level| (setting, level.value().as_bytes()));
        if level.is_some() {
            self.raised.raise();
        }
        encode_startup(&mut self.core.to_server, PROTOCOL_3_0, kept.chain(level));
    }

    /// Relays an Authentication message: whether it goes on as it is, and whether the client's next word is due.
    fn authentication(&mut self, body: &[u8]) -> Result<(bool, bool), SessionError> {
        let Ok(message) = Authentication::decode(body) else {
            self.core.undecoded += 1;
            return Ok((true, true));
        };
        match message {
            Authentication::Ok | Authentication::SaslFinal(_) => Ok((true, false)),
            _ if self.core.is_observed => Ok((true, true)),
            Authentication::Sasl { .. } => {
                // Channel binding ties the client to the TLS connection it sees, and that is not the server's.
                let binds = |name: &&[u8]| name.ends_with(b"-PLUS");
                if self.core.client_tls.has_same_certificate || !message.mechanisms().any(|name| binds(&name))
                {
                    return Ok((true, true));
                }
                self.core.client_tls.is_stripped = true;
                let kept: Vec<&[u8]> = message.mechanisms().filter(|name| !binds(name)).collect();
                if kept.is_empty() {
                    let text = "the database offers only SCRAM-SHA-256-PLUS, which cannot pass a gateway";
                    let hint = "Start onetrip with the database's certificate and private key (--tls-cert, --tls-key), and \
                                connect to it with sslmode=require.";
                    self.refuse("28000", text, Some(hint));
                    return Err(SessionError::ChannelBindingOnly);
                }
                encode_sasl_mechanisms(&mut self.core.to_client, kept);
                Ok((false, true))
            }
            _ => Ok((true, true)),
        }
    }

    /// The unit of a start-up packet: it owes one reply and nothing more belongs to it.
    fn connect_unit(&mut self, now: Moment, bytes: usize) -> u64 {
        let unit = self.core.units.open(now, UnitKind::Connect);
        self.core.units.owes(unit);
        self.core.units.close(None);
        self.core.units.bytes_sent(bytes);
        unit
    }

    fn answer_connect(&mut self, unit: u64, now: Moment) {
        self.core.units.settled(unit);
        self.book_answered(now);
    }
}
