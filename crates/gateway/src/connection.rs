//! One client's connection: moves bytes between two legs as its session says.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onetrip_session::{Session, SessionConfig, Verdict};
use onetrip_target::tls::TlsAcceptor;
use tokio::time::Sleep;

use crate::GatewayError;
use crate::buffer::Buffer;
use crate::cancel::{Gate, Target};
use crate::dial::Upstream;
use crate::gateway::Shared;
use crate::leg::{HandshakeError, Leg};
use crate::recorder::Recorder;
use crate::socket::Socket;
use crate::spin::{Spinner, wake_after_a_look};

/// Records are handed on at least this often, so that a trace can be read while it is written.
const HAND_OVER: Duration = Duration::from_millis(200);
/// The kernel is asked for the path's times at most this often.
const PATH_EVERY: Duration = Duration::from_secs(1);
/// The first byte of a TLS handshake.
const DIRECT_TLS: u8 = 0x16;
/// How long a client may take for its startup packet, as PostgreSQL's `authentication_timeout`.
const OPENING_MAX: Duration = Duration::from_secs(60);

/// A connection in its middle age: both legs are there.
struct Connection {
    shared: Arc<Shared>,
    recorder: Recorder,
    number: u32,
    session: Session,
    client: Leg,
    server: Leg,
    up: Buffer,
    down: Buffer,
    client_ended: bool,
    server_ended: bool,
    server_told: bool,
    target: Option<Arc<Target>>,
    upstream: Upstream,
    cancel_key: [u8; 4],
    spinner: Spinner,
    timer: Pin<Box<Sleep>>,
    timer_armed: bool,
    /// Replies are held until then.
    settled_at: Option<Instant>,
    handed_over_at: Instant,
    path_at: Option<Instant>,
}

/// Serves one client until it is gone.
pub(crate) async fn serve(
    socket: Socket,
    number: u32,
    shared: Arc<Shared>,
    recorder: Recorder,
) -> Result<(), GatewayError> {
    let (mut cancel_key, mut private) = ([0; 4], [0; 8]);
    for random in [&mut cancel_key[..], &mut private] {
        getrandom::fill(random).map_err(|error| GatewayError::Start(io::Error::other(error.to_string())))?;
    }
    let config = SessionConfig {
        hasher: shared.hasher.clone(),
        cancel_key,
        keep_values: shared.keep_values,
        remedies: shared.remedies.clone(),
        verify: shared.verify,
        lobs: Arc::clone(&shared.lobs),
        isolation: shared.isolation,
        common: Arc::clone(&shared.common),
        private,
    };
    let mut client = Leg::plain(socket);
    let mut session = Session::new(config);
    if shared.client_tls.is_some() && client.is_tcp() {
        session.offer_tls();
    }
    let (mut up, mut down) = (Buffer::new(), Buffer::new());
    let opening = open(&mut client, &mut session, &mut up, &mut down, &shared);
    let opened = match tokio::time::timeout(OPENING_MAX, opening).await {
        Ok(Ok(Opened::Session)) => dial(&mut session, &shared).await,
        Ok(Ok(Opened::Gone)) | Err(_) => {
            // Some drivers ask for encryption on a connection of its own, and that is a trip all the same.
            end_books(&mut session, number, &shared, &recorder);
            return Ok(());
        }
        Ok(Err(error)) => Err(error),
    };
    let (server, upstream) = match opened {
        Ok(reached) => reached,
        Err(error) => {
            down.insert(session.to_client());
            let _ = poll_fn(|cx| send(&mut client, &mut down, cx)).await;
            let _ = poll_fn(|cx| client.poll_shutdown(cx)).await;
            end_books(&mut session, number, &shared, &recorder);
            return Err(error);
        }
    };
    up.insert(session.to_server());
    let own = shared.client_tls.as_ref().map(TlsAcceptor::certificate);
    if !client.is_plain() && own.is_some() && own == server.peer_certificate() {
        session.shows_databases_certificate();
    }
    let mut connection = Connection {
        spinner: Spinner::new(),
        timer: Box::pin(tokio::time::sleep(HAND_OVER)),
        timer_armed: false,
        settled_at: None,
        handed_over_at: Instant::now(),
        path_at: None,
        client_ended: false,
        server_ended: false,
        server_told: false,
        target: None,
        shared,
        recorder,
        number,
        session,
        client,
        server,
        up,
        down,
        upstream,
        cancel_key,
    };
    poll_fn(|cx| connection.poll(cx)).await
}

