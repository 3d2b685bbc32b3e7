//! What to send before the program asks.

use smallvec::SmallVec;

use crate::canonical::hash_bytes;
use crate::edge::{At, Edge, Walk};
use crate::flight::Flight;
use crate::frame::{Consumer, Frame, FrameId};
use crate::predictor::{ORIGINS_MAX, Predictor, SECOND_LEVEL_MAX};
use crate::running::Loop;
use crate::stream::{FLIGHT_MIN, Stream, WINDOW_MAX};
use crate::tickets::{Entry, Place, State};
use crate::value::{Ticket, Value};

/// Pages of a counter that are guessed ahead: where it ends is not known.
const STEPS_AHEAD: u32 = 16;

/// Rows of one frame that are decided on at a time, those without a guess included.
const DECISIONS_MAX: u32 = 2048;

/// Guesses that a stream may make now.
struct Quota {
    stream: u16,
    left: u32,
}

impl Predictor {
    /// Fills `flight` with the guesses to send now, in program order; often none. They may leave at once: behind the
    /// statement that has just been sent, or by themselves.
    pub fn plan(&mut self, flight: &mut Flight) {
        flight.clear();
        let has_head = std::mem::take(&mut self.has_head);
        self.is_second_full &= self.second_level + FLIGHT_MIN > SECOND_LEVEL_MAX;
        for slot in self.loops.by_use() {
            self.plan_loop(slot, has_head, flight);
        }
        self.counters.flights += u64::from(!flight.is_empty());
        debug_assert!(self.loops.keep_law(), "outstanding and wasted guesses exceed start and hits");
        debug_assert!(self.second_level <= SECOND_LEVEL_MAX, "too much is guessed from guesses");
    }

    fn plan_loop(&mut self, slot: usize, has_head: bool, flight: &mut Flight) {
        let Some(running) = self.loops.get(slot) else {
            return;
        };
        let mut allowed = running.allowed();
        let mut quotas: SmallVec<[Quota; 4]> = SmallVec::new();
        for stream in 0..running.streams.len() as u16 {
            let left = self.quota(slot, stream, has_head).min(allowed);
            if left > 0 {
                quotas.push(Quota { stream, left });
            }
        }
        if quotas.is_empty() {
            return;
        }
        self.plan_children(slot, has_head, &mut quotas, &mut allowed, flight);
        self.plan_root(slot, &mut quotas, &mut allowed, flight);
    }

    /// What the law and the costs allow a stream, if that is worth a flight.
    fn quota(&self, slot: usize, position: u16, has_head: bool) -> u32 {
        let Some(running) = self.loops.get(slot) else {
            return 0;
        };
        let Some(stream) = running.streams.get(usize::from(position)).filter(|stream| stream.is_live())
        else {
            return 0;
        };
        if !has_head && self.is_row_under_way(position, stream) {
            return 0;
        }
        let (allowed, bound) = (stream.allowed(), self.bound(running, stream));
        let is_free = has_head || stream.outstanding == 0;
        if allowed == 0 || (!is_free && allowed < stream.flight_min().min(half(bound))) {
            return 0;
        }
        let edge = self.edges.get(stream.edge).filter(|edge| edge.is_confirmed && !edge.history.is_off());
        let Some(edge) = edge else {
            return 0;
        };
        let template = stream.template.id;
        let probability = stream.probability(edge.history.hit_rate());
        if !self.costs.is_executed(template) || !self.costs.pays(template, probability) {
            return 0;
        }
        let is_cold = stream.hits < 8 && edge.history.weight() < 8;
        let unanswered = self.costs.unanswered_max(template, probability, is_cold) / running.live_streams();
        let unanswered = unanswered.max(1);
        let left = allowed
            .min(bound.saturating_sub(stream.outstanding))
            .min(unanswered.saturating_sub(stream.unanswered))
            .min(before_usual_end(stream, edge));
        let worth = stream.flight_min().min(half(bound)).min(half(unanswered));
        if is_free || left >= worth { left } else { 0 }
    }

    /// Whether the program is about to ask for another template of the row where it stands, as it did at the row before.
    /// What both may guess then leaves together, and is waited for once.
    fn is_row_under_way(&self, position: u16, stream: &Stream) -> bool {
        let Some((frame, row)) = stream.last_place.and_then(|(id, row)| Some((self.frames.get(id)?, row)))
        else {
            return false;
        };
        frame.consumers.iter().any(|other| {
            let next = other.pending.front().map(|(row, _)| *row);
            other.stream != position && next == Some(row) && other.cursor == row.checked_sub(1)
        })
    }

    /// Answers that may wait for the program: for memory's sake, so that none gets old, and so that what comes from
    /// their own rows can be guessed in time.
    fn bound(&self, running: &Loop, stream: &Stream) -> u32 {
        let is_walked = |other: &Stream| {
            other.is_live()
                && other.depth > stream.depth
                && self.edges.get(other.edge).is_some_and(|edge| edge.from == stream.template.key)
        };
        let window = if running.streams.iter().any(is_walked) { ORIGINS_MAX } else { WINDOW_MAX };
        let bytes = (self.costs.waiting_max(stream.template.id) / running.live_streams()).max(1);
        window.min(bytes).min(stream.ahead_max())
    }

