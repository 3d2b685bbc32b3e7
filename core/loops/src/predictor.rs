//! Which statements come next: the events, and what they do to frames, loops and guesses.

use std::time::Duration;

use crate::costs::Costs;
use crate::edges::Edges;
use crate::frame::{self, Frame, FrameId, Frames};
use crate::packed;
use crate::running::Loops;
use crate::tickets::{Entry, Place, State, Tickets};
use crate::value::{Arrival, Column, Template, Ticket, Value};

/// Results that the program has seen and that are kept.
pub(crate) const SEEN_MAX: usize = 8;

/// Results of guesses that the program has not asked for and that are kept.
pub(crate) const UNSEEN_MAX: usize = 160;

/// Answers that may wait for the program if their rows are walked in their turn.
pub(crate) const ORIGINS_MAX: u32 = 128;

/// Guesses at such rows.
pub(crate) const SECOND_LEVEL_MAX: u32 = 64;

/// What all frames may keep together.
const FRAMES_BYTES_MAX: usize = 8 << 20;

/// What the result of a guess may keep.
const UNSEEN_BYTES_MAX: usize = 64 << 10;

/// Levels of loops inside loops, from zero.
pub(crate) const DEPTH_MAX: u8 = 3;

/// What became of a statement or guess that the server has answered. By default nothing of it is known; it is better
/// to tell at least the bytes: how much may be read ahead depends on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The server's time for the statement alone, if it can be told. For a guess, best the time since the answer
    /// before it in its flight.
    pub execution: Option<Duration>,
    /// Bytes of the reply; zero if not known.
    pub bytes: usize,
    /// Rows of the result, so far; means nothing where the bytes are not known.
    pub rows: u64,
}

/// What happened, in statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Guesses made.
    pub guesses: u64,
    /// Guesses that the program asked for.
    pub hits: u64,
    /// Guesses that it passed by, and those flushed or failed.
    pub wasted: u64,
    /// Flights of guesses.
    pub flights: u64,
}

/// Watches one session's statements and results, and guesses what comes next. One call per event, in the order in
/// which the session sees them; then [`Predictor::plan`], once per batch of events.
///
/// The law: in each loop, guesses outstanding and wasted together are never more than `max(start, hits)`, where the
/// start is 1 for a pair of templates not seen before and 32 at most.
#[derive(Debug, Default)]
pub struct Predictor {
    pub(crate) edges: Edges,
    pub(crate) frames: Frames,
    pub(crate) loops: Loops,
    pub(crate) tickets: Tickets,
    pub(crate) costs: Costs,
    pub(crate) counters: Counters,
    /// Events so far.
    pub(crate) clock: u64,
    /// A statement of the program's has just left: guesses go along for nothing.
    pub(crate) has_head: bool,
    is_on: bool,
    /// Guesses outstanding at rows that were themselves only guessed.
    pub(crate) second_level: u32,
    /// There were too many of them; they go on when a flight of them has been settled.
    pub(crate) is_second_full: bool,
    pub(crate) scratch: Vec<u8>,
}

impl Predictor {
    /// One that knows what was learnt before.
    pub fn new(edges: Edges) -> Self {
        Self { edges, ..Self::default() }
    }

    /// What was learnt, for other sessions.
    pub fn edges(&self) -> &Edges {
        &self.edges
    }

    /// Takes over what other sessions learnt. Call it between transactions: inside one it does nothing.
    pub fn absorb(&mut self, edges: &Edges) {
        if !self.loops.are_any() {
            self.edges.absorb(edges);
        }
    }

    /// The distance to the server, as the session measures it. While it is zero nothing is looked at.
    pub fn set_round_trip(&mut self, round_trip: Duration) {
        self.costs.set_round_trip(round_trip);
        self.is_on = !round_trip.is_zero();
    }

    /// A *pure* statement goes to the server. It proves that the program executes its template in this transaction
    /// (rule P11); the guesses of the next [`Predictor::plan`] may leave right behind it.
    pub fn statement(&mut self, now: Duration, arrival: &Arrival<'_>) -> Ticket {
        self.clock += 1;
        if !self.is_on {
            return self.new_ticket(arrival.template, None, State::Program);
        }
        let template = arrival.template;
        self.costs.executed(template.id);
        self.costs.earn(template.id);
        let place = self.locate(now, arrival);
        self.has_head = true;
        self.program_ticket(arrival, place)
    }

    /// A statement goes to the server of which only the rows are of interest: it is no read that is known to be pure.
    /// Call [`Predictor::flush`] before, unless it is known to change nothing.
    pub fn source(&mut self, arrival: &Arrival<'_>) -> Ticket {
        self.clock += 1;
        if !self.is_on {
            return self.new_ticket(arrival.template, None, State::Program);
        }
        self.program_ticket(arrival, None)
    }