/// How a client's first packets end.
enum Opened {
    Session,
    Gone,
}

/// Answers requests for encryption until the startup packet is there, or carries a cancel request.
async fn open(
    client: &mut Leg,
    session: &mut Session,
    up: &mut Buffer,
    down: &mut Buffer,
    shared: &Shared,
) -> Result<Opened, GatewayError> {
    loop {
        // TLS begins with this byte, a startup packet with a zero.
        if client.is_plain() && up.undecided().first() == Some(&DIRECT_TLS) {
            if let Some(acceptor) = &shared.client_tls {
                let early = up.undecided().to_vec();
                up.drop_undecided(early.len());
                begin_tls(client, session, acceptor, &early, shared).await?;
                if !client.has_protocol() {
                    return Err(GatewayError::NoProtocol);
                }
            }
        }
        match session.handle_client(shared.now(), up.undecided())? {
            Verdict::Wait => {
                poll_fn(|cx| send(client, down, cx)).await.map_err(client_failed)?;
                match poll_fn(|cx| client.poll_read(cx, up.free())).await.map_err(client_failed)? {
                    0 => return Ok(Opened::Gone),
                    count => up.filled(count),
                }
            }
            Verdict::Replace(bytes) => {
                up.drop_undecided(bytes);
                down.insert(session.to_client());
                if let Some(acceptor) = shared.client_tls.as_ref().filter(|_| session.tls_begins()) {
                    poll_fn(|cx| send(client, down, cx)).await.map_err(client_failed)?;
                    begin_tls(client, session, acceptor, &[], shared).await?;
                }
            }
            Verdict::Connect(bytes) => {
                up.drop_undecided(bytes);
                down.insert(session.to_client());
                return Ok(Opened::Session);
            }
            Verdict::Cancel { process_id, key, .. } => {
                shared.cancels.carry((process_id, key)).await;
                return Ok(Opened::Gone);
            }
            Verdict::Forward(bytes) => up.forward(bytes),
            // Nothing waits for a server that is not there yet.
            Verdict::Hold => return Ok(Opened::Gone),
        }
    }
}

/// Shakes hands with a client.
async fn begin_tls(
    client: &mut Leg,
    session: &mut Session,
    acceptor: &TlsAcceptor,
    early: &[u8],
    shared: &Shared,
) -> Result<(), GatewayError> {
    client.accept_tls(acceptor, early).await.map_err(|error| match error {
        HandshakeError::Io(error) => client_failed(error),
        HandshakeError::Tls(source) => GatewayError::ClientTls { source },
    })?;
    session.tls_began(shared.now(), client.handshake_trips());
    Ok(())
}

/// Connects to the database; a failure is told to the client in words that its driver shows.
async fn dial(session: &mut Session, shared: &Shared) -> Result<(Leg, Upstream), GatewayError> {
    match shared.dialer().dial().await {
        Ok((leg, upstream, _)) => Ok((leg, upstream)),
        Err(error) => {
            let message = format!("onetrip cannot reach the database: {error}");
            session.refuse("08006", &message, Some("Check the gateway's --upstream."));
            Err(error)
        }
    }
}

fn end_books(session: &mut Session, number: u32, shared: &Shared, recorder: &Recorder) {
    if !session.has_records() {
        return;
    }
    session.close(shared.now());
    recorder.take_last(number, session.stream());
}

fn client_failed(source: io::Error) -> GatewayError {
    GatewayError::Socket { side: "client", source }
}

fn server_failed(source: io::Error) -> GatewayError {
    GatewayError::Socket { side: "database", source }
}

/// Sends what is decided; ready when all of it is sent.
fn send(leg: &mut Leg, buffer: &mut Buffer, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    while !buffer.is_sent() {
        let count = ready!(leg.poll_write(cx, buffer.unsent()))?;
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        buffer.sent(count);
    }
    leg.poll_flush(cx)
}

