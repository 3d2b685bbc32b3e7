use std::fmt;

use onetrip_target::passfile::PassfileError;
use onetrip_target::{RequireAuth, Secret, Settings};
use onetrip_wire::pg::{
    Authentication, check_scram_iterations, encode_password, encode_sasl_initial, encode_sasl_response,
};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::error::PingError;

const CLEARTEXT: &str = "cleartext password";

/// Answers a server's questions about who we are.
pub(super) struct Authenticator {
    user: String,
    password: Option<Secret>,
    /// Whether the password was written out, and not found in the password file.
    written_out: bool,
    required: RequireAuth,
    unusable: Option<PassfileError>,
    state: State,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authenticator").field("method", &self.method()).finish_non_exhaustive()
    }
}

enum State {
    /// Nothing was asked.
    Unasked,
    /// The password was sent, in the way that has this name.
    Sent(&'static str),
    Scram(Box<ScramSha256>),
    /// The server has proved that it knows the password too.
    ScramDone,
}

impl Authenticator {
    pub(super) fn new(
        user: String,
        password: Option<Secret>,
        written_out: bool,
        extra: &Settings,
        unusable: Option<PassfileError>,
    ) -> Result<Self, PingError> {
        if extra.get("channel_binding") == Some("require") {
            return Err(PingError::ChannelBinding);
        }
        let required = RequireAuth::parse(extra.get_nonempty("require_auth").unwrap_or_default());
        // libpq takes an empty password for none.
        let password = password.filter(|password| !password.reveal().is_empty());
        Ok(Self { user, password, written_out, required, unusable, state: State::Unasked })
    }

    /// How we logged in; `None` where nothing was asked.
    pub(super) fn method(&self) -> Option<&'static str> {
        match self.state {
            State::Unasked => None,
            State::Sent(method) => Some(method),
            State::Scram(_) | State::ScramDone => Some("SCRAM-SHA-256"),
        }
    }

    /// Whether the password is hashed, which takes a while.
    pub(super) fn hashes(&self) -> bool {
        !matches!(self.state, State::Unasked | State::Sent(CLEARTEXT))
    }

