//! Tables that are asked for every exchange.
//!
//! Their keys are ids that the analyzer gave and values that were hashed with a secret key, so nobody can choose them
//! to collide.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use foldhash::{fast, quality};

pub(super) type Table<K, V> = HashMap<K, V, fast::RandomState>;
pub(super) type Set<K> = HashSet<K, fast::RandomState>;

/// One number for a set of parameters: the same for equal ones.
pub(super) fn digest(parameters: &[u64]) -> u64 {
    quality::FixedState::default().hash_one(parameters)
}
