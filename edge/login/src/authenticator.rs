use std::fmt;

use onetrip_target::{RequireAuth, Secret};
use onetrip_wire::pg::{
    Authentication, check_scram_iterations, encode_password, encode_sasl_initial, encode_sasl_response,
};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as ScramBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use crate::{Channel, Login, LoginError, end_point};

/// libpq's `channel_binding`: whether SCRAM is bound to the TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server offers it.
    #[default]
    Prefer,
    /// No other login will do.
    Require,
}

/// A way of showing that one knows the password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The password as it is.
    Cleartext,
    /// Its MD5 form.
    Md5,
    /// SCRAM-SHA-256, with or without channel binding.
    Scram,
}

impl Method {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cleartext => "cleartext",
            Self::Md5 => "MD5",
            Self::Scram => "SCRAM-SHA-256",
        }
    }

    /// What `require_auth` calls it.
    fn keyword(self) -> &'static str {
        match self {
            Self::Cleartext => "password",
            Self::Md5 => "md5",
            Self::Scram => "scram-sha-256",
        }
    }

    /// Whether the password is hashed, which takes a while.
    pub fn hashes(self) -> bool {
        self != Self::Cleartext
    }
}

/// Answers a server's questions about who we are.
pub(crate) struct Authenticator {
    user: String,
    password: Option<Secret>,
    required: RequireAuth,
    binding: ChannelBinding,
    state: State,
}

enum State {
    Unasked,
    /// The password was sent.
    Sent(Method),
    Scram {
        exchange: Box<ScramSha256>,
        is_bound: bool,
    },
    /// The server has proved that it knows the password too.
    ScramDone {
        is_bound: bool,
    },
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authenticator").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Authenticator {
    pub(crate) fn new(login: &Login) -> Self {
        Self {
            user: login.user.clone(),
            // libpq takes an empty password for none.
            password: login.password.clone().filter(|password| !password.reveal().is_empty()),
            required: login.require_auth.clone(),
            binding: login.channel_binding,
            state: State::Unasked,
        }
    }

    pub(crate) fn method(&self) -> Option<Method> {
        match self.state {
            State::Unasked => None,
            State::Sent(method) => Some(method),
            State::Scram { .. } | State::ScramDone { .. } => Some(Method::Scram),
        }
    }

