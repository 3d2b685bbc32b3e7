//! How a connection begins: TLS or not, start-up, authentication, and what the server tells of itself.

use onetrip_target::tls::TlsPlan;
use onetrip_target::{Host, RequireAuth, Secret};
use onetrip_wire::pg::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, ProtocolVersion,
    TransactionStatus, backend, encode_ssl_request, encode_startup,
};

use super::auth::{Authenticator, Binding};
use super::end_point;
use super::request::Limits;
use super::stream::{Frame, Stream};
use super::{CancelKey, Connection};
use crate::{ConnectError, ServerError};

/// Who logs in, and with what.
#[derive(Debug, Clone)]
pub struct Login {
    /// The role.
    pub user: String,
    /// Its password, if there is one.
    pub password: Option<Secret>,
    /// What else the start-up packet says: `database`, `application_name` and settings.
    pub parameters: Vec<(String, String)>,
    /// Oldest and newest protocol that will do.
    pub versions: (ProtocolVersion, ProtocolVersion),
    pub(crate) required: RequireAuth,
    pub(crate) binding: Binding,
}

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
    login: Login,
    security: Security,
    authenticator: Authenticator,
    phase: Phase,
    core: Connection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// SSLRequest was sent.
    AskedForTls,
    /// The start-up packet was sent.
    Starting,
    /// Let in; the server tells of itself.
    LetIn,
    Ready,
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
        let (user, password) = (login.user.clone(), login.password.clone());
        let required = login.required.clone();
        let authenticator = Authenticator::new(host.to_string(), user, password, required, login.binding);
        let stream = Stream::default();
        let core = Connection::new(Stream::default(), limits);
        let mut opening =
            Self { stream, host, login, security, authenticator, phase: Phase::AskedForTls, core };
        match &opening.security {
            Security::Tls(plan) if !plan.is_direct() => encode_ssl_request(&mut opening.stream.out),
            Security::Tls(_) => opening.start_tls()?,
            Security::Plain => opening.start(),
        }
        Ok(opening)
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
        if self.phase == Phase::AskedForTls {
            match self.stream.take_byte() {
                None => return Ok(Step::Wait),
                Some(b'S') if self.stream.has_input() => {
                    // Whatever came with the answer came before TLS could protect it.
                    return Err(self.nonsense("it sent data before TLS began"));
                }
                Some(b'S') => self.start_tls()?,
                Some(b'N') => match &self.security {
                    Security::Tls(plan) if !plan.may_be_plain() => {
                        return Err(plan.refused_by_server(&self.host).into());
                    }
                    _ => self.start(),
                },
                Some(_) => return Err(self.nonsense("its answer to SSLRequest is neither yes nor no")),
            }
        }
        while self.phase != Phase::Ready {
            let frame = self.stream.next_frame().map_err(|error| self.nonsense(&error.to_string()))?;
            let Some(frame) = frame else { return Ok(Step::Wait) };
            self.handle(frame)?;
        }
        Ok(Step::Open)
    }

    fn start_tls(&mut self) -> Result<(), ConnectError> {
        if let Security::Tls(plan) = &self.security {
            self.stream.start_tls(plan.start(&self.host)?);
        }
        self.start();
        Ok(())
    }

    fn start(&mut self) {
        let pairs = self.login.parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let user = [(&b"user"[..], self.login.user.as_bytes())];
        encode_startup(&mut self.stream.out, self.login.versions.1, user.into_iter().chain(pairs));
        self.phase = Phase::Starting;
    }

    fn handle(&mut self, frame: Frame) -> Result<(), ConnectError> {
        let body = self.stream.span(frame.body.clone()).to_vec();
        let broken = |error: onetrip_wire::WireError| ConnectError::Protocol {
            host: self.host.to_string(),
            what: error.to_string(),
        };
        match frame.tag {
            backend::AUTHENTICATION if self.phase == Phase::Starting => {
                self.authenticate(Authentication::decode(&body).map_err(broken)?)?;
            }
            backend::NEGOTIATE_PROTOCOL_VERSION if self.phase == Phase::Starting => {
                let offered = NegotiateProtocolVersion::decode(&body).map_err(broken)?.version;
                if offered < self.login.versions.0 || offered > self.login.versions.1 {
                    return Err(self.nonsense("it speaks no version of the protocol that is allowed here"));
                }
            }
            backend::BACKEND_KEY_DATA if self.phase == Phase::LetIn => {
                let data = BackendKeyData::decode(&body).map_err(broken)?;
                self.core.key = Some(CancelKey { process_id: data.process_id, key: data.key.to_vec() });
            }
            backend::PARAMETER_STATUS => {
                let status = ParameterStatus::decode(&body).map_err(broken)?;
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                self.core.settings.insert(text(status.name), text(status.value));
            }
            backend::NOTICE_RESPONSE => {
                let notice = ServerError::new(&body).map_err(broken)?;
                self.core.notices.push_back(notice);
                self.core.notices.truncate(self.core.limits.notices);
            }
            backend::READY_FOR_QUERY if self.phase == Phase::LetIn => {
                self.core.status = TransactionStatus::decode(&body).map_err(broken)?;
                self.phase = Phase::Ready;
            }
            backend::ERROR_RESPONSE => {
                let source = Box::new(ServerError::new(&body).map_err(broken)?);
                return Err(ConnectError::Refused { host: self.host.to_string(), source });
            }
            _ => return Err(self.nonsense("it sent a message out of turn")),
        }
        Ok(())
    }

    fn authenticate(&mut self, request: Authentication<'_>) -> Result<(), ConnectError> {
        if request == Authentication::Ok {
            self.authenticator.finish()?;
            self.phase = Phase::LetIn;
            return Ok(());
        }
        let Self { stream, authenticator, .. } = self;
        let certificate = stream.tls().and_then(|tls| tls.peer_certificates()?.first().cloned());
        let mut answer = Vec::new();
        let hash = || certificate.as_ref().and_then(|certificate| end_point::hash(certificate));
        authenticator.answer(request, stream.tls().is_some(), hash, &mut answer)?;
        stream.out.extend_from_slice(&answer);
        Ok(())
    }

    fn nonsense(&self, what: &str) -> ConnectError {
        ConnectError::Protocol { host: self.host.to_string(), what: what.to_owned() }
    }
}
