//! How a connection begins: requests for encryption, then the startup packet or a cancel request, then the database. With
//! MySQL the database comes first, as its server greets.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use onetrip_session::{MysqlConfig, MysqlSession, Session, SessionConfig};
use onetrip_target::tls::TlsAcceptor;

use crate::GatewayError;
use crate::buffer::Buffer;
use crate::channel::HandshakeError;
use crate::conversation::Conversation;
use crate::dial::Upstream;
use crate::error::{client_failed, descriptors_hint};
use crate::leg::Leg;
use crate::notice::Peer;
use crate::overflow::TemporaryFiles;
use crate::recorder::Recorder;
use crate::shared::{Alive, Shared};
use crate::socket::Socket;

/// The first byte of a TLS handshake; a startup packet begins with a zero.
const DIRECT_TLS: u8 = 0x16;

/// A client that was accepted.
pub(crate) struct Client {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) alive: Alive,
}

/// A connection in its youth: the client has not sent its startup packet, or the database is not reached yet.
pub(crate) struct Opening<C> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) recorder: Recorder,
    pub(crate) peer: Peer,
    pub(crate) session: Box<C>,
    pub(crate) client: Leg,
    pub(crate) up: Buffer,
    pub(crate) down: Buffer,
    pub(crate) cancel_key: [u8; 4],
    pub(crate) alive: Alive,
}

/// How a client's first packets end.
pub(crate) enum Opened {
    Session,
    /// Asked for by this process id and key.
    Cancel((u32, [u8; 4])),
    Gone,
}

impl Opening<Session> {
    pub(crate) fn new(client: Client, shared: Arc<Shared>, recorder: Recorder) -> Result<Self, GatewayError> {
        let (mut cancel_key, mut private) = ([0; 4], [0; 8]);
        for random in [&mut cancel_key[..], &mut private] {
            getrandom::fill(random)
                .map_err(|error| GatewayError::Start(io::Error::other(error.to_string())))?;
        }
        let config = SessionConfig {
            hasher: shared.hasher.clone(),
            cancel_key,
            keep_values: shared.keep_values,
            remedies: shared.remedies,
            verify: shared.verify,
            lobs: Arc::clone(&shared.lobs),
            isolation: shared.isolation,
            question_burst: shared.question_burst,
            common: Arc::clone(&shared.common),
            texts: Arc::clone(&shared.texts),
            private,
            overflow: Some(Arc::new(TemporaryFiles)),
        };
        let mut session = Box::new(Session::new(config));
        let Client { socket, peer, alive } = client;
        let (client, up, down) = (Leg::plain(socket), Buffer::new(), Buffer::new());
        if shared.client_tls.is_some() && client.is_tcp() {
            session.offer_tls();
        }
        Ok(Self { shared, recorder, peer, session, client, up, down, cancel_key, alive })
    }

    /// Answers requests for encryption until the startup packet is there, or a cancel request.
    pub(crate) async fn open(&mut self) -> Result<Opened, GatewayError> {
        loop {
            self.begin_direct_tls().await?;
            let Self { session, client, up, down, shared, .. } = self;
            match session.handle_opening(shared.now(), up.undecided())? {
                onetrip_session::Opening::Wait => {
                    poll_fn(|cx| send(client, down, cx)).await.map_err(client_failed)?;
                    match poll_fn(|cx| read(client, up, cx)).await.map_err(client_failed)? {
                        0 => return Ok(Opened::Gone),
                        count => up.filled(count),
                    }
                }
                onetrip_session::Opening::Answer(bytes) => {
                    up.drop_undecided(bytes);
                    down.insert(session.to_client());
                    if session.tls_begins() {
                        poll_fn(|cx| send(client, down, cx)).await.map_err(client_failed)?;
                        self.begin_tls(&[]).await?;
                    }
                }
                onetrip_session::Opening::Connect(bytes) => {
                    up.drop_undecided(bytes);
                    down.insert(session.to_client());
                    return Ok(Opened::Session);
                }
                onetrip_session::Opening::Cancel { process_id, key, .. } => {
                    return Ok(Opened::Cancel((process_id, key)));
                }
            }
        }
    }

    /// Shakes hands with a client that begins with TLS.
    async fn begin_direct_tls(&mut self) -> Result<(), GatewayError> {
        let is_tls = self.up.undecided().first() == Some(&DIRECT_TLS);
        if !is_tls || !self.client.is_plain() || !self.client.is_tcp() {
            return Ok(());
        }
        if self.shared.client_tls.is_none() {
            return Err(GatewayError::NoTls);
        }
        let early = self.up.undecided().to_vec();
        self.up.drop_undecided(early.len());
        self.begin_tls(&early).await?;
        if self.client.has_protocol() { Ok(()) } else { Err(GatewayError::NoProtocol) }
    }

