//! Texts that the sessions of one gateway share, within a bound.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use onetrip_sql::Lifter;

use crate::lazy::Lazy;
use crate::readings::Readings;
use crate::statements::Text;

/// Bytes of all texts that the sessions of a gateway hold, at most.
pub(crate) const TEXTS_BYTES_MAX: usize = 64 << 20;
/// What a text takes besides its bytes.
const OVERHEAD_BYTES: usize = 64;
/// After a sweep that gave back little, the next one waits for so many refusals.
const REFUSALS_PER_SWEEP: usize = 1024;

/// Templates' texts and scopes' labels, once for all sessions of a gateway.
#[derive(Debug, Default)]
pub struct Texts {
    state: Mutex<State>,
    read: Option<Box<Read>>,
}

/// What was found in the latest texts of statements, for sessions that only watch.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// PostgreSQL's.
    pub(crate) statements: Readings<Text>,
    /// MySQL's: how many `?` are in it.
    pub(crate) commands: Readings<u16>,
    /// Reads those that are new, so that not each session has room for the longest of its own.
    pub(crate) lifter: Mutex<Lifter>,
}

/// What reads one text.
#[derive(Debug)]
pub(crate) enum Scanner<'a> {
    Common(MutexGuard<'a, Lifter>),
    Own(&'a mut Lazy<Lifter>),
}

impl Scanner<'_> {
    pub(crate) fn get(&mut self) -> &mut Lifter {
        match self {
            Self::Common(lifter) => lifter,
            Self::Own(lifter) => lifter,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    known: HashSet<Arc<[u8]>, RandomState>,
    bytes: usize,
    refusals: usize,
}

impl Texts {
    /// Those of sessions that only watch: a text that comes again is not looked into again. The latest that came twice are kept
    /// with their values, in memory alone.
    pub fn remembered() -> Self {
        Self { read: Some(Box::default()), ..Self::default() }
    }

    /// What was found in the latest texts of statements; none where these are not kept.
    pub(crate) fn read(&self) -> Option<&Read> {
        self.read.as_deref()
    }

    /// What reads one text: what sessions that only watch share, if none of them is using it, or a session's own.
    pub(crate) fn scanner<'a>(&'a self, own: &'a mut Lazy<Lifter>) -> Scanner<'a> {
        match self.read().and_then(|read| read.lifter.try_lock().ok()) {
            Some(common) => Scanner::Common(common),
            None => Scanner::Own(own),
        }
    }

    /// The text as all sessions share it; `None` while they hold too much.
    pub(crate) fn share(&self, text: &[u8]) -> Option<Arc<[u8]>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = state.known.get(text) {
            return Some(Arc::clone(known));
        }
        if !state.has_room(text.len()) {
            return None;
        }
        let shared: Arc<[u8]> = text.into();
        state.bytes += text.len() + OVERHEAD_BYTES;
        state.known.insert(Arc::clone(&shared));
        Some(shared)
    }
}

impl State {
    /// Whether one more text has room, after those that no session holds any more have gone.
    fn has_room(&mut self, bytes: usize) -> bool {
        let fits = |state: &Self| state.bytes + bytes + OVERHEAD_BYTES <= TEXTS_BYTES_MAX;
        if fits(self) {
            return true;
        }
        if self.refusals % REFUSALS_PER_SWEEP == 0 {
            self.known.retain(|text| Arc::strong_count(text) > 1);
            self.bytes = self.known.iter().map(|text| text.len() + OVERHEAD_BYTES).sum();
        }
        let has_room = fits(self);
        self.refusals = if has_room { 0 } else { self.refusals + 1 };
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_a_text_and_hold_no_more_than_the_bound() {
        let texts = Texts::default();
        let one = texts.share(b"SELECT $1").unwrap();
        assert!(Arc::ptr_eq(&one, &texts.share(b"SELECT $1").unwrap()));
        let long = |number: usize| [number.to_le_bytes().as_slice(), &[b'x'; 64 * 1024]].concat();
        let held: Vec<_> = (0..2000).filter_map(|number| texts.share(&long(number))).collect();
        assert!((1000..1024).contains(&held.len()), "{} of 64 KiB", held.len());
        assert!(texts.share(&long(5000)).is_none() && texts.share(&long(0)).is_some());
        drop(held);
        // What nobody holds makes room, at the latest when so many were refused.
        assert!((0..=REFUSALS_PER_SWEEP).any(|number| texts.share(&long(6000 + number)).is_some()));
        assert!(Arc::ptr_eq(&one, &texts.share(b"SELECT $1").unwrap()), "it is still held");
    }
}