    /// Frames below the root: what is nearest to the program's place.
    fn plan_children(
        &mut self,
        slot: usize,
        has_head: bool,
        quotas: &mut SmallVec<[Quota; 4]>,
        allowed: &mut u32,
        flight: &mut Flight,
    ) {
        let Some(running) = self.loops.get(slot) else {
            return;
        };
        if running.streams.iter().all(|stream| stream.depth == 0 && !self.is_paging(stream.edge)) {
            return;
        }
        let children: SmallVec<[FrameId; 64]> = running.children.iter().copied().collect();
        let is_draining = running.streams.iter().all(|stream| stream.unanswered == 0)
            && running.streams.iter().any(|stream| stream.depth > 0 && stream.outstanding < FLIGHT_MIN);
        if !has_head && !is_draining {
            let ready: u32 = children.iter().map(|id| self.unplanned(slot, *id)).sum();
            if ready < FLIGHT_MIN {
                return;
            }
        }
        for id in children {
            self.plan_frame(slot, id, quotas, allowed, flight);
        }
        let frames = &self.frames;
        if let Some(running) = self.loops.get_mut(slot) {
            running.children.retain(|id| frames.get(*id).is_some());
        }
    }

    fn is_paging(&self, edge: u32) -> bool {
        self.edges.get(edge).is_some_and(|edge| edge.walk == Walk::Last)
    }

    /// Rows of a frame that no stream has decided on yet.
    fn unplanned(&self, slot: usize, id: FrameId) -> u32 {
        let (Some(frame), Some(running)) = (self.frames.get(id), self.loops.get(slot)) else {
            return 0;
        };
        let of_stream = |(position, stream): (usize, &Stream)| {
            let edge = self.edges.get(stream.edge).filter(|edge| edge.from == frame.template.key);
            let planned = frame.consumer(position as u16).map_or(0, |consumer| consumer.planned);
            edge.map_or(0, |_| frame.rows().saturating_sub(planned))
        };
        running.streams.iter().enumerate().map(of_stream).sum()
    }

    fn plan_root(
        &mut self,
        slot: usize,
        quotas: &mut SmallVec<[Quota; 4]>,
        allowed: &mut u32,
        flight: &mut Flight,
    ) {
        if let Some(root) = self.loops.get(slot).and_then(|running| running.root) {
            self.plan_frame(slot, root, quotas, allowed, flight);
        }
    }

    /// Guesses for the rows of one frame: row by row, in each the templates in the order of the program.
    fn plan_frame(
        &mut self,
        slot: usize,
        id: FrameId,
        quotas: &mut SmallVec<[Quota; 4]>,
        allowed: &mut u32,
        flight: &mut Flight,
    ) {
        for _ in 0..DECISIONS_MAX {
            let next = quotas
                .iter()
                .enumerate()
                .filter(|(_, quota)| quota.left > 0)
                .filter_map(|(position, quota)| {
                    self.next_row(slot, id, quota.stream).map(|row| (row, position))
                })
                .min();
            let Some((row, position)) = next.filter(|_| *allowed > 0) else {
                return;
            };
            let quota = &mut quotas[position];
            if self.guess(slot, quota.stream, id, row, flight) {
                quota.left -= 1;
                *allowed -= 1;
            }
        }
    }

    /// The next row of a frame that a stream has to decide on.
    fn next_row(&self, slot: usize, id: FrameId, position: u16) -> Option<u32> {
        let frame = self.frames.get(id)?;
        let stream = self.loops.stream(slot, position)?;
        let edge = self.edges.get(stream.edge).filter(|edge| edge.from == frame.template.key)?;
        let consumer = frame.consumer(position);
        let planned = consumer.map_or(0, |consumer| consumer.planned);
        if !frame.is_visible && self.is_second_full {
            return None;
        }
        match edge.walk {
            Walk::Rows => Some(planned).filter(|row| *row < frame.rows()),
            Walk::Last => self.next_page(frame, planned),
            Walk::Steps => {
                let consumer = consumer?;
                let ahead = consumer.cursor? + 1 + STEPS_AHEAD;
                let end = if consumer.end == 0 { ahead } else { consumer.end.min(ahead) };
                Some(planned).filter(|row| *row < end)
            }
        }
    }

    /// A page that has fewer rows than the one before is the last.
    fn next_page(&self, frame: &Frame, planned: u32) -> Option<u32> {
        if !frame.is_complete || planned >= frame.rows() {
            return None;
        }
        let before = frame.parent.and_then(|(id, _)| self.frames.get(id));
        let before = before.filter(|before| before.template == frame.template);
        before.is_none_or(|before| before.rows() <= frame.rows()).then(|| frame.rows() - 1)
    }