    /// Appends what answers a question.
    pub(crate) fn answer(
        &mut self,
        question: Authentication<'_>,
        channel: Channel<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginError> {
        match (question, &mut self.state) {
            (Authentication::CleartextPassword, State::Unasked) => {
                encode_password(out, self.password(Method::Cleartext)?.as_bytes());
                self.state = State::Sent(Method::Cleartext);
            }
            (Authentication::Md5Password { salt }, State::Unasked) => {
                let hash = md5_hash(self.user.as_bytes(), self.password(Method::Md5)?.as_bytes(), salt);
                encode_password(out, hash.as_bytes());
                self.state = State::Sent(Method::Md5);
            }
            (Authentication::Sasl { .. }, State::Unasked) => self.begin_scram(question, channel, out)?,
            (Authentication::SaslContinue(data), State::Scram { exchange, .. }) => {
                check_scram_iterations(data).map_err(|what| LoginError::Protocol(what.to_owned()))?;
                exchange.update(data).map_err(|error| LoginError::Protocol(error.to_string()))?;
                encode_sasl_response(out, exchange.message());
            }
            (Authentication::Other { kind, .. }, State::Unasked) => {
                return Err(LoginError::Unsupported { method: Authentication::kind_name(kind) });
            }
            _ => return Err(second_question()),
        }
        Ok(())
    }

    /// Checks the server's proof that it knows the password too.
    pub(crate) fn check(&mut self, proof: &[u8]) -> Result<(), LoginError> {
        let State::Scram { exchange, is_bound } = &mut self.state else { return Err(second_question()) };
        exchange.finish(proof).map_err(|_| LoginError::Impostor)?;
        self.state = State::ScramDone { is_bound: *is_bound };
        Ok(())
    }

    /// Checks that being let in is enough.
    pub(crate) fn finish(&self) -> Result<(), LoginError> {
        let is_bound = match self.state {
            State::Scram { .. } => return Err(LoginError::Impostor),
            State::Unasked if !self.required.allows("none") => {
                return Err(LoginError::Forbidden { method: "no password", setting: REQUIRE_AUTH });
            }
            State::Unasked | State::Sent(_) => false,
            State::ScramDone { is_bound } => is_bound,
        };
        self.check_bound(is_bound)
    }

    fn begin_scram(
        &mut self,
        question: Authentication<'_>,
        channel: Channel<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), LoginError> {
        let offers = |wanted: &str| question.mechanisms().any(|name| name == wanted.as_bytes());
        let (has_tls, certificate) = match channel {
            Channel::Plain => (false, None),
            Channel::Tls { certificate } => (true, certificate),
        };
        let wants_binding = has_tls && self.binding != ChannelBinding::Disable;
        let can_bind = wants_binding && offers(SCRAM_SHA_256_PLUS);
        let end_point = certificate.filter(|_| can_bind).and_then(end_point::hash);
        let is_bound = end_point.is_some();
        self.check_bound(is_bound)?;
        if !is_bound && !offers(SCRAM_SHA_256) {
            let names: Vec<_> = question.mechanisms().map(printable).collect();
            return Err(LoginError::Unsupported { method: names.join(", ") });
        }
        let password = self.password(Method::Scram)?;
        let (mechanism, binding) = match end_point {
            Some(hash) => (SCRAM_SHA_256_PLUS, ScramBinding::tls_server_end_point(hash)),
            // "We could, you did not offer": a man in the middle who took the offer away is found out.
            None if wants_binding && !offers(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256, ScramBinding::unrequested())
            }
            None => (SCRAM_SHA_256, ScramBinding::unsupported()),
        };
        let exchange = Box::new(ScramSha256::new(password.as_bytes(), binding));
        encode_sasl_initial(out, mechanism.as_bytes(), exchange.message());
        self.state = State::Scram { exchange, is_bound };
        Ok(())
    }

    fn check_bound(&self, is_bound: bool) -> Result<(), LoginError> {
        if self.binding == ChannelBinding::Require && !is_bound {
            let method = "a login that is not bound to TLS";
            return Err(LoginError::Forbidden { method, setting: REQUIRED_BINDING });
        }
        Ok(())
    }

    fn password(&self, method: Method) -> Result<&str, LoginError> {
        let name = method.name();
        if !self.required.allows(method.keyword()) {
            return Err(LoginError::Forbidden { method: name, setting: REQUIRE_AUTH });
        }
        if self.binding == ChannelBinding::Require && method != Method::Scram {
            return Err(LoginError::Forbidden { method: name, setting: REQUIRED_BINDING });
        }
        self.password.as_ref().map(Secret::reveal).ok_or(LoginError::NoPassword { method: name })
    }
}

const REQUIRE_AUTH: &str = "require_auth";
const REQUIRED_BINDING: &str = "channel_binding=require";

fn second_question() -> LoginError {
    LoginError::Protocol("a second question about the password".to_owned())
}