    /// Shakes hands with a client; `early` are bytes of its handshake that came already.
    async fn begin_tls(&mut self, early: &[u8]) -> Result<(), GatewayError> {
        let Some(acceptor) = &self.shared.client_tls else { return Ok(()) };
        self.client.accept_tls(acceptor, early).await.map_err(|error| match error {
            HandshakeError::Io(error) => client_failed(error),
            HandshakeError::Tls(source) => GatewayError::ClientTls { source },
        })?;
        self.session.tls_began(self.shared.now(), self.client.handshake_trips());
        Ok(())
    }

    /// What the client's TLS means for a login that is bound to it.
    pub(crate) fn reached(&mut self, server: &Leg) {
        if self.shows_certificate_of(server) {
            self.session.shows_databases_certificate();
        }
    }

    /// Whether the client's TLS shows the certificate that the database's shows.
    fn shows_certificate_of(&self, server: &Leg) -> bool {
        let own = self.shared.client_tls.as_ref().map(TlsAcceptor::certificate);
        !self.client.is_plain() && own.is_some() && own == server.peer_certificate()
    }
}

impl Opening<MysqlSession> {
    pub(crate) fn watched(client: Client, shared: Arc<Shared>, recorder: Recorder) -> Self {
        let config = MysqlConfig {
            hasher: shared.hasher.clone(),
            keep_values: shared.keep_values,
            hides_tls: shared.dialer().ends_tls(),
            common: Arc::clone(&shared.common),
            texts: Arc::clone(&shared.texts),
        };
        let session = Box::new(MysqlSession::new(config));
        let Client { socket, peer, alive } = client;
        let (client, up, down) = (Leg::plain(socket), Buffer::new(), Buffer::new());
        Self { shared, recorder, peer, session, client, up, down, cancel_key: [0; 4], alive }
    }
}

impl<C: Conversation> Opening<C> {
    /// Connects to the database; a failure is told to the client in words that its driver shows.
    pub(crate) async fn dial(&mut self) -> Result<(Leg, Upstream), GatewayError> {
        match self.shared.dialer().dial().await {
            Ok((leg, upstream, _)) => Ok((leg, upstream)),
            Err(GatewayError::Descriptors { source }) => {
                let message = "onetrip is out of file descriptors, so it cannot connect to the database";
                self.session.refuse("53300", message, descriptors_hint(&source).as_deref());
                Err(GatewayError::Descriptors { source })
            }
            Err(error) => Err(self.refuse_unreached(error)),
        }
    }

    /// Tells the client that the database cannot be reached.
    pub(crate) fn refuse_unreached(&mut self, error: GatewayError) -> GatewayError {
        let message = format!("onetrip cannot reach the database: {error}");
        self.session.refuse("08006", &message, Some("Check the gateway's --upstream."));
        error
    }

    pub(crate) fn refuse_for_stop(&mut self) -> GatewayError {
        self.session.refuse("57P03", "the gateway is shutting down", None);
        GatewayError::Stopping
    }

    pub(crate) async fn say_last_words(&mut self) {
        self.down.insert(self.session.to_client());
        let _ = poll_fn(|cx| send(&mut self.client, &mut self.down, cx)).await;
        let _ = poll_fn(|cx| self.client.poll_shutdown(cx)).await;
    }

    pub(crate) fn end_books(&mut self) {
        end_books(&mut *self.session, self.peer.number, &self.shared, &self.recorder);
    }
}

pub(crate) fn end_books<C: Conversation>(session: &mut C, number: u32, shared: &Shared, recorder: &Recorder) {
    if !session.has_records() {
        return;
    }
    session.close(shared.now());
    recorder.take_last(number, session.stream());
}

/// Sends what is decided; ready when all of it is sent.
pub(crate) fn send(leg: &mut Leg, buffer: &mut Buffer, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    while !buffer.is_sent() {
        let count = ready!(leg.poll_write(cx, buffer.unsent()))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        buffer.sent(count);
    }
    leg.poll_flush(cx)
}

/// Reads into a buffer, which has memory only if there is something to read.
pub(crate) fn read(leg: &mut Leg, into: &mut Buffer, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
    let read = leg.poll_read(cx, into.free());
    if read.is_pending() {
        into.rest();
    }
    read
}
