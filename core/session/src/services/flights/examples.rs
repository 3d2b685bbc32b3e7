//! What programs ask for that a loop may repeat: each kind of request, once, by what is the same in every run of it.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::time::Duration;

use foldhash::fast::RandomState;
use onetrip_ledger::Remedy;
use onetrip_loops::{Column, Template, Value};
use smallvec::SmallVec;

use crate::contract::SOURCE_BYTES_MAX;

/// Kinds of requests of one session that are told apart.
const EXAMPLES_MAX: usize = 1024;

/// One kind of request.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    /// Who asks the server for it ahead.
    pub(super) by: Remedy,
    /// The session's number of its template, by which it is known to only read.
    pub(crate) template: u32,
    /// The same for the predictor.
    pub(super) guessed: Template,
    /// Columns of its result, once they were described.
    pub(crate) columns: Vec<Column>,
    /// What its last run took beyond the way there and back.
    pub(super) last_execution: Option<Duration>,
}

/// A unit that asks for all rows of one statement, or opens one object.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Position of its example.
    pub(crate) example: u32,
    /// What the answer depends on.
    pub(crate) key: Vec<u8>,
    pub(crate) values: SmallVec<[Value<'a>; 8]>,
    /// A BEGIN is in front of it.
    pub(crate) begins: bool,
    /// It leaves a prepared statement of a name behind, so that the server has to see it.
    pub(crate) names: bool,
}

/// All that a session may guess at.
#[derive(Debug, Default)]
pub(super) struct Examples {
    ids: HashMap<Box<[u8]>, u32, RandomState>,
    list: Vec<Example>,
    hasher: foldhash::quality::FixedState,
}

impl Examples {
    pub(super) fn get(&self, example: u32) -> Option<&Example> {
        self.list.get(example as usize)
    }

    pub(super) fn get_mut(&mut self, example: u32) -> Option<&mut Example> {
        self.list.get_mut(example as usize)
    }

    /// The example of this name.
    pub(super) fn find(&self, name: &[u8]) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// One more, if there is room; those of the same `kin` have their values in common.
    pub(super) fn add(&mut self, by: Remedy, name: &[u8], kin: &[u8], template: u32) -> Option<u32> {
        if self.list.len() >= EXAMPLES_MAX || name.len() > 2 * SOURCE_BYTES_MAX {
            return None;
        }
        let id = self.list.len() as u32;
        let guessed = Template { id, key: self.hasher.hash_one(name), kin: self.hasher.hash_one(kin) };
        self.ids.insert(name.into(), id);
        self.list.push(Example { by, template, guessed, columns: Vec::new(), last_execution: None });
        Some(id)
    }
}
