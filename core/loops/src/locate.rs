//! Where a statement's values come from.

use std::time::Duration;

use smallvec::SmallVec;

use crate::canonical::{hash_bytes, hash_of};
use crate::edge::{At, Edge, Walk};
use crate::frame::{Frame, FrameId, Frames};
use crate::history::START_MAX;
use crate::predictor::Predictor;
use crate::tickets::Place;
use crate::value::{Arrival, Value};
use crate::values::Values;

/// Rows behind the last one that are looked at first, one by one.
const NEAR_ROWS: u32 = 32;

/// The same for a counter.
const NEAR_STEPS: u32 = 4;

/// Rows with the wanted value that are tried when the near ones are not it.
const FAR_TRIES: usize = 8;

/// Statements in a row that a confirmed edge fails to explain until it is doubted.
const FAILURES_MAX: u32 = 16;

/// What explains a statement.
#[derive(Debug, Clone, Copy)]
struct Found {
    edge: u32,
    frame: FrameId,
    row: u32,
    /// The loop went on, or began; else it jumped.
    is_near: bool,
}

impl<'a> At<'a> {
    pub(crate) fn new(frames: &'a Frames, frame: &'a Frame, row: u32, last: Option<&'a Values>) -> Self {
        let parent = frame.parent.and_then(|(id, row)| frames.get(id).map(|parent| (parent, row)));
        Self { frame, row, parent, last }
    }
}

