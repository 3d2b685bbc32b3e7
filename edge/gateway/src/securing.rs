//! The greeting of a server that speaks first, and TLS behind it. It has as long to come as the server has to be reached. With
//! TLS the greeting goes to the client, and the client's login waits until TLS is
//! there. What is asked for, and whether it can be, is the session's to say. By a Unix socket there is no TLS, and a password needs
//! the gateway's key as well.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Poll, ready};
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

/// How the wait for a greeting ended.
enum Greeting {
    Offers(TlsOffer),
    ServerLeft,
    ClientLeft,
}

/// What comes after the greeting.
enum Next<'u> {
    Tls(&'u TlsPlan),
    Plain,
    /// There is nothing to agree on.
    End,
}

/// Whom TLS is spoken with, and how; without a plan it is not.
struct Securing<'u> {
    plan: Option<&'u TlsPlan>,
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

    /// Waits for the greeting, and speaks TLS with the server where the settings say so. The client's login is left to the worker.
    /// A client that leaves before it, or a server that will not have it, is left to the worker as well.
    async fn secure(&mut self, server: &mut Leg, upstream: &Upstream) -> Result<(), GatewayError> {
        let with = Securing {
            plan: upstream.plan_after_greeting(),
            host: upstream.host(),
            patience: upstream.patience(),
        };
        let greeting = match timeout(with.patience, self.greeting(server)).await {
            Ok(greeting) => greeting?,
            Err(_) => return Err(self.refuse_unreached(with.late())),
        };
        match with.next(greeting) {
            Ok(Next::Tls(plan)) => self.agree(server, &with, plan).await,
            Ok(Next::Plain) if upstream.host().is_unix() && self.client.is_tcp() => self.lend_key().await,
            Ok(Next::Plain | Next::End) => Ok(()),
            Err(error) => Err(self.refuse_unreached(error)),
        }
    }

    /// Reads the greeting, without passing it on.
    async fn greeting(&mut self, server: &mut Leg) -> Result<Greeting, GatewayError> {
        loop {
            match MysqlSession::tls_offer(self.down.undecided()) {
                TlsOffer::Wait => {}
                offer => return Ok(Greeting::Offers(offer)),
            }
            self.down.grow_if_full();
            let end = poll_fn(|cx| -> Poll<Result<_, GatewayError>> {
                // Who has sent something has not left. That is rare: the server speaks first.
                if self.up.undecided().is_empty() {
                    if let Poll::Ready(count) = read(&mut self.client, &mut self.up, cx) {
                        let count = count.map_err(client_failed)?;
                        self.up.filled(count);
                        return Poll::Ready(Ok((count == 0).then_some(Greeting::ClientLeft)));
                    }
                }
                let count = ready!(read(server, &mut self.down, cx)).map_err(server_failed)?;
                self.down.filled(count);
                Poll::Ready(Ok((count == 0).then_some(Greeting::ServerLeft)))
            });
            if let Some(end) = end.await? {
                return Ok(end);
            }
        }
    }

    /// Passes the greeting on, and prepares for a login whose password the server wants itself.
    async fn lend_key(&mut self) -> Result<(), GatewayError> {
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

    /// Passes the greeting on, and begins TLS once the client logs in.
    async fn agree(
        &mut self,
        server: &mut Leg,
        with: &Securing<'_>,
        plan: &TlsPlan,
    ) -> Result<(), GatewayError> {
        self.session.secure(Arc::clone(&self.shared.password_key) as _);
        self.pass_greeting().await?;
        let Some(request) = timeout(LOGIN_MAX, self.request()).await.unwrap_or(Ok(None))? else {
            return Err(client_failed(io::ErrorKind::UnexpectedEof.into()));
        };
        let shaken = timeout(with.patience, with.shake_hands(plan, server, &request)).await;
        match shaken.unwrap_or_else(|_| Err(with.late())) {
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

impl<'u> Securing<'u> {
    fn next(&self, greeting: Greeting) -> Result<Next<'u>, GatewayError> {
        let Some(plan) = self.plan else {
            let is_known = matches!(greeting, Greeting::Offers(TlsOffer::Yes | TlsOffer::No));
            return Ok(if is_known { Next::Plain } else { Next::End });
        };
        match greeting {
            Greeting::Offers(TlsOffer::Yes) => Ok(Next::Tls(plan)),
            Greeting::Offers(TlsOffer::Refused) | Greeting::ClientLeft => Ok(Next::End),
            Greeting::Offers(_) | Greeting::ServerLeft if plan.may_be_plain() => Ok(Next::End),
            Greeting::Offers(TlsOffer::No) => {
                Err(GatewayError::Dial(plan.refused_by_server(self.host).to_string()))
            }
            Greeting::Offers(_) => Err(self.failed("it does not greet as MySQL and MariaDB do")),
            Greeting::ServerLeft => Err(self.failed("it closed the connection without a greeting")),
        }
    }

    async fn shake_hands(
        &self,
        plan: &TlsPlan,
        server: &mut Leg,
        request: &[u8],
    ) -> Result<(), GatewayError> {
        let tls = plan.start(self.host)?;
        write_all(server, request).await.map_err(|error| self.failed(&error.to_string()))?;
        server.begin_tls(tls).await.map_err(|error| match error {
            HandshakeError::Tls(error) => GatewayError::Dial(with_causes(&plan.explain(self.host, error))),
            HandshakeError::Io(error) => self.failed(&error.to_string()),
        })
    }

    fn late(&self) -> GatewayError {
        self.failed(&format!("no answer within {} s", self.patience.as_secs()))
    }

    fn failed(&self, what: &str) -> GatewayError {
        GatewayError::Dial(format!("connection to server at {} failed: {what}", self.host))
    }
}
