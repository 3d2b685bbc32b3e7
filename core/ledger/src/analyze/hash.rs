//! Tables that are asked for every exchange, and lists that are filled for one result after another.
//!
//! Their keys are ids that the analyzer gave and values that were hashed with a secret key, so nobody can choose them
//! to collide.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use foldhash::{fast, quality};

/// Values for which a list may always have room.
const ROOM_KEPT: usize = 16;

pub(super) type Table<K, V> = HashMap<K, V, fast::RandomState>;
pub(super) type Set<K> = HashSet<K, fast::RandomState>;

/// Empties a list that will have so many values next. Room for many more goes: a large result may be the only one of its
/// connection.
pub(super) fn clear(values: &mut Vec<u32>, next: usize) {
    values.clear();
    if values.capacity() > 4 * next.max(ROOM_KEPT) {
        values.shrink_to(next);
    }
}

/// One number for a set of parameters: the same for equal ones.
pub(super) fn digest(parameters: &[u64]) -> u64 {
    quality::FixedState::default().hash_one(parameters)
}
