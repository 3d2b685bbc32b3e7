//! One client's connection: moves bytes between two legs as its session says.

use std::sync::Arc;
use std::task::Waker;
use std::time::{Duration, Instant};
use std::{fmt, io};

use mio::{Registry, Token};
use onetrip_ledger::Moment;
use onetrip_session::Verdict;

use super::inbox::{Inbox, Place};
use crate::GatewayError;
use crate::buffer::Buffer;
use crate::cancel::{Gate, Target};
use crate::conversation::Conversation;
use crate::dial::Upstream;
use crate::error::{client_failed, is_gone, server_failed};
use crate::leg::Leg;
use crate::line::Line;
use crate::notice::{Peer, notice};
use crate::opening::{Opening, end_books};
use crate::recorder::{Batch, Recorder};
use crate::shared::{Alive, Shared, Stop};

/// The kernel is asked for the path's times at most this often.
const PATH_EVERY: Duration = Duration::from_secs(1);
/// A connection on which nothing has moved for so long gives back what it keeps for speed only.
const RESTS_AFTER: Duration = Duration::from_millis(50);
/// Said to a client whose statement a stop could not cancel in time.
const NOT_CANCELLED: &str =
    "The statement could not be cancelled in time. It may go on in the database, and commit.";
/// Reads in one turn of one connection: others are to have theirs.
const READS_MAX: u32 = 16;

/// A connection as its worker sees it, whichever protocol it speaks.
pub(crate) trait Served: fmt::Debug + Send {
    /// Sits down: from now on the loop of `registry` tells `inbox`'s worker of its sockets by the tokens of `seat`.
    fn sit_down(&mut self, registry: &Registry, inbox: &Arc<Inbox>, seat: usize) -> io::Result<()>;
    /// Gets up: the loop no longer tells anything of it.
    fn get_up(&mut self, registry: &Registry) -> io::Result<()>;
    fn peer(&self) -> Peer;
    /// What the loop says of one of its sockets.
    fn heard(&mut self, side: Side, event: &mio::event::Event);
    /// Something may have come of which the loop has not said anything.
    fn look(&mut self);
    /// Does what there is to do.
    fn turn(&mut self, visit: &Visit<'_>) -> Turn;
    /// When it wants a turn whether or not something comes.
    fn due_at(&self) -> Option<Instant>;
    /// Puts its records into the batch. Returns whether it rests: there will be no more before something moves.
    fn hand_over_records(&mut self, now: Instant, batch: &mut Batch) -> bool;
}

/// Whose socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What holds for one turn.
pub(crate) struct Visit<'w> {
    pub(super) registry: &'w Registry,
    pub(super) seat: usize,
    pub(super) now: Instant,
    /// The same on the trace's clock.
    pub(super) moment: Moment,
    pub(super) stop: Stop,
}

/// How a turn ended.
pub(crate) struct Turn {
    /// Something was moved.
    pub(super) moved: bool,
    pub(super) then: Then,
}

/// What comes after a turn.
pub(crate) enum Then {
    /// It waits for its sockets, for others or for its time.
    Waits,
    /// There is more to do.
    GoesOn,
    Ends(Result<(), GatewayError>),
}

impl Turn {
    /// That of a connection that cannot have another.
    pub(super) const LAST: Self = Self { moved: false, then: Then::Ends(Ok(())) };
}

impl Side {
    /// The token of this side of the connection in `seat`.
    pub(super) fn token(self, seat: usize) -> Token {
        Token(seat * 2 + usize::from(self == Self::Server))
    }

    /// Whose token it is.
    pub(super) fn of(token: Token) -> (usize, Self) {
        (token.0 / 2, if token.0 % 2 == 0 { Self::Client } else { Self::Server })
    }
}