    /// Where the password came from; `None` where there is none.
    pub(super) fn password_origin(&self) -> Option<&'static str> {
        let origin =
            if self.written_out { "the URL, PGPASSWORD or the service file" } else { "the password file" };
        self.password.as_ref().map(|_| origin)
    }

    /// The message that answers a request; `None` where nothing is to be said.
    pub(super) fn answer(
        &mut self,
        request: Authentication<'_>,
        host: &str,
    ) -> Result<Option<Vec<u8>>, PingError> {
        let nonsense = |what: &str| PingError::Protocol { host: host.to_owned(), what: what.to_owned() };
        let mut answer = Vec::new();
        match (request, &mut self.state) {
            (Authentication::Ok, _) => {}
            (Authentication::CleartextPassword, State::Unasked) => {
                encode_password(&mut answer, self.password(host, "password", "cleartext")?.as_bytes());
                self.state = State::Sent(CLEARTEXT);
            }
            (Authentication::Md5Password { salt }, State::Unasked) => {
                let password = self.password(host, "md5", "MD5")?;
                let hash = md5_hash(self.user.as_bytes(), password.as_bytes(), salt);
                encode_password(&mut answer, hash.as_bytes());
                self.state = State::Sent("MD5");
            }
            (Authentication::Sasl { .. }, State::Unasked) => {
                if !request.mechanisms().any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    let asked =
                        request.mechanisms().map(super::error::printable).collect::<Vec<_>>().join(", ");
                    return Err(PingError::Unsupported { host: host.to_owned(), method: asked });
                }
                let password = self.password(host, "scram-sha-256", "SCRAM-SHA-256")?;
                // Without a word about channel binding, which the server accepts over TLS too.
                let scram = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
                encode_sasl_initial(&mut answer, SCRAM_SHA_256.as_bytes(), scram.message());
                self.state = State::Scram(Box::new(scram));
            }
            (Authentication::SaslContinue(data), State::Scram(scram)) => {
                check_scram_iterations(data).map_err(nonsense)?;
                scram.update(data).map_err(|error| nonsense(&error.to_string()))?;
                encode_sasl_response(&mut answer, scram.message());
            }
            (Authentication::SaslFinal(data), State::Scram(scram)) => {
                if scram.finish(data).is_err() {
                    return Err(PingError::Impostor { host: host.to_owned() });
                }
                self.state = State::ScramDone;
            }
            (Authentication::Other { kind, .. }, State::Unasked) => {
                let method = Authentication::kind_name(kind);
                return Err(PingError::Unsupported { host: host.to_owned(), method });
            }
            _ => return Err(nonsense("a second question about the password")),
        }
        Ok(Some(answer).filter(|answer| !answer.is_empty()))
    }

    /// Checks that being let in is enough.
    pub(super) fn finish(&self, host: &str) -> Result<(), PingError> {
        match self.state {
            State::Scram(_) => Err(PingError::Impostor { host: host.to_owned() }),
            State::Unasked => self.check_allowed("none", "no password", host),
            State::Sent(_) | State::ScramDone => Ok(()),
        }
    }

    fn check_allowed(&self, method: &str, name: &'static str, host: &str) -> Result<(), PingError> {
        match self.required.allows(method) {
            true => Ok(()),
            false => Err(PingError::Forbidden { host: host.to_owned(), method: name }),
        }
    }

    fn password(&self, host: &str, method: &'static str, name: &'static str) -> Result<&str, PingError> {
        self.check_allowed(method, name, host)?;
        match &self.password {
            Some(password) => Ok(password.reveal()),
            None => Err(PingError::NoPassword {
                host: host.to_owned(),
                user: self.user.clone(),
                method: name,
                unusable: self.unusable.as_ref().map(ToString::to_string),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authenticator(password: Option<&str>, extra: &str) -> Result<Authenticator, PingError> {
        let extra = if extra.is_empty() { Settings::default() } else { Settings::parse(extra).unwrap() };
        Authenticator::new("ann".to_owned(), password.map(Secret::new), true, &extra, None)
    }

    #[test]
    fn each_method_has_its_answer() {
        let mut plain = authenticator(Some("secret"), "").unwrap();
        let answer = plain.answer(Authentication::CleartextPassword, "db").unwrap();
        assert_eq!(answer.as_deref(), Some(&b"p\0\0\0\x0bsecret\0"[..]));
        let mut hashed = authenticator(Some("secret"), "").unwrap();
        let answer = hashed.answer(Authentication::Md5Password { salt: *b"salt" }, "db").unwrap().unwrap();
        assert_eq!((answer[0], answer.len(), &answer[5..8]), (b'p', 5 + 35 + 1, &b"md5"[..]));
        let mut scram = authenticator(Some("secret"), "").unwrap();
        let offer = Authentication::Sasl { mechanisms: b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0" };
        let answer = scram.answer(offer, "db").unwrap().unwrap();
        assert!(answer[5..].starts_with(b"SCRAM-SHA-256\0"), "{answer:?}");
        assert_eq!(&answer[23..26], b"n,,", "{answer:?}");
    }

    #[test]
    fn a_password_is_sent_once_and_in_an_allowed_way_only() {
        let mut twice = authenticator(Some("secret"), "").unwrap();
        twice.answer(Authentication::CleartextPassword, "db").unwrap();
        assert!(twice.answer(Authentication::CleartextPassword, "db").is_err());
        for (required, is_allowed) in
            [("scram-sha-256", false), ("md5,password", true), ("!password", false), ("!md5", true)]
        {
            let mut login = authenticator(Some("secret"), &format!("require_auth={required}")).unwrap();
            let answer = login.answer(Authentication::CleartextPassword, "db");
            assert_eq!(answer.is_ok(), is_allowed, "{required}");
        }
        assert!(authenticator(None, "require_auth=password").unwrap().finish("db").is_err());
        assert!(authenticator(None, "channel_binding=require").is_err());
    }

    #[test]
    fn a_server_that_proves_nothing_is_not_believed() {
        let mut login = authenticator(Some("secret"), "").unwrap();
        login.answer(Authentication::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" }, "db").unwrap();
        assert!(matches!(login.finish("db"), Err(PingError::Impostor { .. })));
    }

    #[test]
    fn a_missing_password_is_told_with_its_method() {
        for password in [None, Some("")] {
            let mut login = authenticator(password, "").unwrap();
            let error = login.answer(Authentication::CleartextPassword, "db").unwrap_err();
            assert!(matches!(error, PingError::NoPassword { method: "cleartext", .. }), "{error}");
        }
    }
}
