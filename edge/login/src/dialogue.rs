use onetrip_target::{RequireAuth, Secret};
use onetrip_wire::WireError;
use onetrip_wire::pg::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, ProtocolVersion,
    TransactionStatus, backend, encode_startup,
};

use crate::authenticator::Authenticator;
use crate::{ChannelBinding, LoginError, Method};

/// Who logs in, and with what.
#[derive(Debug, Clone)]
pub struct Login {
    /// The role.
    pub user: String,
    /// Its password, if there is one. An empty one counts as none, as in libpq.
    pub password: Option<Secret>,
    /// What else the start-up packet says: `database`, `application_name` and settings.
    pub parameters: Vec<(String, String)>,
    /// Oldest and newest protocol that will do.
    pub versions: (ProtocolVersion, ProtocolVersion),
    /// By which methods.
    pub require_auth: RequireAuth,
    /// Whether SCRAM is bound to TLS.
    pub channel_binding: ChannelBinding,
}

/// What the messages of a login travel in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel<'a> {
    /// A plain connection.
    Plain,
    /// TLS.
    Tls {
        /// The server's certificate, as DER, where it is known.
        certificate: Option<&'a [u8]>,
    },
}

/// One login: takes the server's messages, and appends what answers them to the caller's output.
#[derive(Debug)]
pub struct Dialogue {
    login: Login,
    authenticator: Authenticator,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The start-up packet was sent.
    Starting,
    /// Let in; the server tells of itself.
    LetIn,
    Ready,
}

