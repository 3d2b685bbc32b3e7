//! Rows of one result on their way into an exchange: their digest, and the values of the columns that may be keys.

use onetrip_wire::pg::{DataRow, Format, Oid};

use crate::canonical::Values;
use crate::statements::ResultFormats;
use crate::units::ResultBook;

/// Where rows of one result go. It is made once for rows that follow each other: what is the same for all is looked up once.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) unit: u64,
    /// Each is counted here, and not by what the server says at the result's end.
    pub(crate) are_counted: bool,
    pub(crate) book: ResultBook<'a>,
    /// Position and type of each column that may be a key.
    pub(crate) keys: &'a [(u16, Oid)],
    /// Their values are kept.
    pub(crate) keeps_keys: &'a mut bool,
    pub(crate) values: &'a mut Values,
    pub(crate) undecoded: &'a mut u64,
}

impl Rows<'_> {
    /// Keeps a row's keys and adds the row to the result's digest. Returns whether the next one goes the same way.
    pub(crate) fn add(&mut self, body: &[u8], is_whole: bool) -> bool {
        self.book.statement.rows += u64::from(self.are_counted);
        let is_binary = self.book.formats.is_some_and(ResultFormats::has_binary);
        self.book.add_to_digest(self.values, self.unit, (body, is_whole), is_binary);
        !*self.keeps_keys || !is_whole || self.keep_keys(body, is_binary)
    }

    fn keep_keys(&mut self, body: &[u8], is_binary: bool) -> bool {
        let Self { book, keys, values, .. } = self;
        if !book.has_room_for(keys.len()) {
            return true;
        }
        let before = book.values.len();
        let mut next = keys.iter();
        let mut key = next.next();
        let is_row = DataRow::read(body, |position, value| {
            let Some((_, oid)) = key.filter(|(at, _)| *at == position) else { return };
            book.values.push(match book.formats {
                Some(formats) if is_binary => values.column(value, *oid, formats.of(usize::from(position))),
                _ => values.column(value, *oid, Format::Text),
            });
            key = next.next();
        });
        if is_row.is_err() {
            book.values.truncate(before);
            *self.undecoded += 1;
            return true;
        }
        if key.is_some() {
            // A row with fewer columns than were described: nothing to rely on.
            book.values.truncate(before);
            *self.keeps_keys = false;
            return false;
        }
        book.statement.results += keys.len() as u32;
        true
    }
}
