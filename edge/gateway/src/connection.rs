//! One client's connection: moves bytes between two legs as its session says.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use onetrip_session::Verdict;
use onetrip_target::Protocol;
use tokio::sync::watch;
use tokio::time::Sleep;

use crate::GatewayError;
use crate::buffer::Buffer;
use crate::cancel::{Gate, Target};
use crate::conversation::Conversation;
use crate::dial::Upstream;
use crate::error::{client_failed, is_gone, server_failed};
use crate::gateway::{Shared, Stop};
use crate::leg::Leg;
use crate::notice::{Peer, notice};
use crate::opening::{Client, Opened, Opening};
use crate::recorder::Recorder;
use crate::spin::{Spinner, wake_after_a_look};

/// Records are handed on at least this often, so that a trace can be read while it is written.
const HAND_OVER: Duration = Duration::from_millis(200);
/// The kernel is asked for the path's times at most this often.
const PATH_EVERY: Duration = Duration::from_secs(1);
/// How long a client may take for its startup packet, as PostgreSQL's `authentication_timeout`.
const OPENING_MAX: Duration = Duration::from_secs(60);
/// What a client that is not let in yet has sent before a stop is dealt with for so long: why it left is told then.
const LAST_BYTES: Duration = Duration::from_millis(100);

/// A connection in its middle age: both legs are there.
struct Connection<C: Conversation> {
    shared: Arc<Shared>,
    recorder: Recorder,
    number: u32,
    peer: Peer,
    session: Box<C>,
    client: Leg,
    server: Leg,
    up: Buffer,
    down: Buffer,
    client_ended: bool,
    server_ended: bool,
    server_told: bool,
    /// It ends when nothing is under way.
    is_draining: bool,
    /// The client was told that it ends.
    is_refused: bool,
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

/// Serves one client until it is gone, or until all are to stop.
pub(crate) async fn serve(
    client: Client,
    shared: Arc<Shared>,
    recorder: Recorder,
    stop: watch::Receiver<Stop>,
) -> Result<(), GatewayError> {
    match shared.dialer().protocol() {
        Protocol::Postgres => serve_postgres(client, shared, recorder, stop).await,
        Protocol::Mysql => serve_mysql(client, shared, recorder, stop).await,
    }
}

/// The server speaks first, so it is dialled before the client has said anything.
async fn serve_mysql(
    client: Client,
    shared: Arc<Shared>,
    recorder: Recorder,
    mut stop: watch::Receiver<Stop>,
) -> Result<(), GatewayError> {
    let mut opening = Opening::watched(client, shared, recorder);
    let dialled = tokio::select! {
        biased;
        dialled = opening.dial() => dialled,
        _ = stop.wait_for(|stop| *stop != Stop::No) => Err(opening.refuse_for_stop()),
    };
    if dialled.is_ok() {
        opening.session.connected(opening.shared.now());
    }
    converse(opening, dialled, stop).await
}

async fn serve_postgres(
    client: Client,
    shared: Arc<Shared>,
    recorder: Recorder,
    mut stop: watch::Receiver<Stop>,
) -> Result<(), GatewayError> {
    let mut opening = Opening::new(client, shared, recorder)?;
    let opened = tokio::select! {
        biased;
        opened = tokio::time::timeout(OPENING_MAX, opening.open()) => opened.unwrap_or(Ok(Opened::Gone)),
        () = stopped_for(LAST_BYTES, &mut stop) => Ok(Opened::Gone),
    };
    let dialled = match opened {
        Ok(Opened::Session) => tokio::select! {
            biased;
            dialled = opening.dial() => dialled,
            _ = stop.wait_for(|stop| *stop != Stop::No) => Err(opening.refuse_for_stop()),
        },
        Ok(Opened::Cancel(shown)) => {
            // However long that takes: given up on its way, it would hold its session.
            opening.shared.cancels.carry(shown, opening.peer).await;
            return Ok(());
        }
        Ok(Opened::Gone) => {
            // Some drivers ask for encryption on a connection of its own, and that is a trip all the same.
            opening.end_books();
            return Ok(());
        }
        Err(error) => Err(error),
    };
    if let Ok((server, _)) = &dialled {
        opening.reached(server);
    }
    converse(opening, dialled, stop).await
}

/// Moves bytes between both legs until one side is gone, or until all are to stop.
async fn converse<C: Conversation>(
    mut opening: Opening<C>,
    dialled: Result<(Leg, Upstream), GatewayError>,
    mut stop: watch::Receiver<Stop>,
) -> Result<(), GatewayError> {
    let (server, upstream) = match dialled {
        Ok(reached) => reached,
        Err(error) => {
            opening.say_last_words().await;
            opening.end_books();
            return match error {
                GatewayError::Stopping => Ok(()),
                error => Err(error),
            };
        }
    };
    let mut connection = Box::new(Connection::new(opening, server, upstream));
    tokio::select! {
        done = poll_fn(|cx| connection.poll(cx)) => return done,
        _ = stop.wait_for(|stop| *stop != Stop::No) => connection.is_draining = true,
    }
    tokio::select! {
        biased;
        // What has come is dealt with first: who has left is not told that we do.
        done = poll_fn(|cx| connection.poll(cx)) => return done,
        _ = stop.wait_for(|stop| *stop == Stop::Now) => {}
    }
    poll_fn(|cx| connection.poll_stop(cx)).await;
    Ok(())
}

/// Waits until all are to stop, and then for so long.
async fn stopped_for(time: Duration, stop: &mut watch::Receiver<Stop>) {
    // If nobody can say so any more, all are to stop.
    let _ = stop.wait_for(|stop| *stop != Stop::No).await;
    tokio::time::sleep(time).await;
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

impl<C: Conversation> Connection<C> {
    fn new(opening: Opening<C>, server: Leg, upstream: Upstream) -> Self {
        let Opening { shared, recorder, peer, mut session, client, mut up, down, cancel_key } = opening;
        if let Some(own) = session.to_server() {
            up.insert(own);
        }
        Self {
            spinner: Spinner::new(),
            timer: Box::pin(tokio::time::sleep(HAND_OVER)),
            timer_armed: false,
            settled_at: None,
            handed_over_at: Instant::now(),
            path_at: None,
            client_ended: false,
            server_ended: false,
            server_told: false,
            is_draining: false,
            is_refused: false,
            target: None,
            shared,
            recorder,
            number: peer.number,
            peer,
            session,
            client,
            server,
            up,
            down,
            upstream,
            cancel_key,
        }
    }

    /// Ends the connection in the words that PostgreSQL has when its administrator stops it.
    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_refused {
            self.is_refused = true;
            if self.session.is_between_replies() {
                self.session.refuse("57P01", "terminating connection due to administrator command", None);
                self.down.insert(self.session.to_client());
            }
        }
        // A client that does not read has time until the gateway's patience is over.
        if send(&mut self.client, &mut self.down, cx).is_pending() {
            return Poll::Pending;
        }
        let _ = self.client.poll_shutdown(cx);
        Poll::Ready(())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), GatewayError>> {
        if let Err(error) = self.session.meet_deadline(self.shared.now()) {
            self.tell_client(cx);
            return Poll::Ready(Err(error.into()));
        }
        self.tell_notices();
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
        if self.is_draining && self.is_at_rest() {
            return self.poll_stop(cx).map(Ok);
        }
        self.up.rest();
        self.down.rest();
        if self.spinner.may_spin(&self.shared.spin) {
            wake_after_a_look(cx);
        } else {
            self.arm_timer(cx);
        }
        Poll::Pending
    }

    /// Whether nothing is under way, in either direction and in the session.
    fn is_at_rest(&self) -> bool {
        self.session.is_at_rest()
            && self.up.undecided().is_empty()
            && self.up.is_sent()
            && self.down.is_sent()
    }

    /// Client to database.
    fn move_up(&mut self, cx: &mut Context<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        if !self.client_ended && !self.session.is_full() {
            if self.session.is_serving() {
                self.up.grow_if_full(); // before, a client has what one packet takes
            }
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
            self.session.set_behind(!self.down.is_sent());
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
                Ok(Verdict::Replace(bytes)) => self.up.drop_undecided(bytes),
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
            self.down.grow_if_full();
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
                Ok(Verdict::Replace(bytes)) => self.down.drop_undecided(bytes),
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
        if let Some(own) = self.session.to_server() {
            self.up.insert(own);
        }
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

    /// A line for what people should hear of.
    fn tell_notices(&mut self) {
        while let Some((kind, text)) = self.session.take_notice() {
            notice(kind, Some(self.peer), &text);
        }
    }

    fn keep_books(&mut self, now: Instant) {
        self.tell_notices();
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

    /// When the session is to be looked at.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let moment = self.session.deadline()?;
        now.checked_add(Duration::from_nanos(moment.0.saturating_sub(self.shared.now().0)))
    }

    /// Wakes the task for records that wait to be handed over, or replies that wait to be released.
    fn arm_timer(&mut self, cx: &mut Context<'_>) {
        let now = Instant::now();
        let hand_over = (!self.session.stream().is_empty()).then(|| self.handed_over_at + HAND_OVER);
        let Some(at) = [hand_over, self.settled_at, self.deadline(now)].into_iter().flatten().min() else {
            self.timer_armed = false;
            return;
        };
        if at <= now {
            self.keep_books(now);
            if self.session.stream().is_empty() {
                self.session.rest(); // nothing moved since records were handed over last
            }
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
impl<C: Conversation> Drop for Connection<C> {
    fn drop(&mut self) {
        if let Some((_, key)) = self.target.take().zip(self.session.backend_key()) {
            self.shared.cancels.remove((key.process_id, self.cancel_key));
        }
        self.spinner.stop(&self.shared.spin);
        if let Some(path) = self.server.path_time() {
            self.session.path_measured(self.shared.now(), path.rtt_us, path.rtt_min_us);
        }
        end_books(&mut *self.session, self.number, &self.shared, &self.recorder);
    }
}