/// What a message of the server meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A question about the password; its answer is in the output.
    Question,
    /// The last word of SCRAM: the server knows the password too.
    Proof,
    /// The password is right, or none is needed.
    LetIn,
    /// The server speaks this older version of the protocol.
    Version(ProtocolVersion),
    /// What interrupts the session's work.
    Key(BackendKeyData<'a>),
    /// A setting.
    Setting(ParameterStatus<'a>),
    /// The body of a NoticeResponse.
    Notice(&'a [u8]),
    /// The session can be used.
    Ready(TransactionStatus),
}

impl Dialogue {
    /// Begins: appends the start-up packet to `out`.
    pub fn start(login: Login, out: &mut Vec<u8>) -> Self {
        let pairs = login.parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let user = [(&b"user"[..], login.user.as_bytes())];
        encode_startup(out, login.versions.1, user.into_iter().chain(pairs));
        let authenticator = Authenticator::new(&login);
        Self { login, authenticator, phase: Phase::Starting }
    }

    /// Takes one message of the server's. After an error the connection is of no more use.
    ///
    /// # Errors
    /// A server that does not let us in, that proves nothing, or that is not one.
    pub fn handle<'a>(
        &mut self,
        tag: u8,
        body: &'a [u8],
        channel: Channel<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Heard<'a>, LoginError> {
        match tag {
            backend::AUTHENTICATION if self.phase == Phase::Starting => {
                self.authenticate(Authentication::decode(body).map_err(broken)?, channel, out)
            }
            backend::NEGOTIATE_PROTOCOL_VERSION if self.phase == Phase::Starting => {
                let offered = NegotiateProtocolVersion::decode(body).map_err(broken)?.version;
                let (oldest, newest) = self.login.versions;
                if offered < oldest || offered > newest {
                    let what = "it speaks no version of the protocol that is allowed here";
                    return Err(LoginError::Protocol(what.to_owned()));
                }
                Ok(Heard::Version(offered))
            }
            backend::BACKEND_KEY_DATA if self.phase == Phase::LetIn => {
                BackendKeyData::decode(body).map(Heard::Key).map_err(broken)
            }
            backend::PARAMETER_STATUS => ParameterStatus::decode(body).map(Heard::Setting).map_err(broken),
            backend::NOTICE_RESPONSE => Ok(Heard::Notice(body)),
            backend::READY_FOR_QUERY if self.phase == Phase::LetIn => {
                let status = TransactionStatus::decode(body).map_err(broken)?;
                self.phase = Phase::Ready;
                Ok(Heard::Ready(status))
            }
            backend::ERROR_RESPONSE => Err(LoginError::Refused { body: body.to_vec() }),
            tag => {
                let what = format!("a message of kind '{}' that has no place there", tag.escape_ascii());
                Err(LoginError::Protocol(what))
            }
        }
    }

    /// How we logged in; `None` while, and where, nothing was asked.
    pub fn method(&self) -> Option<Method> {
        self.authenticator.method()
    }

    fn authenticate(
        &mut self,
        request: Authentication<'_>,
        channel: Channel<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Heard<'static>, LoginError> {
        match request {
            Authentication::Ok => {
                self.authenticator.finish()?;
                self.phase = Phase::LetIn;
                Ok(Heard::LetIn)
            }
            Authentication::SaslFinal(proof) => self.authenticator.check(proof).map(|()| Heard::Proof),
            question => self.authenticator.answer(question, channel, out).map(|()| Heard::Question),
        }
    }
}

fn broken(error: WireError) -> LoginError {
    LoginError::Protocol(error.to_string())
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::PROTOCOL_3_0;

    use super::*;

    fn started() -> (Dialogue, Vec<u8>) {
        let login = Login {
            user: "ann".to_owned(),
            password: None,
            parameters: vec![("database".to_owned(), "shop".to_owned())],
            versions: (PROTOCOL_3_0, PROTOCOL_3_0),
            require_auth: RequireAuth::default(),
            channel_binding: ChannelBinding::Prefer,
        };
        let mut out = Vec::new();
        (Dialogue::start(login, &mut out), out)
    }

    fn hear<'a>(dialogue: &mut Dialogue, tag: u8, body: &'a [u8]) -> Result<Heard<'a>, LoginError> {
        let mut out = Vec::new();
        let heard = dialogue.handle(tag, body, Channel::Plain, &mut out);
        assert!(out.is_empty(), "nothing was asked");
        heard
    }

    const LET_IN: &[u8] = b"\0\0\0\0";

    #[test]
    fn a_login_without_a_password_tells_what_the_server_tells() {
        let (mut dialogue, packet) = started();
        assert_eq!(&packet[8..], b"user\0ann\0database\0shop\0\0");
        assert_eq!(hear(&mut dialogue, b'R', LET_IN), Ok(Heard::LetIn));
        let version = ParameterStatus { name: b"server_version", value: b"18.1" };
        assert_eq!(hear(&mut dialogue, b'S', b"server_version\x0018.1\0"), Ok(Heard::Setting(version)));
        let key = BackendKeyData { process_id: 7, key: b"abcd" };
        assert_eq!(hear(&mut dialogue, b'K', b"\0\0\0\x07abcd"), Ok(Heard::Key(key)));
        assert_eq!(hear(&mut dialogue, b'N', b"SNOTICE\0\0"), Ok(Heard::Notice(b"SNOTICE\0\0")));
        assert_eq!(hear(&mut dialogue, b'Z', b"I"), Ok(Heard::Ready(TransactionStatus::Idle)));
        assert_eq!(dialogue.method(), None);
    }

    #[test]
    fn messages_out_of_turn_are_refused() {
        for (tag, body) in
            [(b'Z', &b"I"[..]), (b'K', b"\0\0\0\x07abcd"), (b'D', b""), (b'v', b"\0\x03\0\x02")]
        {
            let (mut dialogue, _) = started();
            let heard = hear(&mut dialogue, tag, body);
            assert!(matches!(heard, Err(LoginError::Protocol(_))), "{tag}: {heard:?}");
        }
        let (mut dialogue, _) = started();
        hear(&mut dialogue, b'R', LET_IN).unwrap();
        assert!(matches!(hear(&mut dialogue, b'R', LET_IN), Err(LoginError::Protocol(_))), "let in twice");
    }

    #[test]
    fn a_refusal_is_told_as_it_came() {
        let (mut dialogue, _) = started();
        let body = b"SFATAL\0C28000\0Mno\0\0";
        assert_eq!(hear(&mut dialogue, b'E', body), Err(LoginError::Refused { body: body.to_vec() }));
    }

    #[test]
    fn a_version_that_is_not_allowed_ends_the_login() {
        let (mut dialogue, _) = started();
        let newer = b"\0\x03\0\x02\0\0\0\0";
        assert!(matches!(hear(&mut dialogue, b'v', newer), Err(LoginError::Protocol(_))));
        let (mut dialogue, _) = started();
        let same = b"\0\x03\0\0\0\0\0\0";
        assert_eq!(hear(&mut dialogue, b'v', same), Ok(Heard::Version(PROTOCOL_3_0)));
    }
}
