//! Prepared statements and portals of the client, by name.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, ValueHash};
use onetrip_sql::{FetchCount, Lifted, StatementKind};
use onetrip_wire::Prefetch;
use onetrip_wire::pg::{Format, Oid, RowDescription};
use smallvec::SmallVec;

use crate::reading::{Change, CursorUse, Deferral, Effect};

/// Named statements or portals of one connection that are followed.
const FOLLOWED_MAX: usize = 65_536;
/// Bytes of all prepared statements of a connection, and of all its portals, at most.
const FOLLOWED_BYTES_MAX: usize = 768 * 1024;
/// Longest name that is followed, in bytes: PostgreSQL itself looks at no more (`NAMEDATALEN`).
const NAME_BYTES_MAX: usize = 63;
/// What a named one takes besides its value.
const OVERHEAD_BYTES: usize = 64;
/// Types or literals of one statement that are kept.
const KEPT_MAX: usize = 256;
/// The most that a prepared statement takes without its text.
pub(crate) const PREPARED_BYTES_MAX: usize = 4096;

/// What is known of a statement's text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) template: u32,
    /// Rows that a FETCH asks for, zero for all or another kind.
    pub(crate) row_limit: u32,
    /// Scope that the statement's comment names, or zero.
    pub(crate) scope: u32,
    /// Scope that the statement sets for the session.
    pub(crate) sets_scope: Option<u32>,
    /// Tells requests apart, or zero.
    pub(crate) request: u64,
    /// Surely no savepoint ends when it runs.
    pub(crate) leaves_savepoints: bool,
    /// What it does, as far as the text tells.
    pub(crate) effect: Effect,
    /// It reads or writes rows, and may call a function of a user by name.
    pub(crate) calls: bool,
    pub(crate) kind: StatementKind,
    /// If it begins a transaction, whether that may wait for its snapshot.
    pub(crate) deferral: Deferral,
    /// What it has to do with cursors.
    pub(crate) cursor: Option<Arc<CursorUse>>,
    /// It may make code that finds cursors.
    pub(crate) makes_cursor_code: bool,
    /// The prepared statement that it takes away, if it is DEALLOCATE of one.
    pub(crate) deallocates: Option<Arc<[u8]>>,
    /// How much of the objects that it delivers is read ahead, if its comment says so.
    pub(crate) prefetch: Option<Prefetch>,
    /// What it does to the connection's level of that.
    pub(crate) changes_prefetch: Option<Change>,
    /// No parameter has a declared type that may run code of a user.
    pub(crate) has_harmless_types: bool,
}

/// A prepared statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prepared {
    pub(crate) text: Text,
    /// Tells it from every other that the session has prepared.
    pub(crate) serial: u64,
    /// Types that the client fixed for its parameters.
    pub(crate) types: SmallVec<[Oid; 8]>,
    /// Values of the literals in its text.
    pub(crate) literals: SmallVec<[ValueHash; 4]>,
    /// Its Parse, where a remedy may need to know of it.
    pub(crate) parsed: Option<Box<Parsed>>,
    /// The last unit that prepared or bound it; none once that failed.
    seen_in: Option<u64>,
}

/// The Parse of a prepared statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parsed {
    /// The text, if it is not too long.
    pub(crate) source: Option<Box<[u8]>>,
    pub(crate) span: Option<Span>,
    /// The catalogue then.
    pub(crate) at: Mark,
    /// The relations that it found, by object id, once they are known.
    pub(crate) found: Option<Arc<[Oid]>>,
}

/// A part of a transaction in which one text means one thing, to whoever parses it: nothing that may change what it means
/// was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// When the transaction began.
    pub(crate) begun_at: Moment,
    /// Of the session's state.
    pub(crate) generation: u64,
    /// Of the catalogue.
    pub(crate) epoch: u64,
}

/// A portal: a statement with its parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Portal {
    pub(crate) text: Text,
    /// The statement that it runs, and the types that its client fixed.
    pub(crate) serial: u64,
    pub(crate) types: SmallVec<[Oid; 8]>,
    /// Where its Bind was booked: unit and statement.
    pub(crate) booked: Option<(u64, u16)>,
    pub(crate) formats: ResultFormats,
}

