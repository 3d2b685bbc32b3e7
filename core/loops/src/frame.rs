//! A result whose rows a loop may walk.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::canonical::{Cell, LENGTH_MAX, UNKNOWN};
use crate::packed::{self, Packed};
use crate::value::{Column, Template, Ticket};
use crate::values::Values;

/// Columns that are looked at.
pub(crate) const COLUMNS_MAX: usize = 32;

/// Rows of one frame.
pub(crate) const ROWS_MAX: u32 = 1 << 17;

/// What one frame may keep: 10,000 rows of eight narrow columns are 1.6 MiB. Later rows are not known, and so not
/// guessed. (A window that slides would forget the first rows, which the program comes to first.)
pub(crate) const BYTES_MAX: usize = 4 << 20;

/// Rows below this are searched one by one, more by an index.
const SCAN_ROWS: u32 = 64;

/// Entries of one frame's indexes.
const INDEXED_MAX: usize = 1 << 18;

const NULL: u16 = u16::MAX;
const LONG: u16 = u16::MAX - 1;

/// Tells a frame from the one that used its slot before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameId {
    pub(crate) slot: u32,
    pub(crate) serial: u64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    start: u32,
    length: u16,
    hash: u32,
}

/// One template's way through the rows of one frame.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    /// Position of the stream in the loop.
    pub(crate) stream: u16,
    /// The last row that the program asked for.
    pub(crate) cursor: Option<u32>,
    /// The first row that is not yet decided on.
    pub(crate) planned: u32,
    /// Rows from here on are not to be guessed (the last page was seen); none if zero, nor ever if [`u32::MAX`].
    pub(crate) end: u32,
    /// Guesses that were neither served nor passed, by row.
    pub(crate) pending: VecDeque<(u32, Ticket)>,
}

/// Rows of a result, key-like values only.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) serial: u64,
    pub(crate) template: Template,
    /// Its statement's parameters.
    pub(crate) parameters: Values,
    /// The row that its statement's parameters came from.
    pub(crate) parent: Option<(FrameId, u32)>,
    /// The loop that it belongs to.
    pub(crate) of_loop: Option<usize>,
    /// Steps from the loop's root; pages of one list are on the same level.
    pub(crate) depth: u8,
    /// Whether the program has seen it.
    pub(crate) is_visible: bool,
    /// Whether the result has ended.
    pub(crate) is_complete: bool,
    /// Bytes that it may grow to.
    pub(crate) room: usize,
    /// When it was last of use, in events.
    pub(crate) touched: u64,
    pub(crate) consumers: SmallVec<[Consumer; 2]>,
    columns: SmallVec<[Column; 8]>,
    rows: u32,
    is_cut: bool,
    places: Vec<Place>,
    bytes: Vec<u8>,
    /// The last of its rows, as long as nobody has looked into them: they hold no value that is found.
    packed: Packed,
    /// Per column, once asked for: hash and row, sorted.
    indexes: Vec<Vec<(u32, u32)>>,
}

impl Frame {
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    pub(crate) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Memory in use, or what it takes once all rows were looked into, which is more.
    pub(crate) fn size(&self) -> usize {
        let packed = self.packed.rows() as usize * self.columns.len();
        self.bytes.len() + self.packed.key_bytes() + (self.places.len() + packed) * size_of::<Place>()
    }

    /// Adds a row; not if it does not fit.
    pub(crate) fn push(&mut self, columns: &[Column], row: &[Option<&[u8]>]) {
        self.unpack(u32::MAX);
        if !self.has_room(columns, row.len()) {
            return;
        }
        for (position, value) in row.iter().enumerate().take(self.columns.len()) {
            let value = match value {
                None => packed::Value::Null,
                Some(value) if value.len() > LENGTH_MAX => packed::Value::Long,
                Some(value) => packed::Value::Key(value),
            };
            self.put(position, value);
        }
        self.rows += 1;
    }