impl Connection {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        loop {
            let mut moved = self.move_up(cx)?;
            moved |= self.move_down(cx)?;
            if self.server_ended && self.down.is_sent() && self.settled_at.is_none() {
                return Poll::Ready(Ok(()));
            }
            if !moved {
                break;
            }
            let now = Instant::now();
            self.spinner.moved(now, &self.shared.spin);
            self.keep_books(now);
        }
        if let Some(target) = &self.target {
            target.turn_taken(cx);
        }
        if self.spinner.may_spin(&self.shared.spin) {
            wake_after_a_look(cx);
        } else {
            self.arm_timer(cx);
        }
        Poll::Pending
    }

    /// Client to database.
    fn move_up(&mut self, cx: &mut Context<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        if !self.client_ended && !self.session.is_full() {
            let free = self.up.free();
            if !free.is_empty() {
                match self.client.poll_read(cx, free) {
                    Poll::Ready(Ok(0)) => {
                        self.client_ended = true;
                        self.session.client_left(self.shared.now());
                        moved = true;
                    }
                    Poll::Ready(Ok(count)) => {
                        self.up.filled(count);
                        moved = true;
                    }
                    Poll::Ready(Err(error)) => return Err(client_failed(error)),
                    Poll::Pending => {}
                }
            }
        }
        moved |= self.decide_up(cx)?;
        let unsent = !self.up.is_sent();
        match send(&mut self.server, &mut self.up, cx) {
            Poll::Ready(Ok(())) => {
                moved |= unsent;
                if self.client_ended && !self.server_told && self.up.undecided().is_empty() {
                    self.server_told = true;
                    // What the server still says goes to a client that may still read.
                    let _ = self.server.poll_shutdown(cx);
                }
            }
            // A server that does not read any more may still have said why.
            Poll::Ready(Err(_)) => self.up = Buffer::new(),
            Poll::Pending => {}
        }
        Ok(moved)
    }

    fn decide_up(&mut self, cx: &mut Context<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        let mut woken_by_fence = false;
        while !self.up.undecided().is_empty() {
            if self.session.is_between_units() {
                match self.target.as_ref().map_or(Gate::Open, |target| target.gate(cx)) {
                    Gate::Open => {}
                    Gate::Held => break,
                    Gate::Lost => return Err(self.lost_cancel(cx)),
                }
            }
            let now = self.shared.now();
            match self.session.handle_client(now, self.up.undecided()) {
                Ok(Verdict::Wait) => {
                    if self.client_ended && !self.session.waits_for_entry(self.up.undecided()) {
                        self.up.forward(self.up.undecided().len()); // half a message is all there will be
                    }
                    break;
                }
                Ok(Verdict::Hold) if woken_by_fence => break,
                Ok(Verdict::Hold) => {
                    self.place_own(); // what the message waits for may have to be asked for
                    self.tell_target();
                    self.shared.common.fence.wake(cx.waker());
                    woken_by_fence = true; // what it waits for may have happened just before
                    continue;
                }
                Ok(Verdict::Forward(bytes)) => self.up.forward(bytes),
                Ok(Verdict::Replace(bytes) | Verdict::Connect(bytes) | Verdict::Cancel { bytes, .. }) => {
                    self.up.drop_undecided(bytes);
                }
                Err(error) => {
                    self.tell_client(cx);
                    return Err(error.into());
                }
            }
            moved = true;
            self.place_own();
        }
        if moved {
            self.tell_target();
        }
        Ok(moved)
    }

    /// Database to client.
    fn move_down(&mut self, cx: &mut Context<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        if !self.server_ended {
            let free = self.down.free();
            if !free.is_empty() {
                match self.server.poll_read(cx, free) {
                    Poll::Ready(Ok(0)) => {
                        self.server_ended = true;
                        moved = true;
                    }
                    Poll::Ready(Ok(count)) => {
                        self.down.filled(count);
                        self.hold_replies();
                        moved = true;
                    }
                    // A reset is the end of what the server says; what it said before still goes to the client.
                    Poll::Ready(Err(error)) if is_gone(&error) => {
                        self.server_ended = true;
                        moved = true;
                    }
                    Poll::Ready(Err(error)) => return Err(server_failed(error)),
                    Poll::Pending => {}
                }
            }
        }
        if self.settled_at.is_none_or(|at| Instant::now() >= at) {
            self.settled_at = None;
            moved |= self.decide_down(cx)?;
        }
        let unsent = !self.down.is_sent();
        match send(&mut self.client, &mut self.down, cx) {
            Poll::Ready(Ok(())) => moved |= unsent,
            Poll::Ready(Err(error)) => return Err(client_failed(error)),
            Poll::Pending => {}
        }
        Ok(moved)
    }

    fn decide_down(&mut self, cx: &mut Context<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        while !self.down.undecided().is_empty() {
            let now = self.shared.now();
            match self.session.handle_server(now, self.down.undecided()) {
                Ok(Verdict::Wait) => {
                    if self.server_ended {
                        self.down.forward(self.down.undecided().len());
                    }
                    break;
                }
                Ok(Verdict::Hold) => break,
                Ok(Verdict::Forward(bytes)) => self.down.forward(bytes),
                Ok(Verdict::Replace(bytes) | Verdict::Connect(bytes) | Verdict::Cancel { bytes, .. }) => {
                    self.down.drop_undecided(bytes);
                }
                Err(error) => {
                    self.tell_client(cx);
                    return Err(error.into());
                }
            }
            moved = true;
            self.place_own();
        }
        if moved {
            self.register(cx);
            self.tell_target();
        }
        Ok(moved)
    }

    /// Puts the session's own bytes behind what is decided, both ways.
    fn place_own(&mut self) {
        self.up.insert(self.session.to_server());
        self.down.insert(self.session.to_client());
    }

    /// Tells those who cancel what a cancel would hit.
    fn tell_target(&self) {
        if let Some(target) = &self.target {
            target.set_waiting(self.session.is_waiting(), self.session.may_cancel());
        }
    }

    /// Lets the session be cancelled once the backend has said who it is.
    fn register(&mut self, cx: &Context<'_>) {
        if self.target.is_some() {
            return;
        }
        if let Some(key) = self.session.backend_key() {
            let shown = (key.process_id, self.cancel_key);
            self.target = Some(self.shared.cancels.add(shown, key.clone(), self.upstream.clone(), cx));
        }
    }

    /// With `--settle`, replies wait for units that are on their way.
    fn hold_replies(&mut self) {
        if !self.shared.settle.is_zero() && self.settled_at.is_none() {
            self.settled_at = Some(Instant::now() + self.shared.settle);
        }
    }

    fn lost_cancel(&mut self, cx: &mut Context<'_>) -> GatewayError {
        let message = "a cancel request was lost on its way to the database and could hit a later statement";
        self.session.refuse("57P01", message, Some("Connect again."));
        self.tell_client(cx);
        GatewayError::Socket { side: "database", source: io::ErrorKind::TimedOut.into() }
    }

    /// Sends the session's last words as far as the client takes them.
    fn tell_client(&mut self, cx: &mut Context<'_>) {
        self.down.insert(self.session.to_client());
        let _ = send(&mut self.client, &mut self.down, cx);
        let _ = self.client.poll_shutdown(cx);
    }

    fn keep_books(&mut self, now: Instant) {
        if self.path_at.is_none_or(|at| now.duration_since(at) >= PATH_EVERY) {
            self.path_at = Some(now);
            if let Some(path) = self.server.path_time() {
                self.session.path_measured(self.shared.now(), path.rtt_us, path.rtt_min_us);
            }
        }
        let is_old = now.duration_since(self.handed_over_at) >= HAND_OVER;
        self.recorder.take(self.number, self.session.stream(), is_old);
        if is_old {
            self.handed_over_at = now;
        }
    }

    /// Wakes the task for records that wait to be handed over, or replies that wait to be released.
    fn arm_timer(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        let hand_over = (!self.session.stream().is_empty()).then(|| self.handed_over_at + HAND_OVER);
        let Some(at) = [hand_over, self.settled_at].into_iter().flatten().min() else {
            self.timer_armed = false;
            return;
        };
        if at <= now {
            self.keep_books(now);
            cx.waker().wake_by_ref();
            return;
        }
        if !self.timer_armed || self.timer.is_elapsed() || self.timer.deadline().into_std() > at {
            self.timer.as_mut().reset(at.into());
            self.timer_armed = true;
        }
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

/// The books are ended however the task ends, also when the gateway stops.
impl Drop for Connection {
    fn drop(&mut self) {
        if let Some((_, key)) = self.target.take().zip(self.session.backend_key()) {
            self.shared.cancels.remove((key.process_id, self.cancel_key));
        }
        self.spinner.stop(&self.shared.spin);
        if let Some(path) = self.server.path_time() {
            self.session.path_measured(self.shared.now(), path.rtt_us, path.rtt_min_us);
        }
        end_books(&mut self.session, self.number, &self.shared, &self.recorder);
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
    )
}