/// How the columns of a result are written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResultFormats {
    /// How many codes the client gave: none means text for all, one holds for all.
    count: u16,
    /// Which of the first columns are binary.
    binary: u128,
    /// Whether a column behind those is; which one is not told apart.
    binary_beyond: bool,
}

/// What the server has told about statements of one template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learned {
    /// Types of the result's columns, once it was described.
    pub(crate) columns: Option<Box<[Oid]>>,
    /// Layout of the result, zero as long as it was not described.
    pub(crate) layout: u32,
    /// Types of the parameters.
    pub(crate) types: SmallVec<[Oid; 8]>,
}

impl Learned {
    /// Takes the types of the result's columns from the body of its RowDescription.
    fn describe(&mut self, body: &[u8]) {
        let Ok(description) = RowDescription::decode(body) else {
            self.columns = None;
            return;
        };
        let types = || description.columns().map(|column| column.type_oid);
        if !self.columns.as_ref().is_some_and(|known| known.iter().copied().eq(types())) {
            self.columns = Some(types().collect());
        }
    }

    /// What it takes besides itself, in bytes.
    fn extra_bytes(&self) -> usize {
        let columns = self.columns.as_ref().map_or(0, |columns| columns.len());
        let types = if self.types.spilled() { self.types.len() } else { 0 };
        (columns + types) * size_of::<Oid>()
    }
}

/// Templates of a connection that are learnt about.
const LEARNED_MAX: usize = 4096;
/// Bytes of what is learnt besides, at most.
const LEARNED_BYTES_MAX: usize = 256 * 1024;

/// What a connection has learnt about statements, by template.
#[derive(Debug, Default)]
pub(crate) struct Lessons {
    /// Of most templates nothing is learnt.
    list: Vec<Option<Box<Learned>>>,
    extra: usize,
}

impl Lessons {
    pub(crate) fn get(&self, template: usize) -> Option<&Learned> {
        self.list.get(template)?.as_deref()
    }

    /// What is known of a template; `None` where there are too many.
    fn get_mut(&mut self, template: usize) -> Option<&mut Learned> {
        if template == 0 || template > LEARNED_MAX {
            return None;
        }
        if self.list.len() <= template {
            self.list.resize_with(template + 1, Option::default);
        }
        self.list.get_mut(template).map(|learned| &mut **learned.get_or_insert_default())
    }

    /// The server described the result of a template's statements. Returns whether that is kept.
    pub(crate) fn describe(&mut self, template: usize, layout: u32, body: &[u8]) -> bool {
        self.change(template, |learned| {
            learned.layout = layout;
            learned.describe(body);
        })
    }

    /// The server named the types of a template's parameters.
    pub(crate) fn set_types(&mut self, template: usize, types: impl Iterator<Item = Oid>) {
        self.change(template, |learned| learned.types = types.take(KEPT_MAX).collect());
    }

    fn change(&mut self, template: usize, change: impl FnOnce(&mut Learned)) -> bool {
        let bytes = self.extra;
        let Some(learned) = self.get_mut(template) else { return false };
        let before = learned.extra_bytes();
        change(learned);
        let after = bytes - before + learned.extra_bytes();
        let is_kept = after <= LEARNED_BYTES_MAX;
        if !is_kept {
            *learned = Learned { layout: learned.layout, ..Learned::default() };
        }
        self.extra = if is_kept { after } else { bytes - before };
        is_kept
    }
}

/// Statements and portals of one connection by name; the unnamed ones need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Named<T> {
    unnamed: Option<T>,
    named: HashMap<Box<[u8]>, Followed<T>, RandomState>,
    /// Bytes of all that have a name.
    bytes: usize,
    /// Some name is not followed.
    leaves_out: bool,
}

#[derive(Debug)]
struct Followed<T> {
    value: T,
    /// What it takes besides itself.
    extra: usize,
}