    /// Adds a row as it came, to be looked into by [`Self::unpack`]; not if it does not fit.
    pub(crate) fn pack(&mut self, columns: &[Column], row: &packed::Row<'_>) {
        if row.width > COLUMNS_MAX || self.rows > 0 && row.width != self.columns.len() {
            let values: SmallVec<[Option<&[u8]>; 64]> = row.values().collect();
            self.push(columns, &values);
        } else if self.has_room(columns, row.width) {
            self.packed.push(row);
            self.rows += 1;
        }
    }

    /// Looks into the first rows, so that their values are found.
    pub(crate) fn unpack(&mut self, rows: u32) {
        if self.packed.rows() == 0 {
            return;
        }
        let mut packed = std::mem::take(&mut self.packed);
        while packed.rows() > 0 && self.rows - packed.rows() < rows {
            packed.take(self.columns.len(), |position, value| self.put(position, value));
        }
        self.packed = packed;
    }

    /// Whether one more row of so many columns is kept; the first row tells which there are.
    fn has_room(&mut self, columns: &[Column], width: usize) -> bool {
        if self.rows == 0 && self.places.is_empty() {
            self.columns.clear();
            let described = columns.iter().copied().chain(std::iter::repeat(UNKNOWN));
            self.columns.extend(described.take(width.min(COLUMNS_MAX)));
        }
        let kept = self.columns.len().min(width);
        let size = self.size() + kept * (size_of::<Place>() + LENGTH_MAX);
        self.is_cut |= size > self.room || self.rows >= ROWS_MAX || kept < self.columns.len();
        !self.is_cut
    }

    fn put(&mut self, column: usize, value: packed::Value<'_>) {
        let start = self.bytes.len() as u32;
        self.places.push(match value {
            packed::Value::Null => Place { start, length: NULL, hash: 0 },
            packed::Value::Long => Place { start, length: LONG, hash: 0 },
            packed::Value::Key(value) => {
                self.bytes.extend_from_slice(value);
                let hash = Cell::of_column(self.columns[column], value).meaning.hash();
                Place { start, length: value.len() as u16, hash }
            }
        });
    }

    /// A value; `None` for NULL, for what is too long to be a key, and for what is not there.
    pub(crate) fn cell(&self, row: u32, column: u16) -> Option<Cell<'_>> {
        let place = self.place(row, column)?;
        if place.length >= LONG {
            return None;
        }
        let start = place.start as usize;
        let bytes = self.bytes.get(start..start + usize::from(place.length))?;
        Some(Cell::of_column(self.columns[usize::from(column)], bytes))
    }

    /// What stands for a value in a filter: its hash, zero for NULL.
    pub(crate) fn fingerprint(&self, row: u32, column: u16) -> u32 {
        match self.place(row, column) {
            Some(place) if place.length == NULL => 0,
            Some(place) => place.hash.max(1),
            None => 0,
        }
    }

    /// Whether a row's value may mean what has this hash.
    pub(crate) fn may_be(&self, row: u32, column: u16, hash: u32) -> bool {
        self.place(row, column).is_some_and(|place| place.length < LONG && place.hash == hash)
    }

    /// The first row in `from..` whose value has this hash. An index is made only for frames of many rows; where that
    /// would take too much memory, nothing is found.
    pub(crate) fn find(&mut self, column: u16, hash: u32, from: u32) -> Option<u32> {
        if usize::from(column) >= self.columns.len() {
            return None;
        }
        self.unpack(u32::MAX);
        if self.rows <= SCAN_ROWS {
            return (from..self.rows).find(|row| self.may_be(*row, column, hash));
        }
        if !self.index(column) {
            return None;
        }
        let index = &self.indexes[usize::from(column)];
        let at = index.partition_point(|entry| *entry < (hash, from));
        index.get(at).filter(|entry| entry.0 == hash).map(|entry| entry.1)
    }

    pub(crate) fn consumer(&self, stream: u16) -> Option<&Consumer> {
        self.consumers.iter().find(|consumer| consumer.stream == stream)
    }

    pub(crate) fn consumer_mut(&mut self, stream: u16) -> Option<&mut Consumer> {
        self.consumers.iter_mut().find(|consumer| consumer.stream == stream)
    }

    /// Empties it for another result; the memory of a large one is given back.
    pub(crate) fn reset(&mut self) {
        if self.size() > 1 << 16 {
            self.places = Vec::new();
            self.bytes = Vec::new();
        }
        self.places.clear();
        self.bytes.clear();
        self.packed.clear();
        self.serial = 0;
        self.parent = None;
        self.of_loop = None;
        self.depth = 0;
        self.is_visible = false;
        self.is_complete = false;
        self.is_cut = false;
        self.rows = 0;
        self.consumers.clear();
        self.columns.clear();
        self.indexes.clear();
    }

    fn place(&self, row: u32, column: u16) -> Option<&Place> {
        let width = self.columns.len();
        if row >= self.rows || usize::from(column) >= width {
            return None;
        }
        self.places.get(row as usize * width + usize::from(column))
    }

    fn index(&mut self, column: u16) -> bool {
        let position = usize::from(column);
        if self.indexes.is_empty() {
            self.indexes.resize(self.columns.len(), Vec::new());
        }
        let rows = self.rows as usize;
        if self.indexes[position].len() == rows {
            return true;
        }
        let others = self.indexes.iter().enumerate().filter(|(other, _)| *other != position);
        if others.map(|(_, index)| index.len()).sum::<usize>() + rows > INDEXED_MAX {
            return false;
        }
        let width = self.columns.len();
        let values = self.places.iter().skip(position).step_by(width);
        let index = &mut self.indexes[position];
        index.clear();
        index.extend(values.zip(0..).map(|(place, row)| (place.hash, row)));
        index.sort_unstable();
        true
    }
}

