//! Objects of which the statement or the column that delivered their oid says how much is prefetched.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{DataRow, Format, Oid};

use crate::facts::Facts;
use crate::reply_queue::Due;
use crate::session::core::Core;

/// Objects of which it is known, in each of two generations.
const OBJECTS_MAX: usize = 8192;
/// Statements under way whose comments say something.
const STATEMENTS_MAX: usize = 256;
/// Object ids below this are the server's own (`FirstNormalObjectId`): the oids in them are no large objects.
const FIRST_OF_USERS: Oid = 16_384;

/// What statements and columns say.
#[derive(Debug, Default)]
pub(crate) struct Delivered {
    /// By oid; when there are too many, the older ones go.
    recent: HashMap<Oid, Source, RandomState>,
    older: HashMap<Oid, Source, RandomState>,
    /// Statements whose rows are to come: unit, statement.
    said: VecDeque<(u64, Option<u16>, Prefetch)>,
}

/// Where an oid came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source {
    /// What the statement says.
    pub(super) said: Option<Prefetch>,
    /// The column, as table and number; what it says may only be known later.
    pub(super) column: Option<(Oid, i16)>,
}

impl Delivered {
    /// A statement with such a comment runs; `oldest` is the oldest unit that is not answered.
    pub(crate) fn says(&mut self, oldest: u64, unit: u64, statement: Option<u16>, prefetch: Prefetch) {
        while self.said.front().is_some_and(|(unit, ..)| *unit < oldest) {
            self.said.pop_front();
        }
        if self.said.len() < STATEMENTS_MAX {
            self.said.push_back((unit, statement, prefetch));
        }
    }

    fn said(&self, unit: u64, statement: u16) -> Option<Prefetch> {
        let mut said = self.said.iter();
        said.find(|(of, slot, _)| (*of, *slot) == (unit, Some(statement))).map(|(.., prefetch)| *prefetch)
    }

    fn note(&mut self, oid: Oid, source: Source) {
        self.older.remove(&oid);
        if source.said.is_none() && source.column.is_none() {
            self.recent.remove(&oid);
            return;
        }
        if self.recent.len() >= OBJECTS_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(oid, source);
    }

    /// Where the oid of this object was delivered from last.
    pub(super) fn source(&self, oid: Oid) -> Option<Source> {
        self.recent.get(&oid).or_else(|| self.older.get(&oid)).copied()
    }
}

impl Delivered {
    /// A row of a result with this layout goes to the program.
    pub(super) fn row_goes(
        &mut self,
        (core, facts): (&Core, &mut Facts),
        (due, statement): (Due, u16),
        layout: u32,
        body: &[u8],
    ) {
        let Some(layout) = core.layout(layout).filter(|layout| !layout.objects.is_empty()) else {
            return;
        };
        let said = self.said(due.unit, statement);
        let says_something =
            said.is_some() || layout.objects.iter().any(|column| column.table >= FIRST_OF_USERS);
        if !says_something && self.recent.is_empty() && self.older.is_empty() {
            return; // nothing is known that these oids could take back
        }
        let Ok(row) = DataRow::decode(body) else { return };
        let formats = core.formats(due.unit, statement);
        let format = |position: u16| formats.map_or(Format::Text, |formats| formats.of(position.into()));
        let mut columns = layout.objects.iter().peekable();
        for (position, value) in (0..).zip(row.columns.iter()) {
            let Some(column) = columns.next_if(|column| column.position == position) else { continue };
            let Some(oid) = value.and_then(|value| oid_of(value, format(position))) else { continue };
            let is_users = column.table >= FIRST_OF_USERS;
            if is_users {
                facts.want_columns(column.table);
            }
            self.note(oid, Source { said, column: is_users.then_some((column.table, column.number)) });
        }
    }
}

fn oid_of(value: &[u8], format: Format) -> Option<Oid> {
    match format {
        Format::Binary => value.try_into().ok().map(Oid::from_be_bytes),
        Format::Text => std::str::from_utf8(value).ok()?.parse().ok(),
    }
}