impl<T> Named<T> {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        if name.is_empty() {
            self.unnamed.as_ref()
        } else {
            self.named.get(name).map(|followed| &followed.value)
        }
    }

    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        if name.is_empty() {
            self.unnamed.as_mut()
        } else {
            self.named.get_mut(name).map(|followed| &mut followed.value)
        }
    }

    /// Follows a value under this name from here on; it takes `extra` bytes besides itself.
    pub(crate) fn put(&mut self, name: &[u8], value: T, extra: usize) {
        if name.is_empty() {
            self.unnamed = Some(value);
            return;
        }
        if let Some(followed) = self.named.get_mut(name).filter(|followed| followed.extra == extra) {
            followed.value = value;
            return;
        }
        self.remove(name);
        self.insert(name, value, extra);
    }

    /// Changes the value of this name, or a new one; `extra` tells how many bytes it takes besides itself.
    pub(crate) fn change(&mut self, name: &[u8], change: impl FnOnce(&mut T), extra: impl Fn(&T) -> usize)
    where
        T: Default,
    {
        if name.is_empty() {
            return change(self.unnamed.get_or_insert_with(T::default));
        }
        let Some(followed) = self.named.get_mut(name) else {
            let mut value = T::default();
            change(&mut value);
            let extra = extra(&value);
            self.remove(name);
            return self.insert(name, value, extra);
        };
        change(&mut followed.value);
        let before = std::mem::replace(&mut followed.extra, extra(&followed.value));
        self.bytes = self.bytes - before + followed.extra;
        if !self.fits(0) {
            self.leaves_out = true;
            self.remove(name);
        }
    }

    fn insert(&mut self, name: &[u8], value: T, extra: usize) {
        let bytes = weight::<T>(name) + extra;
        if name.len() > NAME_BYTES_MAX || self.named.len() >= FOLLOWED_MAX || !self.fits(bytes) {
            self.leaves_out = true;
            return;
        }
        self.bytes += bytes;
        self.named.insert(name.into(), Followed { value, extra });
    }

    /// Whether one more name will be followed.
    pub(crate) fn has_room(&self) -> bool {
        self.named.len() < FOLLOWED_MAX && self.fits(PREPARED_BYTES_MAX)
    }

    /// Whether so many more bytes fit.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.bytes + bytes <= FOLLOWED_BYTES_MAX
    }

    /// Whether some name was not followed.
    pub(crate) fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    pub(crate) fn remove(&mut self, name: &[u8]) {
        // Servers that cut names take a longer one for the one that it begins with.
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        if name.is_empty() {
            self.unnamed = None;
        } else if let Some(followed) = self.named.remove(name) {
            self.bytes -= weight::<T>(name) + followed.extra;
        }
    }

    /// How many have a name.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    /// Looks at each of them.
    pub(crate) fn for_each(&mut self, mut see: impl FnMut(&mut T)) {
        self.unnamed.iter_mut().for_each(&mut see);
        self.named.values_mut().for_each(|followed| see(&mut followed.value));
    }

    /// One that is so.
    pub(crate) fn find(&self, is_so: impl Fn(&T) -> bool) -> Option<&T> {
        self.unnamed
            .iter()
            .chain(self.named.values().map(|followed| &followed.value))
            .find(|value| is_so(value))
    }

    /// Whether any that has a name is so.
    pub(crate) fn names_any(&self, is_so: impl Fn(&[u8], &T) -> bool) -> bool {
        self.named.iter().any(|(name, followed)| is_so(name, &followed.value))
    }

    /// Keeps those that are so.
    pub(crate) fn retain(&mut self, is_so: impl Fn(&T) -> bool) {
        self.unnamed = self.unnamed.take().filter(&is_so);
        self.named.retain(|_, followed| is_so(&followed.value));
        self.bytes = self.named.iter().map(|(name, followed)| weight::<T>(name) + followed.extra).sum();
    }

    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
        self.bytes = 0;
    }
}

/// What a value takes under this name.
fn weight<T>(name: &[u8]) -> usize {
    name.len() + size_of::<T>() + OVERHEAD_BYTES
}

impl ResultFormats {
    /// Reads the Int16 codes of a Bind.
    pub(crate) fn new(codes: &[u8]) -> Self {
        let mut formats = Self { count: (codes.len() / 2) as u16, ..Self::default() };
        for (position, code) in (0..).zip(codes.chunks_exact(2)) {
            if code[1] != 0 {
                match 1u128.checked_shl(position) {
                    Some(bit) => formats.binary |= bit,
                    None => formats.binary_beyond = true,
                }
            }
        }
        formats
    }