/// The frames of a session, by slot.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    next_serial: u64,
}

impl Frames {
    /// An empty frame.
    pub(crate) fn take(&mut self, template: Template) -> FrameId {
        self.next_serial += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Frame::default());
            (self.slots.len() - 1) as u32
        });
        let frame = &mut self.slots[slot as usize];
        frame.serial = self.next_serial;
        frame.template = template;
        frame.room = BYTES_MAX;
        FrameId { slot, serial: self.next_serial }
    }

    /// Gives a frame back.
    pub(crate) fn release(&mut self, id: FrameId) {
        if let Some(frame) = self.get_mut(id) {
            frame.reset();
            self.free.push(id.slot);
        }
    }

    pub(crate) fn get(&self, id: FrameId) -> Option<&Frame> {
        self.slots.get(id.slot as usize).filter(|frame| frame.serial == id.serial)
    }

    pub(crate) fn get_mut(&mut self, id: FrameId) -> Option<&mut Frame> {
        self.slots.get_mut(id.slot as usize).filter(|frame| frame.serial == id.serial)
    }

    /// All that are in use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, frame)| frame.serial != 0)
            .map(|(slot, frame)| (FrameId { slot: slot as u32, serial: frame.serial }, frame))
    }

    /// Those of one loop.
    pub(crate) fn of_loop(&self, slot: usize) -> SmallVec<[FrameId; 8]> {
        self.iter().filter(|(_, frame)| frame.of_loop == Some(slot)).map(|(id, _)| id).collect()
    }

    /// Memory in use.
    pub(crate) fn size(&self) -> usize {
        self.iter().map(|(_, frame)| frame.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Format;

    const COLUMNS: [Column; 2] =
        [Column { oid: 23, format: Format::Text }, Column { oid: 25, format: Format::Text }];

    fn frame(rows: u32) -> Frame {
        let mut frame = Frame { room: BYTES_MAX, ..Frame::default() };
        for row in 0..rows {
            frame.push(&COLUMNS, &[Some(format!("{}", row % 100).as_bytes()), None]);
        }
        frame
    }

    #[test]
    fn a_value_is_found_with_and_without_an_index() {
        let hash = Cell::of_column(COLUMNS[0], b"7").meaning.hash();
        for rows in [20, 1000] {
            let mut frame = frame(rows);
            assert_eq!(frame.find(0, hash, 0), Some(7));
            assert_eq!(frame.find(0, hash, 8), (rows > 20).then_some(107));
            assert_eq!(frame.find(0, hash, 990), None);
            assert_eq!(frame.find(1, hash, 0), None, "NULL is equal to nothing");
            assert_eq!(frame.find(9, hash, 0), None);
        }
    }

    #[test]
    fn an_index_grows_with_the_rows() {
        let mut frame = frame(100);
        let hash = Cell::of_column(COLUMNS[0], b"new").meaning.hash();
        assert_eq!(frame.find(0, hash, 0), None);
        frame.push(&COLUMNS, &[Some(b"new"), None]);
        assert_eq!(frame.find(0, hash, 0), Some(100));
    }

    #[test]
    fn a_frame_stops_at_its_bounds_and_ten_thousand_rows_fit() {
        let employees = frame(10_000);
        assert_eq!(employees.rows(), 10_000);
        let mut wide = Frame { room: BYTES_MAX, ..Frame::default() };
        let value = [b'x'; LENGTH_MAX];
        for _ in 0..200_000 {
            wide.push(&COLUMNS, &[Some(&value), Some(&value)]);
        }
        assert!(wide.rows() < ROWS_MAX && wide.size() <= BYTES_MAX, "{}", wide.size());
    }

    /// The row as the server sends it.
    fn sent(row: &[Option<&[u8]>]) -> Vec<u8> {
        let mut out = (row.len() as u16).to_be_bytes().to_vec();
        for value in row {
            out.extend_from_slice(&value.map_or(-1, |value| value.len() as i32).to_be_bytes());
            out.extend_from_slice(value.unwrap_or_default());
        }
        out
    }

    #[test]
    fn rows_that_are_looked_into_later_are_the_same_rows() {
        let long = [b'x'; LENGTH_MAX + 1];
        let wide = vec![Some(&b"7"[..]); COLUMNS_MAX + 3];
        let row = |number: u32| -> Vec<Option<Vec<u8>>> {
            vec![Some(number.to_string().into_bytes()), (number % 3 == 0).then(|| long.to_vec())]
        };
        for room in [BYTES_MAX, 20_000] {
            let (mut one, mut other) =
                (Frame { room, ..Frame::default() }, Frame { room, ..Frame::default() });
            for number in 0..1000 {
                let row = row(number);
                let row: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
                one.push(&COLUMNS, &row);
                other.pack(&COLUMNS, &packed::Row::read(&sent(&row)).unwrap());
                assert_eq!(
                    (one.rows(), one.size()),
                    (other.rows(), other.size()),
                    "before it is looked into"
                );
            }
            let shown = |frame: &Frame, row| [0, 1].map(|column| frame.fingerprint(row, column));
            assert!(other.cell(0, 0).is_none());
            other.unpack(10);
            assert!((0..10).all(|row| shown(&one, row) == shown(&other, row)));
            assert!(other.cell(10, 0).is_none() && one.size() == other.size());
            let hash = Cell::of_column(COLUMNS[0], b"99").meaning.hash();
            assert_eq!(one.find(0, hash, 0), other.find(0, hash, 0));
            assert_eq!(other.find(0, hash, 0), Some(99));
            assert!((0..one.rows()).all(|row| shown(&one, row) == shown(&other, row)));
        }
        let mut frame = Frame { room: BYTES_MAX, ..Frame::default() };
        frame.pack(&[], &packed::Row::read(&sent(&wide)).unwrap());
        assert_eq!((frame.rows(), frame.columns()), (1, COLUMNS_MAX));
        for bad in [&b""[..], b"\0\x01", b"\0\x01\0\0\0\x02x", b"\0\0x", b"\0\x01\xff\xff\xff\xfe"] {
            assert!(packed::Row::read(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_slot_used_again_is_another_frame() {
        let mut frames = Frames::default();
        let template = Template { id: 1, key: 1, kin: 1 };
        let old = frames.take(template);
        frames.release(old);
        let new = frames.take(template);
        assert_eq!(old.slot, new.slot);
        assert!(frames.get(old).is_none() && frames.get(new).is_some());
    }
}
