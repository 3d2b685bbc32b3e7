//! Statements that come in another form from some time on: drivers that prepare one take its results in binary, or leave
//! out what it was declared with. The loop goes on where it was.

use smallvec::SmallVec;

use crate::edge::Walk;
use crate::frame::{Consumer, FrameId};
use crate::history::START_MAX;
use crate::predictor::Predictor;
use crate::value::{Template, Ticket};

impl Predictor {
    /// A statement comes in a form that nothing is known of. If a loop has it in another one, that is taken over: where its
    /// values come from, and where the program is. What was guessed in the old form nobody will ask for.
    pub(crate) fn meet_form(&mut self, template: Template) {
        if !self.edges.of_target(template.key).is_empty() {
            return;
        }
        let is_kin = |position: &(usize, u16)| {
            let stream = self.loops.stream(position.0, position.1);
            let stream = stream.filter(|stream| stream.template.kin == template.kin);
            let edge = stream.and_then(|stream| self.edges.get(stream.edge));
            edge.is_some_and(|edge| edge.is_confirmed && edge.walk == Walk::Rows)
        };
        let all = self.loops.by_use().into_iter().flat_map(|slot| {
            let count = self.loops.get(slot).map_or(0, |running| running.streams.len() as u16);
            (0..count).map(move |position| (slot, position))
        });
        if let Some((slot, position)) = all.into_iter().find(is_kin) {
            self.take_over(slot, position, template);
        }
    }

    fn take_over(&mut self, slot: usize, position: u16, template: Template) -> Option<()> {
        let (edge, depth, hits) = {
            let old = self.loops.stream(slot, position)?;
            (old.edge, old.depth, old.hits)
        };
        let known = self.edges.get(edge)?.in_form(template.key);
        let edge = self.edges.insert(known)?;
        let taken = self.loops.stream_for(slot, edge, template, depth)?;
        for id in self.frames.of_loop(slot) {
            self.give_up(id, position, taken);
        }
        let running = self.loops.get_mut(slot)?;
        // the guesses were not wrong: as many may follow in the new form as would have in the old one
        running.streams[usize::from(taken)].start = (running.wasted() + hits.max(1)).min(START_MAX);
        running.streams[usize::from(position)].is_left = true;
        Some(())
    }

    /// One stream's guesses from a frame are for nothing, and another goes on in its place.
    fn give_up(&mut self, id: FrameId, position: u16, taken: u16) {
        let Some(frame) = self.frames.get_mut(id) else { return };
        let Some(old) = frame.consumer_mut(position) else { return };
        let (cursor, end) = (old.cursor, old.end);
        let pending: SmallVec<[Ticket; 32]> = old.pending.drain(..).map(|(_, ticket)| ticket).collect();
        let planned = cursor.map_or(0, |row| row + 1);
        frame.consumers.push(Consumer { stream: taken, cursor, planned, end, ..Consumer::default() });
        pending.into_iter().for_each(|ticket| self.waste(ticket, false));
    }
}