    /// Whether any column may be binary.
    pub(crate) fn has_binary(&self) -> bool {
        self.binary != 0 || self.binary_beyond
    }

    /// The format of result column `index`.
    pub(crate) fn of(&self, index: usize) -> Format {
        let index = if self.count == 1 { 0 } else { index };
        let bit = u32::try_from(index).ok().and_then(|index| self.binary.checked_shr(index));
        if bit.is_some_and(|bits| bits & 1 != 0) { Format::Binary } else { Format::Text }
    }
}

impl Prepared {
    /// Puts another statement in its place; its room is used again.
    pub(crate) fn set(
        &mut self,
        serial: u64,
        text: Text,
        types: impl Iterator<Item = Oid>,
        literals: &[ValueHash],
    ) {
        self.serial = serial;
        self.text = text;
        self.types.clear();
        self.types.extend(types.take(KEPT_MAX));
        self.literals.clear();
        self.literals.extend_from_slice(&literals[..literals.len().min(KEPT_MAX)]);
        self.parsed = None;
        self.seen_in = None;
    }

    /// Its text, where a remedy may need it.
    pub(crate) fn source(&self) -> Option<&[u8]> {
        self.parsed.as_ref()?.source.as_deref()
    }

    /// Where its text was parsed, if that is known.
    pub(crate) fn span(&self) -> Option<Span> {
        self.parsed.as_ref()?.span
    }

    /// What it takes besides itself, in bytes.
    pub(crate) fn extra_bytes(&self) -> usize {
        let spilled = |is_spilled: bool, bytes: usize| if is_spilled { bytes } else { 0 };
        spilled(self.types.spilled(), self.types.len() * size_of::<Oid>())
            + spilled(self.literals.spilled(), self.literals.len() * size_of::<ValueHash>())
            + self.source().map_or(0, <[u8]>::len)
            + self.parsed.as_ref().map_or(0, |_| size_of::<Parsed>())
    }

    /// A message of this unit prepares or binds it.
    pub(crate) fn seen(&mut self, unit: u64) {
        self.seen_in = Some(unit);
    }

    /// It may not be there any more.
    pub(crate) fn doubt(&mut self) {
        self.seen_in = None;
    }

    /// An error came in this unit.
    pub(crate) fn fails_in(&mut self, unit: u64) {
        self.seen_in = self.seen_in.filter(|seen| *seen != unit);
    }

    /// A Parse has failed in this unit: a statement that had the name before is still there, and is not known.
    pub(crate) fn parse_fails_in(&mut self, unit: u64) {
        if self.seen_in == Some(unit) {
            self.text = Text::default();
        }
    }

    /// The last unit that proves that it is there, once that is answered.
    pub(crate) fn seen_in(&self) -> Option<u64> {
        self.seen_in
    }
}

/// Rows that the text of a FETCH asks for.
pub(crate) fn row_limit(lifted: &Lifted<'_>) -> u32 {
    match lifted.facts().fetch_count {
        Some(FetchCount::Rows(rows)) if lifted.kind() == StatementKind::Fetch => {
            u32::try_from(rows.unsigned_abs()).unwrap_or(0)
        }
        _ => 0,
    }
}

/// A moment of a catalogue, as the facts count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub(crate) epoch: u64,
    pub(crate) texts: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_code_holds_for_all_columns_and_none_means_text() {
        assert_eq!(ResultFormats::new(&[]).of(3), Format::Text);
        assert_eq!(ResultFormats::new(&[0, 1]).of(300), Format::Binary);
        let mixed = ResultFormats::new(&[0, 0, 0, 1, 0, 0]);
        assert_eq!(
            [0, 1, 2, 3].map(|column| mixed.of(column)).map(|format| format == Format::Binary),
            [false, true, false, false]
        );
        assert!(mixed.has_binary() && !ResultFormats::new(&[0, 0]).has_binary());
    }

    #[test]
    fn a_binary_column_behind_those_told_apart_is_still_known_to_be_there() {
        let mut codes = vec![0; 2 * 200];
        codes[2 * 150 + 1] = 1;
        let formats = ResultFormats::new(&codes);
        assert!(formats.has_binary());
        assert_eq!(formats.of(150), Format::Text);
    }
}
