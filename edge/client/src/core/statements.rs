//! The statements that this connection has prepared, or is about to: least recently used first to go.

use std::collections::HashMap;

use onetrip_wire::pg::Oid;

use super::control::Control;
use crate::{Columns, Param, ServerError};

/// Position of a statement in the cache. It stays while an operation uses it.
pub(crate) type Slot = u32;

/// How far the server knows a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Standing {
    /// Not, or no longer.
    #[default]
    Absent,
    /// Parse is under way.
    Asked,
    /// It has said so.
    Ready,
}

/// One statement.
#[derive(Debug, Default)]
pub(crate) struct Statement {
    text: Box<str>,
    declared: Vec<Oid>,
    hash: u64,
    pub(crate) standing: Standing,
    /// Which Parse of this connection made it; its name is made of this.
    pub(crate) number: u32,
    /// Its name on the server; empty for the unnamed one.
    pub(crate) name: Vec<u8>,
    pub(crate) parameters: Vec<Oid>,
    pub(crate) columns: Columns,
    pub(crate) control: Control,
    /// What the last Parse failed with, for operations that were sent before that was known.
    pub(crate) parse_error: Option<Box<ServerError>>,
    in_flight: u32,
    used: u64,
    /// How often it was run, as far as anybody asks.
    runs: u32,
}

impl Statement {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it was run more often than that, this time included.
    pub(crate) fn is_used_more_than(&self, times: u32) -> bool {
        self.runs > times
    }

    /// The types that the statement is prepared with, as they stand in Parse.
    pub(crate) fn declared(&self) -> &[Oid] {
        &self.declared
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Statements {
    slots: Vec<Statement>,
    /// By hash: usually one, and compared in full.
    index: HashMap<u64, Vec<Slot>, foldhash::fast::FixedState>,
    capacity: usize,
    hasher: foldhash::fast::FixedState,
    clock: u64,
    numbers: u32,
    /// Names on the server that nobody needs any more.
    pub(crate) to_close: Vec<u32>,
}

impl Statements {
    /// Keeps `capacity` statements prepared; with zero, each is prepared for one use.
    pub(crate) fn new(capacity: usize) -> Self {
        let hasher = foldhash::fast::FixedState::default();
        let index = HashMap::with_hasher(hasher.clone());
        Self { slots: Vec::new(), index, capacity, hasher, clock: 0, numbers: 0, to_close: Vec::new() }
    }

    pub(crate) fn is_caching(&self) -> bool {
        self.capacity > 0
    }

    /// The slot of a statement; it is used until [`release`](Self::release).
    pub(crate) fn acquire(&mut self, text: &str, parameters: &[&dyn Param]) -> Slot {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = self.hasher.build_hasher();
        hasher.write(text.as_bytes());
        for parameter in parameters {
            hasher.write_u32(parameter.declared());
        }
        let hash = hasher.finish();
        let known = self.index.get(&hash).into_iter().flatten().copied();
        let slots = &self.slots;
        let found = known.into_iter().find(|slot| is_same(&slots[*slot as usize], text, parameters));
        let slot = found.unwrap_or_else(|| self.insert(hash, text, parameters));
        self.clock += 1;
        let statement = &mut self.slots[slot as usize];
        statement.used = self.clock;
        statement.runs = statement.runs.saturating_add(1);
        statement.in_flight += 1;
        slot
    }

    /// The types of a statement's parameters, if they are known; with `is_ready`, only while it is prepared.
    pub(crate) fn parameters(&self, text: &str, parameters: &[&dyn Param], is_ready: bool) -> Option<&[Oid]> {
        let statement = self.slots.iter().find(|statement| is_same(statement, text, parameters))?;
        let is_known = statement.standing == Standing::Ready || !is_ready;
        (is_known && statement.parameters.len() == parameters.len()).then_some(&statement.parameters)
    }

    /// One more operation uses a statement.
    pub(crate) fn hold(&mut self, slot: Slot) {
        self.slots[slot as usize].in_flight += 1;
    }

    /// An operation has been answered.
    pub(crate) fn release(&mut self, slot: Slot) {
        if let Some(statement) = self.slots.get_mut(slot as usize) {
            statement.in_flight = statement.in_flight.saturating_sub(1);
        }
    }

    /// Whether a statement has to be parsed before its next use: it is not prepared, or only as the unnamed one, which
    /// may be another by now.
    pub(crate) fn needs_parse(&self, slot: Slot) -> bool {
        let statement = &self.slots[slot as usize];
        statement.standing == Standing::Absent || statement.name.is_empty()
    }

    /// Gives a statement a new name, which it has from now on; none, unless it is to stay prepared.
    pub(crate) fn rename(&mut self, slot: Slot, keeps: bool) {
        let is_named = keeps && self.is_caching();
        self.numbers = self.numbers.wrapping_add(1).max(1);
        let statement = &mut self.slots[slot as usize];
        statement.number = self.numbers;
        statement.standing = Standing::Asked;
        statement.parse_error = None;
        statement.name.clear();
        if is_named {
            put_name(&mut statement.name, self.numbers);
        }
    }

    /// The server has forgotten this statement, or refuses it.
    pub(crate) fn forget(&mut self, slot: Slot, number: u32) {
        let statement = &mut self.slots[slot as usize];
        if statement.number == number {
            statement.standing = Standing::Absent;
        }
    }

    /// The server has forgotten all of them: DEALLOCATE ALL, DISCARD ALL.
    pub(crate) fn forget_all(&mut self) {
        for statement in self.slots.iter_mut().filter(|statement| statement.standing == Standing::Ready) {
            statement.standing = Standing::Absent;
        }
        self.to_close.clear();
    }

    /// All are prepared anew when they are next used; the server drops the old ones along with that.
    pub(crate) fn renew_all(&mut self) {
        let is_caching = self.is_caching();
        for statement in self.slots.iter_mut().filter(|statement| statement.standing == Standing::Ready) {
            statement.standing = Standing::Absent;
            if is_caching && !statement.name.is_empty() {
                self.to_close.push(statement.number);
            }
        }
    }

    fn insert(&mut self, hash: u64, text: &str, parameters: &[&dyn Param]) -> Slot {
        let slot = match self.victim() {
            Some(slot) => {
                let old = std::mem::take(&mut self.slots[slot as usize]);
                if let Some(slots) = self.index.get_mut(&old.hash) {
                    slots.retain(|known| *known != slot);
                    if slots.is_empty() {
                        self.index.remove(&old.hash);
                    }
                }
                if old.standing != Standing::Absent && !old.name.is_empty() {
                    self.to_close.push(old.number);
                }
                slot
            }
            None => {
                self.slots.push(Statement::default());
                (self.slots.len() - 1) as Slot
            }
        };
        self.slots[slot as usize] = Statement {
            text: text.into(),
            declared: parameters.iter().map(|parameter| parameter.declared()).collect(),
            hash,
            control: Control::of(text),
            ..Statement::default()
        };
        self.index.entry(hash).or_default().push(slot);
        slot
    }

    /// The statement that was used longest ago and is in no operation, once the cache is full.
    fn victim(&self) -> Option<Slot> {
        if self.slots.len() < self.capacity.max(1) {
            return None;
        }
        let idle = self.slots.iter().enumerate().filter(|(_, statement)| statement.in_flight == 0);
        idle.min_by_key(|(_, statement)| statement.used).map(|(slot, _)| slot as Slot)
    }
}

impl std::ops::Index<Slot> for Statements {
    type Output = Statement;

    fn index(&self, slot: Slot) -> &Statement {
        &self.slots[slot as usize]
    }
}

impl std::ops::IndexMut<Slot> for Statements {
    fn index_mut(&mut self, slot: Slot) -> &mut Statement {
        &mut self.slots[slot as usize]
    }
}

/// Appends the name of the statement that Parse `number` makes.
pub(crate) fn put_name(out: &mut Vec<u8>, number: u32) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "onetrip_{number}");
}

