//! Guesses that are served, passed by or given up; loops that end.

use std::time::Duration;

use smallvec::SmallVec;

use crate::edge::Walk;
use crate::frame::{Consumer, FrameId};
use crate::predictor::{DEPTH_MAX, Predictor};
use crate::stream::Stream;
use crate::tickets::{Entry, Place, State};
use crate::value::Ticket;

/// Rows of one jump that the filter learns from: those next to where it ends.
const JUMP_ROWS: usize = 32;

/// Rows searched for a repeat.
const REPEAT_ROWS: u32 = 32;

impl Predictor {
    /// The stream of a place, if its loop still runs.
    pub(crate) fn stream_at(&mut self, place: &Place) -> Option<&mut Stream> {
        let running = self.loops.get_mut(place.of_loop)?;
        if running.serial != place.loop_serial {
            return None;
        }
        running.streams.get_mut(usize::from(place.stream))
    }

    /// The level of what comes from a place's row; `None` if it is too deep, or the loop is over.
    pub(crate) fn level_below(&self, place: &Place) -> Option<u8> {
        let running = self.loops.get(place.of_loop).filter(|running| running.serial == place.loop_serial)?;
        let stream = running.streams.get(usize::from(place.stream))?;
        let is_page = self.edges.get(stream.edge).is_some_and(|edge| edge.walk == Walk::Last);
        let depth = stream.depth + u8::from(!is_page);
        (depth <= DEPTH_MAX).then_some(depth)
    }

    /// The program asked for a guess.
    pub(crate) fn hit(&mut self, now: Duration, ticket: Ticket, entry: &Entry) {
        let was_wasted = entry.state == State::Wasted;
        if let Some(entry) = self.tickets.get_mut(ticket) {
            entry.state = State::Served;
        }
        self.counters.hits += 1;
        self.counters.wasted -= u64::from(was_wasted);
        self.costs.earn(entry.template.id);
        self.see(entry.result);
        let Some(place) = entry.place else {
            return;
        };
        self.second_level -= u32::from(entry.is_second && !was_wasted);
        let Some(stream) = self.stream_at(&place) else {
            return;
        };
        stream.hits += 1;
        match was_wasted {
            true => stream.wasted = stream.wasted.saturating_sub(1),
            false => stream.outstanding = stream.outstanding.saturating_sub(1),
        }
        let edge = stream.edge;
        if let Some(edge) = self.edges.get_mut(edge) {
            edge.history.settle(true);
        }
        if let Some(consumer) =
            self.frames.get_mut(place.frame).and_then(|frame| frame.consumer_mut(place.stream))
        {
            if consumer.pending.front() == Some(&(place.row, ticket)) {
                consumer.pending.pop_front();
            } else {
                consumer.pending.retain(|(_, other)| *other != ticket);
            }
        }
        self.step(now, &place);
    }

    /// The program asked again for what it had: the loop is at the next row that has the same value.
    pub(crate) fn repeated(&mut self, now: Duration, entry: &Entry) {
        let Some(place) = entry.place else {
            return;
        };
        let Some(stream) = self.loops.stream(place.of_loop, place.stream) else {
            return;
        };
        let Some((_, column)) = self.edges.get(stream.edge).and_then(|edge| edge.anchor()) else {
            return;
        };
        let Some(frame) = self.frames.get(place.frame) else {
            return;
        };
        let after =
            frame.consumer(place.stream).and_then(|consumer| consumer.cursor).map_or(0, |row| row + 1);
        let value = frame.fingerprint(place.row, column);
        let row = (after..frame.rows().min(after + REPEAT_ROWS))
            .find(|row| frame.fingerprint(*row, column) == value);
        if let Some(row) = row {
            self.step(now, &Place { row, ..place });
        }
    }

    /// The program is at a place, by an answer from memory.
    fn step(&mut self, now: Duration, place: &Place) {
        if self.stream_at(place).is_none() {
            return;
        }
        // one that was passed by and is asked for after all does not turn the loop back
        let cursor = self.cursor_at(place);
        let was_expected = cursor.is_some_and(|cursor| place.row < cursor) || self.advance(place);
        self.touch(place.frame);
        if let Some(stream) = self.stream_at(place) {
            stream.consumed(now, was_expected);
            stream.last_place = Some((place.frame, cursor.map_or(place.row, |cursor| cursor.max(place.row))));
        }
        self.loops.restart(place.of_loop, place.stream);
    }

    /// A guess's result is now one that the program has seen.
    fn see(&mut self, result: Option<FrameId>) {
        let Some(id) = result else {
            return;
        };
        let template = self.frames.get(id).map(|frame| frame.template.id);
        template.into_iter().for_each(|template| self.costs.result_seen(template));
        if let Some(frame) = self.frames.get_mut(id) {
            frame.is_visible = true;
            frame.touched = self.clock;
            self.make_room(Some(id));
            self.turn_page(id);
        }
    }

