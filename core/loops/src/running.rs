//! The loops that a program is in.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::frame::FrameId;
use crate::history::START_MAX;
use crate::stream::Stream;
use crate::value::Template;

/// Templates of one loop, nested loops included.
pub(crate) const STREAMS_MAX: usize = 16;

/// A root frame, the frames that come from its rows, and what walks them.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    /// Tells it from others that used the slot; zero if free.
    pub(crate) serial: u64,
    pub(crate) root: Option<FrameId>,
    /// In the order in which the program first sent their templates.
    pub(crate) streams: Vec<Stream>,
    /// Frames below the root with rows that may not be decided on yet, in the order of their answers.
    pub(crate) children: VecDeque<FrameId>,
    /// When it was last of use, in events.
    pub(crate) touched: u64,
}

impl Loop {
    pub(crate) fn stream_of(&self, edge: u32) -> Option<u16> {
        self.streams.iter().position(|stream| stream.edge == edge).map(|position| position as u16)
    }

    /// Templates that are guessed: they share what the costs allow. At least one.
    pub(crate) fn live_streams(&self) -> u32 {
        (self.streams.iter().filter(|stream| stream.is_live()).count() as u32).max(1)
    }

    /// Guesses that the law allows the loop as a whole.
    pub(crate) fn allowed(&self) -> u32 {
        let sum = |count: fn(&Stream) -> u32| self.streams.iter().map(count).fold(0, u32::saturating_add);
        let law = sum(|stream| stream.start).min(START_MAX).max(sum(|stream| stream.hits));
        law.saturating_sub(self.wasted()).saturating_sub(sum(|stream| stream.outstanding))
    }

    /// Guesses of all its streams that nobody asked for.
    pub(crate) fn wasted(&self) -> u32 {
        self.streams.iter().map(|stream| stream.wasted).fold(0, u32::saturating_add)
    }
}

/// The loops of a session, by slot.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    slots: Vec<Loop>,
    next_serial: u64,
}

impl Loops {
    /// A loop whose streams together have wasted all they may gets another chance with the one that can be foreseen.
    pub(crate) fn restart(&mut self, slot: usize, position: u16) {
        let Some(running) = self.get_mut(slot).filter(|running| running.allowed() == 0) else { return };
        if running.streams.iter().any(|stream| stream.outstanding > 0) {
            return;
        }
        let wasted = running.wasted();
        if let Some(stream) = running.streams.get_mut(usize::from(position)) {
            stream.restart_beside(wasted);
        }
    }

    /// A loop over a frame's rows.
    pub(crate) fn start(&mut self, root: FrameId) -> usize {
        self.next_serial += 1;
        let free = self.slots.iter().position(|running| running.serial == 0);
        let slot = free.unwrap_or_else(|| {
            self.slots.push(Loop::default());
            self.slots.len() - 1
        });
        self.slots[slot].serial = self.next_serial;
        self.slots[slot].root = Some(root);
        slot
    }

    /// Frees the slot and gives what was there.
    pub(crate) fn end(&mut self, slot: usize) -> Option<Loop> {
        self.get(slot)?;
        Some(std::mem::take(&mut self.slots[slot]))
    }

    /// The stream of an edge, made if need be; `None` if the loop has too many.
    pub(crate) fn stream_for(
        &mut self,
        slot: usize,
        edge: u32,
        template: Template,
        depth: u8,
    ) -> Option<u16> {
        let running = self.get_mut(slot)?;
        if let Some(stream) = running.stream_of(edge) {
            running.streams[usize::from(stream)].template = template;
            return Some(stream);
        }
        if running.streams.len() >= STREAMS_MAX {
            return None;
        }
        running.streams.push(Stream::new(edge, template, depth));
        Some((running.streams.len() - 1) as u16)
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Loop> {
        self.slots.get(slot).filter(|running| running.serial != 0)
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Loop> {
        self.slots.get_mut(slot).filter(|running| running.serial != 0)
    }

    pub(crate) fn stream(&self, slot: usize, stream: u16) -> Option<&Stream> {
        self.get(slot)?.streams.get(usize::from(stream))
    }

    pub(crate) fn stream_mut(&mut self, slot: usize, stream: u16) -> Option<&mut Stream> {
        self.get_mut(slot)?.streams.get_mut(usize::from(stream))
    }

    /// Whether a loop has statements of this edge.
    pub(crate) fn use_edge(&self, edge: u32) -> bool {
        self.slots.iter().any(|running| running.stream_of(edge).is_some())
    }

    /// An edge was learnt anew: what its streams took for evidence is none.
    pub(crate) fn restart_edge(&mut self, edge: u32) {
        for stream in self.slots.iter_mut().flat_map(|running| &mut running.streams) {
            if stream.edge == edge {
                stream.evidence = 0;
                stream.has_last = false;
                stream.last_place = None;
            }
        }
    }

    /// Whether no stream, and no loop as a whole, has more outstanding and wasted than the law allows.
    pub(crate) fn keep_law(&self) -> bool {
        self.slots.iter().all(|running| {
            let (start, hits, unserved) = running.streams.iter().fold((0, 0, 0), |sums, stream| {
                (sums.0 + stream.start, sums.1 + stream.hits, sums.2 + stream.outstanding + stream.wasted)
            });
            unserved <= start.min(START_MAX).max(hits) && running.streams.iter().all(Stream::keeps_law)
        })
    }

    /// Whether the program is in a loop.
    pub(crate) fn are_any(&self) -> bool {
        self.slots.iter().any(|running| running.serial != 0)
    }

    /// Slots in use, the latest first.
    pub(crate) fn by_use(&self) -> SmallVec<[usize; 8]> {
        if !self.are_any() {
            return SmallVec::new(); // mostly: each statement asks
        }
        let mut slots: SmallVec<[usize; 8]> =
            (0..self.slots.len()).filter(|slot| self.slots[*slot].serial != 0).collect();
        slots.sort_unstable_by_key(|slot| std::cmp::Reverse(self.slots[*slot].touched));
        slots
    }
}