    /// Decides on a row: whether there is a guess.
    fn guess(&mut self, slot: usize, position: u16, id: FrameId, row: u32, flight: &mut Flight) -> bool {
        self.plan_past(id, position, row);
        let Some((frame, running)) = self.frames.get(id).zip(self.loops.get(slot)) else {
            return false;
        };
        let Some(stream) = running.streams.get(usize::from(position)) else {
            return false;
        };
        let Some(edge) = self.edges.get(stream.edge) else {
            return false;
        };
        if edge.filter.excludes(frame, row) {
            return false;
        }
        let (template, is_second) = (stream.template, !frame.is_visible);
        let place = Place { of_loop: slot, loop_serial: running.serial, stream: position, frame: id, row };
        let at = At::new(&self.frames, frame, row, stream.has_last.then_some(&stream.last));
        let mut fingerprint = 0;
        let tickets = &mut self.tickets;
        let added = flight.add(
            template.id,
            |bytes, values| edge.write(at, bytes, values),
            |bytes| {
                fingerprint = hash_bytes(bytes, 3);
                let entry = Entry {
                    template,
                    place: Some(place),
                    result: None,
                    state: State::Guessed,
                    is_answered: false,
                    is_second,
                };
                (!stream.fetched.contains(&fingerprint)).then(|| tickets.push(entry))
            },
        );
        let Some(ticket) = added else {
            return false;
        };
        self.guessed(&place, ticket, fingerprint, is_second);
        true
    }

    fn plan_past(&mut self, id: FrameId, position: u16, row: u32) {
        let Some(frame) = self.frames.get_mut(id) else {
            return;
        };
        if frame.consumer(position).is_none() {
            frame.consumers.push(Consumer { stream: position, ..Consumer::default() });
        }
        if let Some(consumer) = frame.consumer_mut(position) {
            consumer.planned = row + 1;
        }
    }

    fn guessed(&mut self, place: &Place, ticket: Ticket, fingerprint: u32, is_second: bool) {
        self.counters.guesses += 1;
        self.second_level += u32::from(is_second);
        self.is_second_full |= self.second_level >= SECOND_LEVEL_MAX;
        if let Some(consumer) =
            self.frames.get_mut(place.frame).and_then(|frame| frame.consumer_mut(place.stream))
        {
            consumer.pending.push_back((place.row, ticket));
        }
        if let Some(stream) = self.stream_at(place) {
            stream.outstanding += 1;
            stream.unanswered += 1;
            stream.note_fetched(fingerprint);
        }
        while let Some(oldest) = self.tickets.oldest_beyond() {
            self.waste(oldest, false);
            self.tickets.forget_oldest();
        }
    }

    /// Those of the rows whose values can be written and were not fetched before: they would have been guessed, if the
    /// filter let them.
    pub(crate) fn new_values(&self, place: &Place, rows: impl Iterator<Item = u32>) -> SmallVec<[u32; 32]> {
        let Some((frame, stream)) =
            self.frames.get(place.frame).zip(self.loops.stream(place.of_loop, place.stream))
        else {
            return SmallVec::new();
        };
        let Some(edge) = self.edges.get(stream.edge) else {
            return SmallVec::new();
        };
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        let is_new = |row: &u32| {
            bytes.clear();
            values.clear();
            let at = At::new(&self.frames, frame, *row, stream.has_last.then_some(&stream.last));
            edge.write(at, &mut bytes, &mut values) && !stream.fetched.contains(&hash_bytes(&bytes, 3))
        };
        rows.filter(is_new).collect()
    }

    /// The parameters of a guess, for the frame that its result becomes.
    pub(crate) fn fill_parameters(&mut self, id: FrameId, place: &Place) {
        let mut guess = Flight::default();
        if let Some((frame, stream)) =
            self.frames.get(place.frame).zip(self.loops.stream(place.of_loop, place.stream))
        {
            let at = At::new(&self.frames, frame, place.row, stream.has_last.then_some(&stream.last));
            if let Some(edge) = self.edges.get(stream.edge) {
                guess.add(0, |bytes, values| edge.write(at, bytes, values), |_| Some(Ticket(0)));
            }
        }
        let values: SmallVec<[Value<'_>; 8]> =
            guess.guesses().next().into_iter().flat_map(|guess| guess.values()).collect();
        if let Some(frame) = self.frames.get_mut(id) {
            frame.parameters.set(&values);
        }
    }
}

/// Guesses until the statement with which most loops of the edge break off. One that goes on behind it has no end that
/// is known.
fn before_usual_end(stream: &Stream, edge: &Edge) -> u32 {
    match edge.history.breaks_after() {
        Some(usual) if stream.depth == 0 && stream.statements <= usual => {
            (usual - stream.statements).saturating_sub(stream.outstanding)
        }
        _ => u32::MAX,
    }
}

/// A flight leaves when half of what it could be at most is free, so that the pipe never drains.
fn half(most: u32) -> u32 {
    (most / 2).max(1)
}