/// A connection in its middle age: both legs are there.
#[derive(Debug)]
pub(crate) struct Connection<C: Conversation> {
    shared: Arc<Shared>,
    recorder: Recorder,
    peer: Peer,
    session: Box<C>,
    client: Line,
    server: Line,
    up: Buffer,
    down: Buffer,
    client_ended: bool,
    server_ended: bool,
    /// It ended within a message, or by a reset.
    server_was_cut: bool,
    server_told: bool,
    /// All that is for the client has left, TLS's own bytes included.
    client_has_all: bool,
    /// The client was told that it ends.
    is_refused: bool,
    /// Its statement was cancelled by a stop. The client is told of the stop in place of that.
    was_cancelled: bool,
    target: Option<Arc<Target>>,
    /// What the target was told last.
    told: (bool, bool),
    upstream: Upstream,
    cancel_key: [u8; 4],
    place: Arc<Place>,
    waker: Waker,
    /// Among what is for the server is something of the session's own that a reply has called for.
    answers_reply: bool,
    /// Replies are held until then.
    settled_at: Option<Instant>,
    /// When the session is to be looked at.
    deadline: Option<Instant>,
    moved_at: Instant,
    path_at: Option<Instant>,
    _alive: Alive,
}

impl<C: Conversation> Connection<C> {
    pub(crate) fn new(opening: Opening<C>, server: Leg, upstream: Upstream) -> Result<Self, GatewayError> {
        let Opening { shared, recorder, peer, mut session, client, mut up, down, cancel_key, alive } =
            opening;
        let lines = client.into_line().map_err(client_failed).and_then(|client| {
            let server = server.into_line().map_err(server_failed)?;
            Ok((client, server))
        });
        let (client, server) =
            lines.inspect_err(|_| end_books(&mut *session, peer.number, &shared, &recorder))?;
        if let Some(own) = session.to_server() {
            up.insert(own);
        }
        let place = Arc::<Place>::default();
        Ok(Self {
            client,
            server,
            client_ended: false,
            server_ended: false,
            server_was_cut: false,
            server_told: false,
            client_has_all: true,
            is_refused: false,
            was_cancelled: false,
            target: None,
            told: (false, true),
            waker: place.waker(),
            place,
            answers_reply: false,
            settled_at: None,
            deadline: None,
            moved_at: Instant::now(),
            path_at: None,
            shared,
            recorder,
            peer,
            session,
            up,
            down,
            upstream,
            cancel_key,
            _alive: alive,
        })
    }

    /// Moves what can be moved. Returns what comes then, and whether something was moved.
    fn pass(&mut self, visit: &Visit<'_>, moved: &mut bool) -> Result<Then, GatewayError> {
        if self.deadline.is_some_and(|at| at <= visit.now) {
            if let Err(error) = self.session.meet_deadline(visit.moment) {
                self.tell_client();
                return Err(error.into());
            }
            self.tell_notices();
        }
        let looks = self.target.as_ref().and_then(|target| target.look_asked());
        if looks.is_some() {
            self.look();
        }
        for _ in 0..READS_MAX {
            let mut moves = self.move_up(visit)?;
            moves |= self.move_down(visit)?;
            if self.server_ended && self.down.is_sent() && self.client_has_all && self.settled_at.is_none() {
                if !self.server_was_cut {
                    self.client.shut_down(); // by TLS, the client knows then that nothing is missing
                }
                return Ok(Then::Ends(Ok(())));
            }
            if !moves {
                if let Some((target, looks)) = self.target.as_ref().zip(looks) {
                    target.look_taken(looks);
                }
                return Ok(Then::Waits);
            }
            *moved = true;
        }
        Ok(Then::GoesOn)
    }

    /// Ends the connection in the words that PostgreSQL has when its administrator stops it.
    fn say_last_words(&mut self) -> Then {
        if !self.is_refused {
            self.is_refused = true;
            if self.session.is_between_replies() {
                let may_run = self.session.is_serving() && self.session.is_waiting() && !self.was_cancelled;
                let hint = may_run.then_some(NOT_CANCELLED);
                self.session.refuse("57P01", "terminating connection due to administrator command", hint);
                self.down.insert(self.session.to_client());
            }
        }
        // A client that does not read has time until the gateway's patience is over.
        if matches!(self.client.send(&mut self.down), Ok(false)) {
            return Then::Waits;
        }
        self.client.shut_down();
        Then::Ends(Ok(()))
    }