    /// The program asked for what the guess, or an earlier statement, already fetched, and got it from memory.
    /// More than once for a repeat.
    pub fn served(&mut self, now: Duration, ticket: Ticket) {
        self.clock += 1;
        let Some(entry) = self.tickets.get(ticket).copied() else {
            return;
        };
        match entry.state {
            State::Guessed | State::Ready | State::Wasted => self.hit(now, ticket, &entry),
            State::Program | State::Served => self.repeated(now, &entry),
        }
    }

    /// Whether the program had this answer before: by a statement of its own, or as a guess that it asked for.
    pub fn is_repeat(&self, ticket: Ticket) -> bool {
        let entry = self.tickets.get(ticket);
        entry.is_none_or(|entry| matches!(entry.state, State::Program | State::Served))
    }

    /// Whether the rows of this result are of use. If not, [`Predictor::result_row`] need not be called.
    pub fn wants_rows(&self, ticket: Ticket) -> bool {
        let Some(entry) = self.tickets.get(ticket) else {
            return false;
        };
        match entry.state {
            State::Program => entry.result.is_some(),
            State::Guessed => {
                entry.result.is_some()
                    || self
                        .edges
                        .of_origin(entry.template.key)
                        .iter()
                        .any(|edge| self.edges.get(*edge).is_some_and(|edge| edge.is_confirmed))
                    || self.costs.is_fruitful(entry.template.id)
            }
            _ => false,
        }
    }

    /// A row of the result of a statement or a guess. Rows may go on after a [`Predictor::result_end`] (a portal read
    /// in pieces). Columns that were not described are left out: what is in them is told by its bytes.
    pub fn result_row(&mut self, ticket: Ticket, columns: &[Column], row: &[Option<&[u8]>]) {
        if let Some(frame) = self.frame_with_room(ticket) {
            frame.push(columns, row);
        }
    }

    /// The same, for a row as the server sends it: how many columns, then each value with its length. It is looked into when
    /// a statement comes whose values may be from its result. Bytes that are no row are left out.
    pub fn result_row_as_sent(&mut self, ticket: Ticket, columns: &[Column], row: &[u8]) {
        let Some(row) = packed::Row::read(row) else {
            return;
        };
        if let Some(frame) = self.frame_with_room(ticket) {
            frame.pack(columns, &row);
            if frame.of_loop.is_some() {
                frame.unpack(u32::MAX);
            }
        }
    }

    /// Where a row of this result is kept, and how much there may be.
    fn frame_with_room(&mut self, ticket: Ticket) -> Option<&mut Frame> {
        let entry = self.tickets.get(ticket).copied()?;
        let id = match (entry.result, entry.state) {
            (Some(frame), _) => frame,
            (None, State::Guessed) => self.open_guess(ticket, &entry)?,
            (None, _) => return None,
        };
        let all = self.frames.get(id).filter(|frame| frame.rows() % 256 == 255).map(|_| self.frames.size());
        let frame = self.frames.get_mut(id)?;
        if let Some(all) = all {
            frame.room = frame.room.min(FRAMES_BYTES_MAX.saturating_sub(all - frame.size()));
        }
        Some(frame)
    }

    /// The result is complete.
    pub fn result_end(&mut self, ticket: Ticket, outcome: Outcome) {
        self.clock += 1;
        let Some(entry) = self.answered(ticket) else {
            return;
        };
        self.costs.measured(entry.template.id, outcome.execution, outcome.bytes);
        if outcome.bytes > 0 {
            self.note_last_page(&entry, outcome.rows);
        }
        let Some(id) = entry.result else {
            return;
        };
        let Some(frame) = self.frames.get_mut(id) else {
            return;
        };
        frame.is_complete = true;
        if frame.rows() == 0 {
            return self.drop_frame(id);
        }
        self.turn_page(id);
        let Some(frame) = self.frames.get(id) else {
            return;
        };
        if let Some(running) = frame.of_loop.and_then(|slot| self.loops.get_mut(slot)) {
            if running.root != Some(id) && !running.children.contains(&id) {
                running.children.push_back(id);
            }
        }
    }

    /// The server could not answer the statement or guess, or the session did not send it, or the answer must not be
    /// kept.
    pub fn failed(&mut self, ticket: Ticket) {
        self.clock += 1;
        let Some(entry) = self.answered(ticket) else {
            return;
        };
        self.waste(ticket, true);
        if let Some(frame) = entry.result {
            self.drop_frame(frame);
        }
    }

    /// Anything not pure happens: guesses that were not served are worthless now, and what the program executed before
    /// no longer proves anything.
    pub fn flush(&mut self) {
        self.clock += 1;
        self.has_head = false;
        self.costs.start_epoch();
        self.forget_guesses();
    }

