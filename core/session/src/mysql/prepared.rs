//! Prepared statements of one connection, by the unit that prepared them.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use onetrip_ledger::ValueHash;
use onetrip_sql::Lifted;
use onetrip_wire::mysql::ColumnType;
use smallvec::SmallVec;

use super::columns::Described;
use super::values::Form;

/// Statements that are followed.
const FOLLOWED_MAX: usize = 16_384;
/// Bytes of all of them, at most.
const FOLLOWED_BYTES_MAX: usize = 768 * 1024;
/// What one takes besides itself.
const OVERHEAD_BYTES: usize = 64;

/// Where a parameter of a template comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A literal of the text.
    Literal(ValueHash),
    /// A `?`, by its position among them.
    Marker(u16),
}

/// What is known of a statement's text.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    pub(super) template: u32,
    /// Scope that its comments name, or zero.
    pub(super) scope: u32,
    /// Tells requests apart, or zero.
    pub(super) request: u64,
    /// Its parameters in the order of the template.
    pub(super) places: SmallVec<[Place; 8]>,
    /// `?` in it.
    pub(super) markers: u16,
    /// What it does to the `sql_mode`.
    pub(super) mode: ModeAfter,
}

/// What a statement does to the session's `sql_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ModeAfter {
    /// It may set it.
    #[default]
    Set,
    Kept,
    /// Its end gives back the one that it began with, whatever is set meanwhile: a stored procedure, and `SET STATEMENT … FOR`
    /// of MariaDB. The server may tell the mode of the moment, and MariaDB goes on to tell it after a procedure.
    Restored,
}

/// A value of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Given {
    pub(super) hash: ValueHash,
    /// Empty where a trace keeps no values.
    pub(super) text: Vec<u8>,
}

/// A prepared statement.
#[derive(Debug, Clone, Default)]
pub(super) struct Prepared {
    pub(super) text: Text,
    /// As they were sent last; those of a run that sends none.
    pub(super) types: SmallVec<[Form; 8]>,
    /// Parameters whose values were sent ahead.
    pub(super) long: SmallVec<[u16; 4]>,
    /// Columns of its result, as described last.
    pub(super) described: Described,
}

/// All of a connection.
#[derive(Debug, Default)]
pub(super) struct Statements {
    known: HashMap<u64, Prepared, RandomState>,
    bytes: usize,
    leaves_out: bool,
}

impl Statements {
    pub(super) fn get(&self, unit: u64) -> Option<&Prepared> {
        self.known.get(&unit)
    }

    /// Follows a statement from here on, if there is room.
    pub(super) fn put(&mut self, unit: u64, prepared: Prepared) {
        let bytes = prepared.bytes();
        if self.known.len() >= FOLLOWED_MAX || self.bytes + bytes > FOLLOWED_BYTES_MAX {
            self.leaves_out = true;
            return;
        }
        self.bytes += bytes;
        if let Some(before) = self.known.insert(unit, prepared) {
            self.bytes -= before.bytes();
        }
    }

    /// Changes a statement; where there is no room for the change, it is not followed any more.
    pub(super) fn change(&mut self, unit: u64, change: impl FnOnce(&mut Prepared)) {
        let Some(prepared) = self.known.get_mut(&unit) else { return };
        let before = prepared.bytes();
        change(prepared);
        self.bytes = self.bytes - before + prepared.bytes();
        if self.bytes > FOLLOWED_BYTES_MAX {
            self.remove(unit);
            self.leaves_out = true;
        }
    }

    pub(super) fn remove(&mut self, unit: u64) {
        if let Some(before) = self.known.remove(&unit) {
            self.bytes -= before.bytes();
        }
    }

    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.bytes = 0;
    }

    /// Whether some statement is not followed.
    pub(super) fn leaves_out(&self) -> bool {
        self.leaves_out
    }
}

impl Prepared {
    /// What it takes.
    fn bytes(&self) -> usize {
        let spilled = |is_spilled: bool, bytes: usize| if is_spilled { bytes } else { 0 };
        OVERHEAD_BYTES
            + size_of::<Self>()
            + spilled(self.text.places.spilled(), self.text.places.capacity() * size_of::<Place>())
            + spilled(self.types.spilled(), self.types.capacity() * size_of::<Form>())
            + spilled(self.long.spilled(), self.long.capacity() * size_of::<u16>())
            + self.described.bytes()
    }

    /// Types of the values of a run: those that came along, or those that hold.
    pub(super) fn types(&self) -> impl Iterator<Item = ColumnType> + '_ {
        self.types.iter().map(|form| form.column_type)
    }
}

/// Literals and `?` of a text in the order of the template, by their numbers there; at most `max`.
pub(super) fn places(
    lifted: &Lifted<'_>,
    literals: impl Iterator<Item = ValueHash>,
    max: usize,
) -> SmallVec<[Place; 8]> {
    let mut places = SmallVec::new();
    let mut literals = lifted.literals().map(|literal| literal.number).zip(literals).peekable();
    let (mut last, mut last_marker) = (0, 0);
    for parameter in lifted.parameters() {
        // What has no number of its own stands behind the one before.
        last_marker = parameter.number.max(last_marker);
        while let Some((number, hash)) = literals.next_if(|(number, _)| (*number).max(last) < last_marker) {
            last = number.max(last);
            places.push(Place::Literal(hash));
        }
        let position = parameter.source_number.saturating_sub(1);
        places.push(Place::Marker(u16::try_from(position).unwrap_or(u16::MAX)));
    }
    places.extend(literals.map(|(_, hash)| Place::Literal(hash)));
    places.truncate(max);
    places
}

#[cfg(test)]
mod tests {
    use onetrip_sql::{Lifter, MysqlMode};

    use super::*;

    #[test]
    fn markers_and_literals_stand_as_in_the_template() {
        use Place::{Literal, Marker};
        for (text, expected) in [
            ("SELECT a FROM t WHERE b = 5 AND c = ? AND d = 6", &[Literal(1), Marker(0), Literal(2)][..]),
            ("INSERT INTO t VALUES (?, 1, ?)", &[Marker(0), Literal(1), Marker(1)]),
            (
                "SELECT a FROM t WHERE b IN (?, ?, ?) AND c = 1",
                &[Marker(0), Marker(1), Marker(2), Literal(1)],
            ),
            ("SELECT 1", &[Literal(1)]),
            ("SELECT ?", &[Marker(0)]),
        ] {
            let mut lifter = Lifter::new();
            let lifted = lifter.lift_mysql(text.as_bytes(), MysqlMode::default());
            assert_eq!(places(&lifted, 1.., 256).as_slice(), expected, "{text}");
        }
    }

    #[test]
    fn statements_are_kept_up_to_a_bound() {
        let mut statements = Statements::default();
        for unit in 0..100_000 {
            statements.put(unit, Prepared::default());
        }
        assert!(statements.leaves_out() && statements.bytes <= FOLLOWED_BYTES_MAX);
        assert!(statements.get(0).is_some() && statements.get(99_999).is_none());
        statements.change(0, |prepared| prepared.types.resize(60_000, Form::of_code(3)));
        assert!(statements.get(0).is_none() && statements.bytes <= FOLLOWED_BYTES_MAX);
        for unit in 0..100_000 {
            statements.remove(unit);
        }
        assert_eq!(statements.bytes, 0);
    }
}