    /// Whether the client waits for nothing and has all that it was sent. It may be in a transaction.
    fn is_idle(&self) -> bool {
        !self.session.is_waiting() && self.up.is_sent() && self.down.is_sent()
    }

    /// Whether nothing is under way, in either direction and in the session.
    fn is_at_rest(&self) -> bool {
        self.session.is_at_rest()
            && self.up.undecided().is_empty()
            && self.up.is_sent()
            && self.down.is_sent()
    }

    /// Client to database.
    fn move_up(&mut self, visit: &Visit<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        if !self.client_ended && self.client.may_read() && !self.session.is_full() {
            if self.session.is_serving() {
                self.up.grow_if_full(); // before, a client has what one packet takes
            }
            let free = self.up.free();
            if !free.is_empty() {
                match self.client.read(free).map_err(client_failed)? {
                    Some(0) => {
                        self.client_ended = true;
                        self.session.client_left(visit.moment);
                        moved = true;
                    }
                    Some(count) => {
                        self.up.filled(count);
                        moved = true;
                    }
                    None => {}
                }
            }
        }
        moved |= self.decide_up(visit)?;
        if self.would_meet_cancel() {
            return Ok(moved);
        }
        let unsent = !self.up.is_sent();
        match self.server.send(&mut self.up) {
            Ok(true) => {
                self.answers_reply = false;
                moved |= unsent;
                if self.client_ended && !self.server_told && self.up.undecided().is_empty() {
                    self.server_told = true;
                    // What the server still says goes to a client that may still read.
                    self.server.shut_down();
                }
            }
            Ok(false) => {}
            // A server that does not read any more may still have said why.
            Err(_) => self.up = Buffer::new(),
        }
        Ok(moved)
    }