    /// The next page of a list takes the place of the one before as the loop's root.
    pub(crate) fn turn_page(&mut self, id: FrameId) {
        let Some(frame) = self.frames.get(id).filter(|frame| frame.depth == 0 && frame.is_visible) else {
            return;
        };
        if let Some(running) = frame.of_loop.and_then(|slot| self.loops.get_mut(slot)) {
            running.root = Some(id);
            running.children.retain(|child| *child != id);
        }
    }

    /// Keeps a frame, and those that it came from, from being the oldest.
    pub(crate) fn touch(&mut self, id: FrameId) {
        let mut next = Some(id);
        for _ in 0..=DEPTH_MAX {
            let Some(frame) = next.and_then(|id| self.frames.get_mut(id)) else {
                break;
            };
            frame.touched = self.clock;
            next = frame.parent.map(|(id, _)| id);
            if let Some(running) = frame.of_loop.and_then(|slot| self.loops.get_mut(slot)) {
                running.touched = self.clock;
                next = next.or(running.root);
            }
        }
    }

    /// A guess that nobody will ask for: because it was wrong, or left over.
    pub(crate) fn waste(&mut self, ticket: Ticket, is_wrong: bool) {
        let Some(entry) = self.tickets.get_mut(ticket) else {
            return;
        };
        if !matches!(entry.state, State::Guessed | State::Ready) {
            return;
        }
        entry.state = State::Wasted;
        let entry = *entry;
        self.counters.wasted += 1;
        self.costs.spend(entry.template.id);
        self.second_level -= u32::from(entry.is_second);
        let Some(stream) = entry.place.and_then(|place| self.stream_at(&place)) else {
            return;
        };
        stream.outstanding = stream.outstanding.saturating_sub(1);
        stream.wasted += 1;
        let edge = stream.edge;
        if let Some(edge) = self.edges.get_mut(edge).filter(|_| is_wrong) {
            edge.history.settle(false);
        }
    }

    /// The program is at a row: what was guessed for rows before it is wasted, what came from them is over. Whether it
    /// is the row that was expected.
    pub(crate) fn advance(&mut self, place: &Place) -> bool {
        let before = self.cursor_at(place);
        if before == Some(place.row) {
            return true;
        }
        let is_backward = before.is_some_and(|before| place.row < before);
        let was_expected = !is_backward && self.was_expected(place, before.map_or(0, |row| row + 1));
        let mut passed: SmallVec<[Ticket; 8]> = SmallVec::new();
        let Some(consumer) =
            self.frames.get_mut(place.frame).and_then(|frame| frame.consumer_mut(place.stream))
        else {
            return false;
        };
        consumer.cursor = Some(place.row);
        if consumer.end > 0 && place.row >= consumer.end {
            consumer.end = u32::MAX; // a shorter result was not the last one: it was no page
        }
        while let Some((_, ticket)) = consumer.pending.front().filter(|(row, _)| *row < place.row) {
            passed.push(*ticket);
            consumer.pending.pop_front();
        }
        // a guess for this very row would have been served if it were right, or young enough: those behind it are no
        // better
        let is_off = is_backward || consumer.pending.front().is_some_and(|(row, _)| *row == place.row);
        if is_off {
            passed.extend(consumer.pending.drain(..).map(|(_, ticket)| ticket));
        }
        consumer.planned = if is_off { place.row + 1 } else { consumer.planned.max(place.row + 1) };
        // the program has left out what else was guessed for rows before, or sends another statement instead
        let others = self.frames.get_mut(place.frame).map_or(&mut [][..], |frame| &mut frame.consumers[..]);
        for other in others.iter_mut().filter(|other| other.stream != place.stream) {
            while let Some((_, ticket)) = other.pending.front().filter(|(row, _)| *row < place.row) {
                passed.push(*ticket);
                other.pending.pop_front();
            }
        }
        passed.into_iter().for_each(|ticket| self.waste(ticket, true));
        if is_off {
            if let Some(stream) = self.stream_at(place) {
                stream.fetched.clear();
            }
        }
        self.close_before(place);
        was_expected
    }

    fn cursor_at(&mut self, place: &Place) -> Option<u32> {
        let frame = self.frames.get_mut(place.frame)?;
        if frame.consumer(place.stream).is_none() {
            let stream = place.stream;
            frame.consumers.push(Consumer { stream, ..Consumer::default() });
        }
        frame.consumer(place.stream)?.cursor
    }

    /// Whether no row between `from` and the place would have been guessed. The filter learns from the jump.
    fn was_expected(&mut self, place: &Place, from: u32) -> bool {
        let Some(edge) = self.loops.stream(place.of_loop, place.stream).map(|stream| stream.edge) else {
            return false;
        };
        if self.edges.get(edge).is_some_and(|edge| edge.walk != Walk::Rows) {
            return place.row == from || from == 0;
        }
        let skipped = self.new_values(place, (from..place.row).rev().take(JUMP_ROWS));
        let Some(frame) = self.frames.get(place.frame) else {
            return false;
        };
        let Some(edge) = self.edges.get_mut(edge) else {
            return false;
        };
        let was_expected = skipped.iter().all(|row| edge.filter.excludes(frame, *row));
        edge.filter.jumped(frame, skipped.into_iter(), place.row);
        was_expected
    }

