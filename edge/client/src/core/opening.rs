//! How a connection begins: TLS or not, start-up, authentication, and what the server tells of itself.

use std::sync::Arc;

use onetrip_login::{Channel, Dialogue, Heard, Login, TlsAnswer};
use onetrip_target::Host;
use onetrip_target::tls::TlsPlan;
use onetrip_wire::pg::encode_ssl_request;

use super::request::Limits;
use super::stream::{Frame, Stream};
use super::{CancelKey, Connection};
use crate::{ConnectError, ServerError};

/// Whether a connection speaks TLS.
#[derive(Debug, Clone)]
pub enum Security {
    /// Not.
    Plain,
    /// By this plan; the server may say no where the plan allows that.
    Tls(TlsPlan),
}

/// A connection before the client is let in: bytes in, bytes out, like [`Connection`].
#[derive(Debug)]
pub struct Opening {
    stream: Stream,
    host: Host,
    security: Security,
    phase: Phase,
    core: Connection,
}

#[derive(Debug)]
enum Phase {
    /// SSLRequest was sent; this login follows.
    AskedForTls(Box<Login>),
    LoggingIn(Box<Dialogue>),
    Ready,
}

impl Phase {
    fn start(login: Login, stream: &mut Stream) -> Self {
        Self::LoggingIn(Box::new(Dialogue::start(login, &mut stream.out)))
    }
}

/// Whether more is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send the output, and read.
    Wait,
    /// The connection is open: [`Opening::into_connection`].
    Open,
}

impl Opening {
    /// Begins with a server; the first bytes are in the output.
    ///
    /// # Errors
    /// TLS that cannot be begun.
    pub fn new(host: Host, login: Login, security: Security, limits: Limits) -> Result<Self, ConnectError> {
        let mut stream = Stream::default();
        let phase = match &security {
            Security::Tls(plan) if !plan.is_direct() => {
                encode_ssl_request(&mut stream.out);
                Phase::AskedForTls(Box::new(login))
            }
            Security::Tls(plan) => {
                stream.start_tls(plan.start(&host)?);
                Phase::start(login, &mut stream)
            }
            Security::Plain => Phase::start(login, &mut stream),
        };
        let core = Connection::new(Stream::default(), limits);
        Ok(Self { stream, host, security, phase, core })
    }

    /// What is to be sent now.
    pub fn output(&mut self) -> &[u8] {
        self.stream.output()
    }

    /// This many bytes of it were sent.
    pub fn sent(&mut self, count: usize) {
        self.stream.sent(count);
    }

    /// Where to put what arrives.
    pub fn input_space(&mut self) -> &mut [u8] {
        self.stream.input_space()
    }

    /// This many bytes arrived; zero is the end of the stream.
    ///
    /// # Errors
    /// A server that does not let us in, or is not one.
    pub fn received(&mut self, count: usize) -> Result<Step, ConnectError> {
        if count == 0 {
            return Err(self.nonsense("it closed the connection"));
        }
        if let Err(error) = self.stream.received(count) {
            return Err(match &self.security {
                Security::Tls(plan) => plan.explain(&self.host, error).into(),
                Security::Plain => self.nonsense(&error.to_string()),
            });
        }
        self.advance()
    }

    /// The connection, once [`Step::Open`] was returned.
    pub fn into_connection(mut self) -> Connection {
        self.core.stream = self.stream;
        self.core
    }

    fn advance(&mut self) -> Result<Step, ConnectError> {
        if let Phase::AskedForTls(login) = &self.phase {
            let Some(byte) = self.stream.take_byte() else { return Ok(Step::Wait) };
            let login = (**login).clone();
            if self.is_tls(byte)? {
                if let Security::Tls(plan) = &self.security {
                    self.stream.start_tls(plan.start(&self.host)?);
                }
            }
            self.phase = Phase::start(login, &mut self.stream);
        }
        while !matches!(self.phase, Phase::Ready) {
            let frame = self.stream.next_frame().map_err(|error| self.nonsense(&error.to_string()))?;
            let Some(frame) = frame else { return Ok(Step::Wait) };
            self.handle(frame)?;
        }
        Ok(Step::Open)
    }

    /// Whether TLS follows the server's answer to SSLRequest.
    fn is_tls(&self, answer: u8) -> Result<bool, ConnectError> {
        match (TlsAnswer::of(answer), &self.security) {
            (Some(TlsAnswer::Yes), _) if self.stream.has_input() => {
                // Whatever came with the answer came before TLS could protect it.
                Err(self.nonsense("it sent data before TLS began"))
            }
            (Some(TlsAnswer::Yes), _) => Ok(true),
            (Some(TlsAnswer::No), Security::Tls(plan)) if !plan.may_be_plain() => {
                Err(plan.refused_by_server(&self.host).into())
            }
            (Some(TlsAnswer::No), _) => Ok(false),
            (Some(TlsAnswer::Error) | None, _) => {
                Err(self.nonsense("its answer to SSLRequest is neither yes nor no"))
            }
        }
    }

    fn handle(&mut self, frame: Frame) -> Result<(), ConnectError> {
        let Phase::LoggingIn(dialogue) = &mut self.phase else { return Ok(()) };
        let body = self.stream.span(frame.body);
        let channel = match self.stream.tls() {
            None => Channel::Plain,
            Some(tls) => {
                let certificate = tls.peer_certificates().and_then(|chain| chain.first());
                Channel::Tls { certificate: certificate.map(|certificate| certificate.as_ref()) }
            }
        };
        let mut answer = Vec::new();
        let heard = dialogue
            .handle(frame.tag, body, channel, &mut answer)
            .map_err(|error| ConnectError::login(&self.host, error))?;
        match heard {
            Heard::Question | Heard::Proof | Heard::LetIn | Heard::Version(_) => {}
            Heard::Key(data) => {
                self.core.key = Some(CancelKey { process_id: data.process_id, key: data.key.to_vec() });
            }
            Heard::Setting(status) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Arc::make_mut(&mut self.core.settings).insert(text(status.name), text(status.value));
            }
            Heard::Notice(body) => {
                let notice = ServerError::new(body).map_err(|error| self.nonsense(&error.to_string()))?;
                self.core.notices.push_back(notice);
                self.core.notices.truncate(self.core.limits.notices);
            }
            Heard::Ready(status) => {
                self.core.status = status;
                self.phase = Phase::Ready;
            }
        }
        self.stream.out.extend_from_slice(&answer);
        Ok(())
    }

    fn nonsense(&self, what: &str) -> ConnectError {
        ConnectError::Protocol { host: self.host.to_string(), what: what.to_owned() }
    }
}
