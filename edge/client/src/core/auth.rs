use std::fmt;

use onetrip_target::{RequireAuth, Secret};
use onetrip_wire::pg::{
    Authentication, check_scram_iterations, encode_password, encode_sasl_initial, encode_sasl_response,
};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use crate::ConnectError;

/// libpq's `channel_binding`: whether SCRAM is bound to the TLS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Binding {
    Disable,
    /// Where the server offers it.
    #[default]
    Prefer,
    Require,
}

/// Answers a server's questions about who we are.
pub(super) struct Authenticator {
    host: String,
    user: String,
    password: Option<Secret>,
    required: RequireAuth,
    binding: Binding,
    state: State,
}

enum State {
    Unasked,
    /// The password was sent.
    Sent,
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
    pub(super) fn new(
        host: String,
        user: String,
        password: Option<Secret>,
        required: RequireAuth,
        binding: Binding,
    ) -> Self {
        // libpq takes an empty password for none.
        let password = password.filter(|password| !password.reveal().is_empty());
        Self { host, user, password, required, binding, state: State::Unasked }
    }

    /// Appends what answers a request, if anything does. `end_point` is the hash that SCRAM can be bound to; `None`
    /// without TLS.
    pub(super) fn answer(
        &mut self,
        request: Authentication<'_>,
        has_tls: bool,
        end_point: impl FnOnce() -> Option<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectError> {
        match (request, &mut self.state) {
            (Authentication::CleartextPassword, State::Unasked) => {
                encode_password(out, self.password("password", "cleartext")?.as_bytes());
                self.state = State::Sent;
            }
            (Authentication::Md5Password { salt }, State::Unasked) => {
                let password = self.password("md5", "MD5")?;
                let hash = md5_hash(self.user.as_bytes(), password.as_bytes(), salt);
                encode_password(out, hash.as_bytes());
                self.state = State::Sent;
            }
            (Authentication::Sasl { .. }, State::Unasked) => {
                self.begin_scram(request, has_tls, end_point, out)?;
            }
            (Authentication::SaslContinue(data), State::Scram { exchange, .. }) => {
                let step = check_scram_iterations(data).map_err(str::to_owned);
                let step = step.and_then(|()| exchange.update(data).map_err(|error| error.to_string()));
                let sent = step.map(|()| encode_sasl_response(out, exchange.message()));
                sent.map_err(|what| self.nonsense(&what))?;
            }
            (Authentication::SaslFinal(data), State::Scram { exchange, is_bound }) => {
                if exchange.finish(data).is_err() {
                    return Err(ConnectError::Impostor { host: self.host.clone() });
                }
                self.state = State::ScramDone { is_bound: *is_bound };
            }
            (Authentication::Other { kind, .. }, State::Unasked) => {
                return Err(ConnectError::Unsupported {
                    host: self.host.clone(),
                    method: Authentication::kind_name(kind),
                });
            }
            _ => return Err(self.nonsense("a second question about the password")),
        }
        Ok(())
    }

    fn begin_scram(
        &mut self,
        request: Authentication<'_>,
        has_tls: bool,
        end_point: impl FnOnce() -> Option<Vec<u8>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ConnectError> {
        let offers = |wanted: &str| request.mechanisms().any(|name| name == wanted.as_bytes());
        let wants_binding = has_tls && self.binding != Binding::Disable;
        let end_point = if wants_binding && offers(SCRAM_SHA_256_PLUS) { end_point() } else { None };
        let is_bound = end_point.is_some();
        if self.binding == Binding::Require && !is_bound {
            return Err(self.forbidden("a login that is not bound to TLS", "channel_binding=require"));
        }
        if !is_bound && !offers(SCRAM_SHA_256) {
            let names = request.mechanisms().map(|name| String::from_utf8_lossy(name).into_owned());
            let method = names.collect::<Vec<_>>().join(", ");
            return Err(ConnectError::Unsupported { host: self.host.clone(), method });
        }
        let password = self.password("scram-sha-256", "SCRAM-SHA-256")?;
        let (mechanism, binding) = match end_point {
            Some(hash) => (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash)),
            // "We could, you did not offer": a man in the middle who took the offer away is found out.
            None if wants_binding && !offers(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256, ChannelBinding::unrequested())
            }
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        let exchange = Box::new(ScramSha256::new(password.as_bytes(), binding));
        encode_sasl_initial(out, mechanism.as_bytes(), exchange.message());
        self.state = State::Scram { exchange, is_bound };
        Ok(())
    }

    /// Checks that being let in is enough.
    pub(super) fn finish(&self) -> Result<(), ConnectError> {
        let is_bound = match self.state {
            State::Scram { .. } => return Err(ConnectError::Impostor { host: self.host.clone() }),
            State::Unasked if !self.required.allows("none") => {
                return Err(self.forbidden("no password", "require_auth"));
            }
            State::Unasked | State::Sent => false,
            State::ScramDone { is_bound } => is_bound,
        };
        if self.binding == Binding::Require && !is_bound {
            return Err(self.forbidden("a login that is not bound to TLS", "channel_binding=require"));
        }
        Ok(())
    }

    fn password(&self, method: &str, name: &'static str) -> Result<&str, ConnectError> {
        if !self.required.allows(method) {
            return Err(self.forbidden(name, "require_auth"));
        }
        if self.binding == Binding::Require && method != "scram-sha-256" {
            return Err(self.forbidden(name, "channel_binding=require"));
        }
        let missing = || ConnectError::NoPassword { host: self.host.clone(), method: name };
        self.password.as_ref().map(Secret::reveal).ok_or_else(missing)
    }

    fn forbidden(&self, method: &str, setting: &'static str) -> ConnectError {
        ConnectError::Forbidden { host: self.host.clone(), method: method.to_owned(), setting }
    }

    fn nonsense(&self, what: &str) -> ConnectError {
        ConnectError::Protocol { host: self.host.clone(), what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(required: &str, binding: Binding) -> Authenticator {
        let password = Some(Secret::new("secret"));
        Authenticator::new("db".to_owned(), "ann".to_owned(), password, RequireAuth::parse(required), binding)
    }

    fn answer(
        login: &mut Authenticator,
        request: Authentication<'_>,
        hash: Option<&[u8]>,
    ) -> Result<Vec<u8>, ConnectError> {
        let mut out = Vec::new();
        login.answer(request, hash.is_some(), || hash.map(<[u8]>::to_vec), &mut out).map(|()| out)
    }

    const BOTH: Authentication<'_> =
        Authentication::Sasl { mechanisms: b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0" };
    const UNBOUND: Authentication<'_> = Authentication::Sasl { mechanisms: b"SCRAM-SHA-256\0\0" };

    #[test]
    fn scram_is_bound_to_tls_where_both_can() {
        let bound = answer(&mut login("", Binding::Prefer), BOTH, Some(b"hash")).unwrap();
        assert!(bound[5..].starts_with(b"SCRAM-SHA-256-PLUS\0"));
        assert!(bound[28..].starts_with(b"p=tls-server-end-point,,"), "{bound:?}");
        let stripped = answer(&mut login("", Binding::Prefer), UNBOUND, Some(b"hash")).unwrap();
        assert!(stripped[23..].starts_with(b"y,,"), "{stripped:?}");
        let plain = answer(&mut login("", Binding::Prefer), BOTH, None).unwrap();
        assert!(plain[23..].starts_with(b"n,,"), "{plain:?}");
    }

    #[test]
    fn required_binding_accepts_nothing_else() {
        assert!(answer(&mut login("", Binding::Require), UNBOUND, Some(b"hash")).is_err());
        assert!(answer(&mut login("", Binding::Require), BOTH, None).is_err());
        assert!(
            answer(&mut login("", Binding::Require), Authentication::CleartextPassword, Some(b"h")).is_err()
        );
        assert!(login("", Binding::Require).finish().is_err(), "let in without being asked");
    }

    #[test]
    fn a_password_is_sent_once_and_in_an_allowed_way_only() {
        let mut twice = login("", Binding::Prefer);
        assert_eq!(
            answer(&mut twice, Authentication::CleartextPassword, None).unwrap(),
            b"p\0\0\0\x0bsecret\0"
        );
        assert!(answer(&mut twice, Authentication::CleartextPassword, None).is_err());
        for (required, is_allowed) in [("scram-sha-256", false), ("md5,password", true), ("!password", false)]
        {
            let answered =
                answer(&mut login(required, Binding::Prefer), Authentication::CleartextPassword, None);
            assert_eq!(answered.is_ok(), is_allowed, "{required}");
        }
        assert!(login("password", Binding::Prefer).finish().is_err());
    }

    #[test]
    fn a_server_that_proves_nothing_is_not_believed() {
        let mut scram = login("", Binding::Prefer);
        answer(&mut scram, UNBOUND, None).unwrap();
        assert!(matches!(scram.finish(), Err(ConnectError::Impostor { .. })));
    }
}