    /// What came from rows before the place is over, as far as the program goes row by row.
    fn close_before(&mut self, place: &Place) {
        let Some(running) = self.loops.get(place.of_loop) else {
            return;
        };
        if running.streams.iter().all(|stream| stream.depth == 0) && running.children.is_empty() {
            return;
        }
        let over: SmallVec<[FrameId; 8]> = self
            .frames
            .iter()
            .filter(|(id, frame)| {
                frame.of_loop == Some(place.of_loop)
                    && frame.parent.is_some_and(|(parent, row)| parent == place.frame && row < place.row)
                    && running.root != Some(*id)
            })
            .map(|(id, _)| id)
            .collect();
        for id in over {
            self.close(id);
        }
    }

    /// The program is done with a frame: its guesses are wasted; if it has seen the frame, its rows stay known.
    fn close(&mut self, id: FrameId) {
        self.waste_pending(id, true);
        let Some(frame) = self.frames.get_mut(id) else {
            return;
        };
        frame.consumers.clear();
        if let Some(running) = frame.of_loop.take().and_then(|slot| self.loops.get_mut(slot)) {
            running.children.retain(|child| *child != id);
        }
        if !frame.is_visible {
            self.frames.release(id);
        }
    }

    fn waste_pending(&mut self, id: FrameId, is_wrong: bool) {
        let mut wasted: SmallVec<[Ticket; 8]> = SmallVec::new();
        if let Some(frame) = self.frames.get_mut(id) {
            for consumer in &mut frame.consumers {
                wasted.extend(consumer.pending.drain(..).map(|(_, ticket)| ticket));
            }
        }
        wasted.into_iter().for_each(|ticket| self.waste(ticket, is_wrong));
    }

    /// Forgets a frame, and the loop whose root it is.
    pub(crate) fn drop_frame(&mut self, id: FrameId) {
        self.waste_pending(id, false);
        let Some(slot) = self.frames.get(id).map(|frame| frame.of_loop) else {
            return;
        };
        if let Some(slot) = slot {
            match self.loops.get_mut(slot) {
                Some(running) if running.root == Some(id) => self.end_loop(slot),
                Some(running) => running.children.retain(|child| *child != id),
                None => {}
            }
        }
        self.frames.release(id);
    }

    /// A loop is over: what it did is remembered, frames that only it needed go.
    pub(crate) fn end_loop(&mut self, slot: usize) {
        let frames = self.frames.of_loop(slot);
        frames.iter().for_each(|id| self.waste_pending(*id, false));
        let Some(ended) = self.loops.end(slot) else {
            return;
        };
        for (position, stream) in ended.streams.iter().enumerate().filter(|(_, stream)| stream.statements > 0)
        {
            let rows_were_left = ended.root.and_then(|root| self.frames.get(root)).is_some_and(|root| {
                let consumer = root.consumer(position as u16);
                consumer.and_then(|consumer| consumer.cursor).is_some_and(|row| row + 1 < root.rows())
            });
            let Some(edge) = self.edges.get_mut(stream.edge) else {
                continue;
            };
            edge.history.judge(stream.hits, stream.wasted);
            if edge.walk == Walk::Rows {
                edge.history.looped(stream.statements, rows_were_left);
            }
        }
        for id in frames {
            let Some(frame) = self.frames.get_mut(id) else {
                continue;
            };
            frame.of_loop = None;
            frame.consumers.clear();
            if !frame.is_visible {
                self.frames.release(id);
            }
        }
    }

    /// Gives up all guesses; loops keep their position.
    pub(crate) fn forget_guesses(&mut self) {
        let frames: SmallVec<[FrameId; 16]> = self.frames.iter().map(|(id, _)| id).collect();
        for id in frames {
            self.waste_pending(id, false);
            let Some(frame) = self.frames.get_mut(id) else {
                continue;
            };
            for consumer in &mut frame.consumers {
                consumer.planned = consumer.cursor.map_or(0, |row| row + 1);
            }
            if !frame.is_visible {
                self.drop_frame(id);
            }
        }
        for slot in self.loops.by_use() {
            let streams = self.loops.get_mut(slot).map(|running| &mut running.streams);
            for stream in streams.into_iter().flatten() {
                stream.fetched.clear();
                stream.streak = 0;
            }
        }
    }

    /// Pages and counters end with the first page that has fewer rows than the first one.
    pub(crate) fn note_last_page(&mut self, entry: &Entry, rows: u64) {
        let Some(place) = entry.place else {
            return;
        };
        let Some(edge) = self.loops.stream(place.of_loop, place.stream).map(|stream| stream.edge) else {
            return;
        };
        if self.edges.get(edge).is_none_or(|edge| edge.walk != Walk::Steps) {
            return;
        }
        let Some(frame) = self.frames.get_mut(place.frame).filter(|frame| u64::from(frame.rows()) > rows)
        else {
            return;
        };
        if let Some(consumer) = frame.consumer_mut(place.stream) {
            consumer.end = match consumer.end {
                0 => place.row + 1,
                u32::MAX => u32::MAX,
                end => end.min(place.row + 1),
            };
        }
    }
}