/// What tells one statement's values from another's: collisions cost a guess.
pub(crate) fn fingerprint_of(values: &[Value<'_>], scratch: &mut Vec<u8>) -> u32 {
    scratch.clear();
    values.iter().for_each(|value| scratch.extend_from_slice(value.bytes.unwrap_or_default()));
    hash_bytes(scratch, 3)
}

impl Predictor {
    /// Finds the row that explains the statement, and notes that the program is there. What is not explained may
    /// become an edge.
    pub(crate) fn locate(&mut self, now: Duration, arrival: &Arrival<'_>) -> Option<Place> {
        if arrival.values.is_empty() || !Values::fit(arrival.values) {
            return None;
        }
        self.meet_form(arrival.template);
        let mut edges: SmallVec<[u32; 8]> = self.edges.of_target(arrival.template.key).into();
        if edges.len() > 1 {
            // Rows that are there explain more than a counter that happens to agree with them.
            let doubt = |edge: &u32| self.edges.get(*edge).map(|edge| edge.walk);
            edges.sort_by(|a, b| {
                self.trust(*b).total_cmp(&self.trust(*a)).then_with(|| doubt(a).cmp(&doubt(b)))
            });
        }
        let (sure, unsure): (SmallVec<[u32; 8]>, SmallVec<[u32; 8]>) =
            edges.into_iter().partition(|edge| self.is_confirmed(*edge));
        let found = self.find_place(&sure, arrival.values);
        let place = found.and_then(|found| self.record(now, found, arrival, true));
        if place.is_some() && found.is_some_and(|found| found.is_near) {
            self.costs.explained(arrival.template.id);
            return place;
        }
        // nothing explains it, or a jump does: it may belong to another loop
        match self.locate_anew(now, arrival, &unsure) {
            Some((evidence, other)) if evidence >= 2 || place.is_none() => Some(other),
            _ => place,
        }
    }

    /// No edge that is sure explains it: the others are narrowed, and new ones begun. What has most evidence.
    fn locate_anew(&mut self, now: Duration, arrival: &Arrival<'_>, unsure: &[u32]) -> Option<(u32, Place)> {
        let mut best: Option<(u32, Place)> = None;
        let mut explained: SmallVec<[u32; 8]> = SmallVec::new();
        let mut is_sure = false;
        for &edge in unsure {
            let found = self.find_place(&[edge], arrival.values);
            let Some(place) = found.and_then(|found| self.record(now, found, arrival, !is_sure)) else {
                continue;
            };
            explained.push(edge);
            is_sure |= self.is_confirmed(edge);
            let evidence = self.stream_at(&place).map_or(0, |stream| stream.evidence);
            if best.is_none_or(|(most, _)| evidence > most) {
                best = Some((evidence, place));
            }
        }
        if is_sure {
            self.costs.explained(arrival.template.id);
        } else if self.costs.look_for_source(arrival.template.id) {
            let learnt = self.learn(now, arrival, &explained);
            best = best.or(learnt.map(|place| (1, place)));
        }
        best
    }

    fn is_confirmed(&self, edge: u32) -> bool {
        self.edges.get(edge).is_some_and(|edge| edge.is_confirmed)
    }

    /// Templates that are known to walk the rows of this one: what a loop may start with is for all of them.
    fn known_from(&self, from: u64) -> u32 {
        let edges = self.edges.of_origin(from).iter().filter_map(|edge| self.edges.get(*edge));
        edges.filter(|edge| edge.is_confirmed && edge.history.start().is_some()).count() as u32
    }

    fn trust(&self, edge: u32) -> f64 {
        self.edges.get(edge).map_or(0.0, |edge| edge.history.hit_rate())
    }

    /// Frames of an edge's origin that the program has seen: those that it walks already first, then the latest.
    fn frames_of(&self, edge: u32) -> SmallVec<[(bool, u64, FrameId); 8]> {
        let Some(from) = self.edges.get(edge).map(|edge| edge.from) else {
            return SmallVec::new();
        };
        let mut found: SmallVec<[(bool, u64, FrameId); 8]> = SmallVec::new();
        for (id, frame) in self.frames.iter() {
            if frame.is_visible && frame.rows() > 0 && frame.template.key == from {
                let running = frame.of_loop.and_then(|slot| self.loops.get(slot));
                let stream = running.and_then(|running| running.stream_of(edge));
                let is_walked = stream.is_some_and(|stream| frame.consumer(stream).is_some());
                found.push((is_walked, frame.touched, id));
            }
        }
        found.sort_unstable_by_key(|(is_walked, touched, _)| std::cmp::Reverse((*is_walked, *touched)));
        found
    }

    /// The row that gives these values: one that a loop goes on to if there is one, else one at the beginning of a
    /// frame, else any.
    fn find_place(&mut self, edges: &[u32], values: &[Value<'_>]) -> Option<Found> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut frames: SmallVec<[(u32, bool, FrameId); 8]> = SmallVec::new();
        for edge in edges {
            let of_edge = self.frames_of(*edge);
            frames.extend(of_edge.into_iter().map(|(is_walked, _, id)| (*edge, is_walked, id)));
        }
        for (edge, _, frame) in &frames {
            self.show_near(*edge, *frame);
        }
        let near = |(edge, _, frame): &(u32, bool, FrameId)| {
            let row = self.find_near(*edge, *frame, values, &mut scratch)?;
            Some(Found { edge: *edge, frame: *frame, row, is_near: true })
        };
        let (walked, others): (SmallVec<[_; 8]>, SmallVec<[_; 8]>) =
            frames.iter().copied().partition(|(_, is_walked, _)| *is_walked);
        let mut found = walked.iter().chain(&others).find_map(near);
        for &(edge, _, frame) in &frames {
            if found.is_none() {
                let row = self.find_far(edge, frame, values, &mut scratch);
                found = row.map(|row| Found { edge, frame, row, is_near: false });
            }
        }
        self.scratch = scratch;
        if found.is_none() {
            for (edge, ..) in frames {
                if let Some(edge) = self.edges.get_mut(edge) {
                    edge.failures += 1;
                    edge.is_confirmed &= edge.failures < FAILURES_MAX;
                }
            }
        }
        found
    }

    /// Looks into the rows that [`Self::find_near`] tries. All of a frame that a loop walks were looked into.
    fn show_near(&mut self, edge: u32, id: FrameId) {
        let is_by_rows = self.edges.get(edge).is_some_and(|edge| edge.walk == Walk::Rows);
        if let Some(frame) = self.frames.get_mut(id) {
            frame.unpack(if is_by_rows { NEAR_ROWS } else { u32::MAX });
        }
    }

    fn find_near(&self, edge: u32, id: FrameId, values: &[Value<'_>], scratch: &mut Vec<u8>) -> Option<u32> {
        let (frame, learnt) = (self.frames.get(id)?, self.edges.get(edge)?);
        let running = frame.of_loop.and_then(|slot| self.loops.get(slot));
        let stream = running.and_then(|running| running.stream_of(edge));
        let last = running.zip(stream).map(|(running, stream)| &running.streams[usize::from(stream)]);
        let last = last.filter(|stream| stream.has_last).map(|stream| &stream.last);
        let cursor = stream.and_then(|stream| frame.consumer(stream)).and_then(|consumer| consumer.cursor);
        let from = cursor.map_or(0, |row| row + 1);
        let mut fits = |row: u32| learnt.fits(At::new(&self.frames, frame, row, last), values, scratch);
        match learnt.walk {
            Walk::Last => Some(frame.rows() - 1).filter(|row| fits(*row)),
            Walk::Steps => (from..from + NEAR_STEPS).chain(cursor).find(|row| fits(*row)),
            Walk::Rows => {
                let (position, column) = learnt.anchor()?;
                let hash = hash_of(*values.get(position)?)?;
                let near = from..frame.rows().min(from + NEAR_ROWS);
                near.chain(cursor).find(|row| frame.may_be(*row, column, hash) && fits(*row))
            }
        }
    }

    fn find_far(
        &mut self,
        edge: u32,
        id: FrameId,
        values: &[Value<'_>],
        scratch: &mut Vec<u8>,
    ) -> Option<u32> {
        let learnt = self.edges.get(edge).filter(|edge| edge.walk == Walk::Rows)?;
        let (position, column) = learnt.anchor()?;
        let hash = hash_of(*values.get(position)?)?;
        let mut from = 0;
        for _ in 0..FAR_TRIES {
            let row = self.frames.get_mut(id)?.find(column, hash, from)?;
            let (frame, learnt) = (self.frames.get(id)?, self.edges.get(edge)?);
            let running = frame.of_loop.and_then(|slot| self.loops.get(slot));
            let stream =
                running.and_then(|running| running.streams.iter().find(|stream| stream.edge == edge));
            let last = stream.filter(|stream| stream.has_last).map(|stream| &stream.last);
            if learnt.fits(At::new(&self.frames, frame, row, last), values, scratch) {
                return Some(row);
            }
            from = row + 1;
        }
        None
    }

    /// Notes that the program is at a row: the edge's sources are narrowed, the loop moves on.
    fn record(
        &mut self,
        now: Duration,
        found: Found,
        arrival: &Arrival<'_>,
        may_confirm: bool,
    ) -> Option<Place> {
        let Found { edge, frame: id, row, .. } = found;
        let place = self.place_in_loop(edge, id, row, arrival)?;
        let is_evidence = self.narrow(edge, &place, arrival.values)?;
        let was_expected = self.advance(&place);
        self.touch(id);
        let template = self.frames.get(id)?.template;
        self.costs.result_used(template.id);
        let is_new = self.loops.stream(place.of_loop, place.stream).is_some_and(|stream| stream.start == 0);
        let start_max = START_MAX / if is_new { self.known_from(template.key).max(1) } else { 1 };
        let fingerprint = fingerprint_of(arrival.values, &mut self.scratch);
        let learnt = self.edges.get_mut(edge)?;
        let stream = self.loops.stream_mut(place.of_loop, place.stream)?;
        stream.evidence = match stream.last_place {
            None => 1,
            Some((before, last)) if before == id && row < last => 1,
            Some((before, last)) if is_evidence && (before != id || row > last) => stream.evidence + 1,
            Some(_) => stream.evidence,
        };
        stream.consumed(now, was_expected);
        stream.last.set(arrival.values);
        stream.has_last = true;
        stream.last_place = Some((id, row));
        stream.note_fetched(fingerprint);
        learnt.failures = 0;
        learnt.history.arrived();
        learnt.is_confirmed |= stream.evidence >= 2 && may_confirm && learnt.moves();
        if stream.start == 0 && learnt.is_confirmed && !learnt.history.is_off() {
            let known = learnt.history.start().map(|start| start.min(start_max).max(1));
            stream.start = known.unwrap_or(u32::from(stream.evidence >= 2));
        }
        self.loops.restart(place.of_loop, place.stream);
        Some(place)
    }

    fn place_in_loop(&mut self, edge: u32, id: FrameId, row: u32, arrival: &Arrival<'_>) -> Option<Place> {
        let frame = self.frames.get_mut(id)?;
        let of_loop = match frame.of_loop {
            Some(slot) => slot,
            None => {
                let slot = self.loops.start(id);
                frame.unpack(u32::MAX);
                frame.of_loop = Some(slot);
                frame.depth = 0;
                slot
            }
        };
        let stream = self.loops.stream_for(of_loop, edge, arrival.template, frame.depth)?;
        let loop_serial = self.loops.get(of_loop)?.serial;
        Some(Place { of_loop, loop_serial, stream, frame: id, row })
    }

    fn narrow(&mut self, edge: u32, place: &Place, values: &[Value<'_>]) -> Option<bool> {
        let frame = self.frames.get(place.frame)?;
        let stream = self.loops.stream(place.of_loop, place.stream)?;
        let at = At::new(&self.frames, frame, place.row, stream.has_last.then_some(&stream.last));
        Some(self.edges.get_mut(edge)?.narrow(at, values, &mut self.scratch))
    }

    /// Begins edges from the frames that have a row with the statement's values.
    fn learn(&mut self, now: Duration, arrival: &Arrival<'_>, explained: &[u32]) -> Option<Place> {
        let mut frames: SmallVec<[(u64, FrameId); 8]> = self
            .frames
            .iter()
            .filter(|(_, frame)| frame.is_visible && frame.rows() > 0)
            .map(|(id, frame)| (frame.touched, id))
            .collect();
        frames.sort_unstable_by_key(|(touched, _)| std::cmp::Reverse(*touched));
        let is_deep = self.costs.of(arrival.template.id).unexplained >= 2;
        let mut first = None;
        let mut has_paged = false;
        for (_, id) in frames {
            let Some(from) = self.frames.get(id).map(|frame| frame.template.key) else {
                continue;
            };
            let is_page = from == arrival.template.key;
            if is_page && std::mem::replace(&mut has_paged, true) {
                continue; // a page or a count goes on from the last one
            }
            let walks: &[Walk] = if is_page { &[Walk::Last, Walk::Steps] } else { &[Walk::Rows] };
            for walk in walks {
                let known = self.edges.find(from, arrival.template.key, *walk);
                if known.is_some_and(|edge| explained.contains(&edge) || self.is_confirmed(edge)) {
                    continue;
                }
                let place = self.learn_from(now, arrival, id, *walk, is_deep);
                first = first.or(place);
            }
        }
        first
    }

    fn learn_from(
        &mut self,
        now: Duration,
        arrival: &Arrival<'_>,
        id: FrameId,
        walk: Walk,
        is_deep: bool,
    ) -> Option<Place> {
        let row = match walk {
            Walk::Rows => best_row(self.frames.get_mut(id)?, arrival.values, is_deep)?,
            Walk::Last => self.frames.get(id)?.rows() - 1,
            Walk::Steps => 0,
        };
        if walk != Walk::Rows {
            self.frames.get_mut(id)?.unpack(u32::MAX);
        }
        let frame = self.frames.get(id)?;
        let from = frame.template.key;
        let at = At::new(&self.frames, frame, row, None);
        let learnt = Edge::learn(from, arrival.template.key, walk, at, arrival.values, &mut self.scratch)?;
        let edge = self.keep_edge(learnt)?;
        self.record(now, Found { edge, frame: id, row, is_near: true }, arrival, false)
    }

    /// Keeps what was just learnt: instead of an earlier attempt, if there was one, or of one that no loop uses.
    fn keep_edge(&mut self, learnt: Edge) -> Option<u32> {
        if let Some(edge) = self.edges.find(learnt.from, learnt.to, learnt.walk) {
            self.edges.replace(edge, learnt);
            self.loops.restart_edge(edge);
            return Some(edge);
        }
        if self.edges.is_full(learnt.to) {
            let mut known = self.edges.of_target(learnt.to).iter().copied();
            let edge = known.find(|edge| !self.is_confirmed(*edge) && !self.loops.use_edge(*edge))?;
            self.edges.replace(edge, learnt);
            return Some(edge);
        }
        self.edges.insert(learnt)
    }
}

/// The row that has most of the values, the first of them; near the beginning, or anywhere.
fn best_row(frame: &mut Frame, values: &[Value<'_>], is_deep: bool) -> Option<u32> {
    frame.unpack(NEAR_ROWS);
    let hashes: SmallVec<[u32; 8]> = values.iter().filter_map(|value| hash_of(*value)).collect();
    let columns = frame.columns() as u16;
    let mut best: Option<(usize, u32)> = None;
    for &hash in &hashes {
        for column in 0..columns {
            let near = (0..frame.rows().min(NEAR_ROWS)).find(|row| frame.may_be(*row, column, hash));
            let found = if is_deep { near.or_else(|| frame.find(column, hash, 0)) } else { near };
            let Some(row) = found else {
                continue;
            };
            let is_there = |hash: &&u32| (0..columns).any(|column| frame.may_be(row, column, **hash));
            let score = hashes.iter().filter(is_there).count();
            if best.is_none_or(|(most, first)| score > most || (score == most && row < first)) {
                best = Some((score, row));
            }
        }
    }
    best.map(|(_, row)| row)
}