    fn decide_up(&mut self, visit: &Visit<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        let mut woken_by_fence = false;
        while !self.up.undecided().is_empty() {
            if self.session.is_between_units() {
                if visit.stop == Stop::Cancelling {
                    break;
                }
                match self.target.as_ref().map_or(Gate::Open, |target| target.gate()) {
                    Gate::Open => {}
                    Gate::Held => break,
                    Gate::Lost => return Err(self.lost_cancel()),
                }
            }
            self.session.set_behind(!self.down.is_sent());
            match self.session.handle_client(visit.moment, self.up.undecided()) {
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
                    self.shared.common.fence.wake(&self.waker);
                    woken_by_fence = true; // what it waits for may have happened just before
                    continue;
                }
                Ok(Verdict::Forward(bytes)) => self.up.forward(bytes),
                Ok(Verdict::Replace(bytes)) => self.up.drop_undecided(bytes),
                Err(error) => {
                    self.tell_client();
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
    fn move_down(&mut self, visit: &Visit<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        if !self.server_ended && self.server.may_read() {
            self.down.grow_if_full();
            let free = self.down.free();
            if !free.is_empty() {
                match self.server.read(free) {
                    Ok(Some(0)) => {
                        self.server_ended = true;
                        moved = true;
                    }
                    Ok(Some(count)) => {
                        self.down.filled(count);
                        self.hold_replies(visit.now);
                        moved = true;
                    }
                    Ok(None) => {}
                    // A reset is the end of what the server says; what it said before still goes to the client.
                    Err(error) if is_gone(&error) => {
                        (self.server_ended, self.server_was_cut) = (true, true);
                        moved = true;
                    }
                    Err(error) => return Err(server_failed(error)),
                }
            }
        }
        if self.settled_at.is_none_or(|at| visit.now >= at) {
            self.settled_at = None;
            moved |= self.decide_down(visit)?;
        }
        let unsent = !self.down.is_sent();
        self.client_has_all = self.client.send(&mut self.down).map_err(client_failed)?;
        Ok(moved || (unsent && self.client_has_all))
    }

    fn decide_down(&mut self, visit: &Visit<'_>) -> Result<bool, GatewayError> {
        let mut moved = false;
        while !self.down.undecided().is_empty() {
            if visit.stop == Stop::Cancelling && self.session.says_last_cancelled(self.down.undecided()) {
                self.was_cancelled = true;
                break;
            }
            match self.session.handle_server(visit.moment, self.down.undecided()) {
                Ok(Verdict::Wait) => {
                    if self.server_ended {
                        self.server_was_cut = true;
                        self.down.forward(self.down.undecided().len());
                    }
                    break;
                }
                Ok(Verdict::Hold) => break,
                Ok(Verdict::Forward(bytes)) => self.down.forward(bytes),
                Ok(Verdict::Replace(bytes)) => self.down.drop_undecided(bytes),
                Err(error) => {
                    self.tell_client();
                    return Err(error.into());
                }
            }
            moved = true;
            self.answers_reply |= self.place_own();
        }
        if moved {
            self.let_be_cancelled();
            self.tell_target();
        }
        Ok(moved)
    }

    /// Whether a cancel request is on its way that was meant for a statement which has ended since: it would hit what the
    /// session sends of its own then. No other sets out, since the target was told of that. A request that finds the server idle
    /// does nothing.
    fn would_meet_cancel(&self) -> bool {
        self.answers_reply && self.target.as_ref().is_some_and(|target| target.gate() == Gate::Held)
    }

    /// Puts the session's own bytes behind what is decided, both ways. Returns whether there are some for the server.
    fn place_own(&mut self) -> bool {
        self.down.insert(self.session.to_client());
        let Some(own) = self.session.to_server().filter(|own| !own.is_empty()) else { return false };
        self.up.insert(own);
        true
    }

    /// Tells those who cancel what a cancel would hit.
    fn tell_target(&mut self) {
        let Some(target) = &self.target else { return };
        let state = (self.session.is_waiting(), self.session.may_cancel());
        if state != self.told {
            self.told = state;
            target.set_waiting(state.0, state.1);
        }
    }

    /// Lets the session be cancelled once the backend has said who it is.
    fn let_be_cancelled(&mut self) {
        if self.target.is_some() {
            return;
        }
        if let Some(key) = self.session.backend_key() {
            let shown = (key.process_id, self.cancel_key);
            let upstream = self.upstream.clone();
            self.target = Some(self.shared.cancels.add(shown, key.clone(), upstream, self.waker.clone()));
        }
    }

    /// With `--settle`, replies wait for units that are on their way.
    fn hold_replies(&mut self, now: Instant) {
        if !self.shared.settle.is_zero() && self.settled_at.is_none() {
            self.settled_at = Some(now + self.shared.settle);
        }
    }

    fn lost_cancel(&mut self) -> GatewayError {
        let message = "a cancel request was lost on its way to the database and could hit a later statement";
        self.session.refuse("57P01", message, Some("Connect again."));
        self.tell_client();
        GatewayError::Socket { side: "database", source: io::ErrorKind::TimedOut.into() }
    }

    /// Sends the session's last words as far as the client takes them.
    fn tell_client(&mut self) {
        self.down.insert(self.session.to_client());
        let _ = self.client.send(&mut self.down);
        self.client.shut_down();
    }

    /// A line for what people should hear of.
    fn tell_notices(&mut self) {
        while let Some((kind, text)) = self.session.take_notice() {
            notice(kind, Some(self.peer), &text);
        }
    }

    /// Has the loop say when legs that take nothing take something again.
    fn attend(&mut self, visit: &Visit<'_>) -> Result<(), GatewayError> {
        let (registry, seat) = (visit.registry, visit.seat);
        self.client.attend(registry, Side::Client.token(seat)).map_err(client_failed)?;
        self.server.attend(registry, Side::Server.token(seat)).map_err(server_failed)
    }

    /// Notes what a turn has moved.
    fn keep_books(&mut self, visit: &Visit<'_>) {
        self.moved_at = visit.now;
        self.tell_notices();
        if self.path_at.is_none_or(|at| visit.now.saturating_duration_since(at) >= PATH_EVERY) {
            self.path_at = Some(visit.now);
            if let Some(path) = self.server.path_time() {
                self.session.path_measured(visit.moment, path.rtt_us, path.rtt_min_us);
            }
        }
        self.recorder.take_if_much(self.peer.number, self.session.stream());
    }
}

impl<C: Conversation> Served for Connection<C> {
    fn sit_down(&mut self, registry: &Registry, inbox: &Arc<Inbox>, seat: usize) -> io::Result<()> {
        self.place.is_at(inbox, seat, self.peer.number);
        self.client.register(registry, Side::Client.token(seat))?;
        self.server.register(registry, Side::Server.token(seat))
    }

    fn get_up(&mut self, registry: &Registry) -> io::Result<()> {
        self.client.deregister(registry)?;
        self.server.deregister(registry)
    }

    fn peer(&self) -> Peer {
        self.peer
    }

    fn heard(&mut self, side: Side, event: &mio::event::Event) {
        match side {
            Side::Client => self.client.heard(event),
            Side::Server => self.server.heard(event),
        }
    }

    fn look(&mut self) {
        self.client.look();
        self.server.look();
    }

    fn turn(&mut self, visit: &Visit<'_>) -> Turn {
        let mut moved = false;
        let mut then = if self.is_refused {
            self.say_last_words()
        } else {
            self.pass(visit, &mut moved).unwrap_or_else(|error| Then::Ends(Err(error)))
        };
        if moved {
            self.keep_books(visit);
        }
        // What has come is dealt with first: who has left is not told that we do.
        let stops = match visit.stop {
            Stop::No => false,
            Stop::Draining => matches!(then, Then::Waits) && self.is_at_rest(),
            Stop::Cancelling => match then {
                Then::Waits => self.was_cancelled || self.is_idle(),
                Then::GoesOn | Then::Ends(_) => false,
            },
            Stop::Now => !matches!(then, Then::Ends(_)),
        };
        if stops && !self.is_refused {
            then = self.say_last_words();
        }
        self.up.rest();
        self.down.rest();
        self.deadline = self.session.deadline().and_then(|moment| self.shared.instant(moment));
        if !matches!(then, Then::Ends(_)) {
            if let Err(error) = self.attend(visit) {
                then = Then::Ends(Err(error));
            }
        }
        Turn { moved, then }
    }

    fn due_at(&self) -> Option<Instant> {
        if self.is_refused {
            return None; // it waits for its client alone
        }
        [self.settled_at, self.deadline].into_iter().flatten().min()
    }

    fn hand_over_records(&mut self, now: Instant, batch: &mut Batch) -> bool {
        let is_kept = self.recorder.collect(self.peer.number, self.session.stream(), batch);
        let rests = is_kept && now.saturating_duration_since(self.moved_at) >= RESTS_AFTER;
        if rests {
            self.session.rest();
        }
        rests
    }
}

/// The books are ended however the connection ends, also when the gateway stops.
impl<C: Conversation> Drop for Connection<C> {
    fn drop(&mut self) {
        if let Some((target, key)) = self.target.take().zip(self.session.backend_key()) {
            target.ended();
            self.shared.cancels.remove((key.process_id, self.cancel_key));
        }
        if let Some(path) = self.server.path_time() {
            self.session.path_measured(self.shared.now(), path.rtt_us, path.rtt_min_us);
        }
        end_books(&mut *self.session, self.peer.number, &self.shared, &self.recorder);
    }
}
