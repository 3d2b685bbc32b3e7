//! TLS with a server that greets in the clear: the greeting goes to the client, and the client's login waits until TLS is
//! there. What is asked for, and whether it can be, is the session's to say. By a Unix socket there is no TLS, and a password needs
//! the gateway's key as well.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use onetrip_session::{Hello, MysqlSession, TlsOffer, Verdict};
use onetrip_target::Host;
use onetrip_target::tls::TlsPlan;
use tokio::time::timeout;

use crate::GatewayError;
use crate::channel::HandshakeError;
use crate::dial::{Upstream, write_all};
use crate::error::{client_failed, server_failed, with_causes};
use crate::leg::Leg;
use crate::opening::{Opening, read, send};

/// How long a client may take for its login, as a server's `connect_timeout` and more.
const LOGIN_MAX: Duration = Duration::from_secs(60);

/// Whom TLS is spoken with, and how.
struct Securing<'u> {
    plan: &'u TlsPlan,
    host: &'u Host,
    patience: Duration,
}

impl Opening<MysqlSession> {
    /// Dials the server, and speaks TLS with it where the settings say so.
    pub(crate) async fn dial_and_secure(&mut self) -> Result<(Leg, Upstream), GatewayError> {
        let (mut server, upstream) = self.dial().await?;
        self.session.connected(self.shared.now());
        self.secure(&mut server, &upstream).await?;
        Ok((server, upstream))
    }

    /// Speaks TLS with the server where the settings say so. The client's login is left to the worker. A client that leaves
    /// before it, or a server that will not have it, is left to the worker as well.
    async fn secure(&mut self, server: &mut Leg, upstream: &Upstream) -> Result<(), GatewayError> {
        let Some(plan) = upstream.plan_after_greeting() else {
            if !upstream.host().is_unix() || !self.client.is_tcp() {
                return Ok(());
            }
            // A server that is late is left to the worker.
            return timeout(upstream.patience(), self.lend_key(server)).await.unwrap_or(Ok(()));
        };
        let with = Securing { plan, host: upstream.host(), patience: upstream.patience() };
        let greeted = match timeout(with.patience, self.is_tls_offered(server, &with)).await {
            Ok(greeted) => greeted,
            Err(_) => Err(with.late()),
        };
        match greeted {
            Ok(true) => self.agree(server, &with).await,
            Ok(false) => Ok(()),
            Err(error) => Err(self.refuse_unreached(error)),
        }
    }

    /// Passes the greeting on, and prepares for a login whose password the server wants itself.
    async fn lend_key(&mut self, server: &mut Leg) -> Result<(), GatewayError> {
        loop {
            match MysqlSession::tls_offer(self.down.undecided()) {
                TlsOffer::Wait => {}
                TlsOffer::Yes | TlsOffer::No => break,
                TlsOffer::Refused | TlsOffer::Unknown => return Ok(()),
            }
            self.down.grow_if_full();
            match poll_fn(|cx| read(server, &mut self.down, cx)).await.map_err(server_failed)? {
                0 => return Ok(()),
                count => self.down.filled(count),
            }
        }
        self.session.lend_key(Arc::clone(&self.shared.password_key) as _);
        self.pass_greeting().await
    }

    /// Passes what the server has said on to the client. If that may lead to an encrypted password, the key is made meanwhile.
    async fn pass_greeting(&mut self) -> Result<(), GatewayError> {
        let now = self.shared.now();
        while !self.down.undecided().is_empty() {
            match self.session.handle_server(now, self.down.undecided()) {
                Verdict::Replace(bytes) => self.down.drop_undecided(bytes),
                Verdict::Forward(bytes) => self.down.forward(bytes),
                Verdict::Wait | Verdict::Hold => break,
            }
            self.down.insert(self.session.to_client());
        }
        if self.session.may_need_key() {
            self.shared.password_key.make_ahead();
        }
        poll_fn(|cx| send(&mut self.client, &mut self.down, cx)).await.map_err(client_failed)
    }

    /// Reads the greeting, without passing it on.
    async fn is_tls_offered(&mut self, server: &mut Leg, with: &Securing<'_>) -> Result<bool, GatewayError> {
        loop {
            let may_be_plain = with.plan.may_be_plain();
            match MysqlSession::tls_offer(self.down.undecided()) {
                TlsOffer::Yes => return Ok(true),
                TlsOffer::Refused => return Ok(false),
                TlsOffer::No | TlsOffer::Unknown if may_be_plain => return Ok(false),
                TlsOffer::No => return Err(with.plan_says_no()),
                TlsOffer::Unknown => return Err(with.failed("it does not greet as MySQL and MariaDB do")),
                TlsOffer::Wait => {}
            }
            self.down.grow_if_full();
            match poll_fn(|cx| read(server, &mut self.down, cx)).await.map_err(server_failed)? {
                0 if may_be_plain => return Ok(false),
                0 => return Err(with.failed("it closed the connection without a greeting")),
                count => self.down.filled(count),
            }
        }
    }

    /// Passes the greeting on, and begins TLS once the client logs in.
    async fn agree(&mut self, server: &mut Leg, with: &Securing<'_>) -> Result<(), GatewayError> {
        self.session.secure(Arc::clone(&self.shared.password_key) as _);
        self.pass_greeting().await?;
        let Some(request) = timeout(LOGIN_MAX, self.request()).await.unwrap_or(Ok(None))? else {
            return Err(client_failed(io::ErrorKind::UnexpectedEof.into()));
        };
        match timeout(with.patience, with.shake_hands(server, &request))
            .await
            .unwrap_or_else(|_| Err(with.late()))
        {
            Ok(()) => {
                self.session.tls_began(self.shared.now(), &request);
                Ok(())
            }
            Err(error) => Err(self.refuse_unreached(error)),
        }
    }

    /// What begins TLS with the server for the client that logs in; `None` for one that leaves, or cannot log in so.
    async fn request(&mut self) -> Result<Option<Vec<u8>>, GatewayError> {
        loop {
            match self.session.hello(self.shared.now(), self.up.undecided()) {
                Hello::Request(request) => return Ok(Some(request)),
                Hello::Refused => return Ok(None),
                Hello::Wait => {}
            }
            match poll_fn(|cx| read(&mut self.client, &mut self.up, cx)).await.map_err(client_failed)? {
                0 => return Ok(None),
                count => self.up.filled(count),
            }
        }
    }
}

impl Securing<'_> {
    async fn shake_hands(&self, server: &mut Leg, request: &[u8]) -> Result<(), GatewayError> {
        let tls = self.plan.start(self.host)?;
        write_all(server, request).await.map_err(|error| self.failed(&error.to_string()))?;
        server.begin_tls(tls).await.map_err(|error| match error {
            HandshakeError::Tls(error) => {
                GatewayError::Dial(with_causes(&self.plan.explain(self.host, error)))
            }
            HandshakeError::Io(error) => self.failed(&error.to_string()),
        })
    }

    fn plan_says_no(&self) -> GatewayError {
        GatewayError::Dial(self.plan.refused_by_server(self.host).to_string())
    }

    fn late(&self) -> GatewayError {
        self.failed(&format!("no answer within {} s", self.patience.as_secs()))
    }

    fn failed(&self, what: &str) -> GatewayError {
        GatewayError::Dial(format!("connection to server at {} failed: {what}", self.host))
    }
}