/// A stranger's word without what could command a terminal.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::PROTOCOL_3_0;

    use super::*;

    fn login_with(password: Option<&str>, required: &str, channel_binding: ChannelBinding) -> Authenticator {
        Authenticator::new(&Login {
            user: "ann".to_owned(),
            password: password.map(Secret::new),
            parameters: Vec::new(),
            versions: (PROTOCOL_3_0, PROTOCOL_3_0),
            require_auth: RequireAuth::parse(required),
            channel_binding,
        })
    }

    fn login(required: &str, binding: ChannelBinding) -> Authenticator {
        login_with(Some("secret"), required, binding)
    }

    fn answer(
        login: &mut Authenticator,
        question: Authentication<'_>,
        channel: Channel<'_>,
    ) -> Result<Vec<u8>, LoginError> {
        let mut out = Vec::new();
        login.answer(question, channel, &mut out).map(|()| out)
    }

    const BOTH: Authentication<'_> =
        Authentication::Sasl { mechanisms: b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0" };
    const UNBOUND: Authentication<'_> = Authentication::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" };
    const CLEARTEXT: Authentication<'_> = Authentication::CleartextPassword;
    const CERTIFICATE: &[u8] = include_bytes!("../tests/certificate.der");
    const TLS: Channel<'_> = Channel::Tls { certificate: Some(CERTIFICATE) };

    #[test]
    fn scram_is_bound_to_tls_where_both_can() {
        let bound = answer(&mut login("", ChannelBinding::Prefer), BOTH, TLS).unwrap();
        assert!(bound[5..].starts_with(b"SCRAM-SHA-256-PLUS\0"));
        assert!(bound[28..].starts_with(b"p=tls-server-end-point,,"), "{bound:?}");
        let stripped = answer(&mut login("", ChannelBinding::Prefer), UNBOUND, TLS).unwrap();
        assert!(stripped[23..].starts_with(b"y,,"), "{stripped:?}");
        for (binding, channel) in [(ChannelBinding::Prefer, Channel::Plain), (ChannelBinding::Disable, TLS)] {
            let plain = answer(&mut login("", binding), BOTH, channel).unwrap();
            assert!(plain[5..].starts_with(b"SCRAM-SHA-256\0"), "{plain:?}");
            assert!(plain[23..].starts_with(b"n,,"), "{plain:?}");
        }
    }

    #[test]
    fn required_binding_accepts_nothing_else() {
        let required = || login("", ChannelBinding::Require);
        assert!(answer(&mut required(), UNBOUND, TLS).is_err());
        assert!(answer(&mut required(), BOTH, Channel::Plain).is_err());
        assert!(answer(&mut required(), CLEARTEXT, TLS).is_err());
        assert!(required().finish().is_err(), "let in without being asked");
    }

    #[test]
    fn each_method_has_its_answer() {
        let mut plain = login("", ChannelBinding::Prefer);
        assert_eq!(answer(&mut plain, CLEARTEXT, Channel::Plain).unwrap(), b"p\0\0\0\x0bsecret\0");
        let mut hashed = login("", ChannelBinding::Prefer);
        let question = Authentication::Md5Password { salt: *b"salt" };
        let hash = answer(&mut hashed, question, Channel::Plain).unwrap();
        assert_eq!((hash[0], hash.len(), &hash[5..8]), (b'p', 5 + 35 + 1, &b"md5"[..]));
    }

    #[test]
    fn a_password_is_sent_once_and_in_an_allowed_way_only() {
        let mut twice = login("", ChannelBinding::Prefer);
        answer(&mut twice, CLEARTEXT, Channel::Plain).unwrap();
        assert!(answer(&mut twice, CLEARTEXT, Channel::Plain).is_err());
        for (required, is_allowed) in
            [("scram-sha-256", false), ("md5,password", true), ("!password", false), ("!md5", true)]
        {
            let mut login = login(required, ChannelBinding::Prefer);
            assert_eq!(answer(&mut login, CLEARTEXT, Channel::Plain).is_ok(), is_allowed, "{required}");
        }
        assert!(login("password", ChannelBinding::Prefer).finish().is_err());
    }

    #[test]
    fn a_server_that_proves_nothing_is_not_believed() {
        let mut scram = login("", ChannelBinding::Prefer);
        answer(&mut scram, UNBOUND, Channel::Plain).unwrap();
        assert_eq!(scram.finish(), Err(LoginError::Impostor));
        assert!(login("", ChannelBinding::Prefer).check(b"v=proof").is_err(), "nobody asked for it");
    }

    #[test]
    fn a_missing_password_is_told_with_its_method() {
        for password in [None, Some("")] {
            let mut login = login_with(password, "", ChannelBinding::Prefer);
            let told = answer(&mut login, CLEARTEXT, Channel::Plain);
            assert_eq!(told, Err(LoginError::NoPassword { method: "cleartext" }));
        }
    }
}