    /// The transaction is over: nothing is known any more but the edges.
    pub fn transaction_ended(&mut self) {
        self.flush();
        for slot in self.loops.by_use() {
            self.end_loop(slot);
        }
        while let Some(id) = self.any_frame() {
            self.frames.release(id);
        }
        self.edges.tidy();
    }

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn new_ticket(&mut self, template: Template, place: Option<Place>, state: State) -> Ticket {
        while let Some(oldest) = self.tickets.oldest_beyond() {
            self.waste(oldest, false);
            self.tickets.forget_oldest();
        }
        let is_answered = false;
        self.tickets.push(Entry { template, place, result: None, state, is_answered, is_second: false })
    }

    fn program_ticket(&mut self, arrival: &Arrival<'_>, place: Option<Place>) -> Ticket {
        let ticket = self.new_ticket(arrival.template, place, State::Program);
        let is_fruitful = self.costs.is_fruitful(arrival.template.id);
        self.costs.result_seen(arrival.template.id);
        let is_origin = !self.edges.of_origin(arrival.template.key).is_empty();
        if is_fruitful || is_origin {
            let result = self.open_frame(arrival.template, arrival.values, place, true);
            if let Some(entry) = self.tickets.get_mut(ticket) {
                entry.result = result;
            }
        }
        ticket
    }

    /// Marks it answered, and gives it as it was.
    fn answered(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.tickets.get_mut(ticket)?;
        let before = *entry;
        entry.is_answered = true;
        if entry.state == State::Guessed {
            entry.state = State::Ready;
        }
        if before.state != State::Program && !before.is_answered {
            if let Some(stream) = before.place.and_then(|place| self.stream_at(&place)) {
                stream.unanswered = stream.unanswered.saturating_sub(1);
            }
        }
        Some(before)
    }

    /// An empty frame for a result; `None` if there is no room for it.
    pub(crate) fn open_frame(
        &mut self,
        template: Template,
        parameters: &[Value<'_>],
        place: Option<Place>,
        is_visible: bool,
    ) -> Option<FrameId> {
        if is_visible {
            self.make_room(None);
        } else if !self.has_room_unseen(template) {
            return None;
        }
        let room = FRAMES_BYTES_MAX.saturating_sub(self.frames.size());
        let id = self.frames.take(template);
        let level = place.and_then(|place| self.level_below(&place).map(|depth| (place, depth)));
        let frame = self.frames.get_mut(id)?;
        frame.room = room.min(if is_visible { frame::BYTES_MAX } else { UNSEEN_BYTES_MAX });
        frame.parameters.set(parameters);
        frame.is_visible = is_visible;
        frame.touched = self.clock;
        frame.parent = place.map(|place| (place.frame, place.row));
        if let Some((place, depth)) = level {
            frame.of_loop = Some(place.of_loop);
            frame.depth = depth;
        }
        Some(id)
    }

    /// A guess has a first row: its result may be the frame of a nested loop.
    fn open_guess(&mut self, ticket: Ticket, entry: &Entry) -> Option<FrameId> {
        let place = entry.place?;
        let id = self.open_frame(entry.template, &[], Some(place), false)?;
        self.fill_parameters(id, &place);
        self.tickets.get_mut(ticket)?.result = Some(id);
        Some(id)
    }

    /// The program sees one more result: the oldest of the others goes, if there are too many. Results of a loop's
    /// statements go first, then others that no loop walks.
    pub(crate) fn make_room(&mut self, keep: Option<FrameId>) {
        loop {
            let seen = self.frames.iter().filter(|(id, frame)| frame.is_visible && Some(*id) != keep);
            let (mut count, mut oldest) = (0, None);
            for (id, frame) in seen {
                count += 1;
                let age = (!frame.consumers.is_empty(), frame.parent.is_none(), frame.touched);
                if oldest.is_none_or(|(_, other)| age < other) {
                    oldest = Some((id, age));
                }
            }
            match oldest {
                Some((id, _)) if count >= SEEN_MAX => self.drop_frame(id),
                _ => return,
            }
        }
    }

    /// Whether the result of a guess of this template may be kept: all that there is room for if its rows are known to
    /// be walked, some of them to find out.
    fn has_room_unseen(&self, template: Template) -> bool {
        let mut edges = self.edges.of_origin(template.key).iter();
        let is_origin = edges.any(|edge| self.edges.get(*edge).is_some_and(|edge| edge.is_confirmed));
        let most = match is_origin {
            true => UNSEEN_MAX,
            false if self.costs.is_fruitful(template.id) => UNSEEN_MAX / 4,
            false => return false,
        };
        self.frames.iter().filter(|(_, frame)| !frame.is_visible).count() < most
    }

    fn any_frame(&self) -> Option<FrameId> {
        self.frames.iter().next().map(|(id, _)| id)
    }
}