/// A hash that fits proves nothing: text and types are compared in full.
fn is_same(statement: &Statement, text: &str, parameters: &[&dyn Param]) -> bool {
    let declared = parameters.iter().map(|parameter| parameter.declared());
    *statement.text == *text
        && statement.declared.len() == parameters.len()
        && statement.declared.iter().copied().eq(declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_used_longest_ago_goes_unless_it_is_in_use() {
        let mut statements = Statements::new(2);
        let first = statements.acquire("first", &[]);
        statements.rename(first, true);
        let second = statements.acquire("second", &[]);
        statements.rename(second, true);
        statements.release(second);
        let third = statements.acquire("third", &[]);
        assert_eq!((third, &*statements.to_close), (second, &[2][..]), "the first is in use");
        statements.release(first);
        statements.release(third);
        assert_eq!(statements.acquire("third", &[]), third);
        assert_eq!(statements.acquire("first", &[]), first, "nothing was pushed out by what was known");
        assert_eq!(statements.acquire("fourth", &[]), 2, "all are in use: it grows rather than waits");
    }

    #[test]
    fn a_statement_prepared_with_other_types_is_another() {
        let mut statements = Statements::new(8);
        let typed = crate::Written { type_oid: 23, format: Default::default(), bytes: None };
        let plain = statements.acquire("SELECT $1", &[&1]);
        assert_ne!(statements.acquire("SELECT $1", &[&typed]), plain);
        assert_eq!(statements.acquire("SELECT $1", &[&2]), plain);
    }
}
