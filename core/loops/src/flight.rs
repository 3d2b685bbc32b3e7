//! Guesses that leave together.

use crate::value::{Form, Ticket, Value};

/// Guesses in the order in which the program is expected to ask, for one write. Reuse one: it keeps its memory.
#[derive(Debug, Default)]
pub struct Flight {
    heads: Vec<Head>,
    values: Vec<Slot>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    ticket: Ticket,
    template: u32,
    first_value: u32,
    value_count: u32,
}

/// A value's form, and where its bytes start and how many there are; `None` is NULL.
pub(crate) type Slot = (Form, Option<(u32, u32)>);

/// A statement that nobody has asked for yet.
#[derive(Debug, Clone, Copy)]
pub struct Guess<'a> {
    /// Tells its answer from others.
    pub ticket: Ticket,
    /// The session's number of the template.
    pub template: u32,
    values: &'a [Slot],
    bytes: &'a [u8],
}

impl<'a> Guess<'a> {
    /// Its values, in the forms of the program's last statement of this template.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Value<'a>> + use<'a> {
        let bytes = self.bytes;
        self.values.iter().map(move |(form, place)| Value {
            form: *form,
            bytes: place.and_then(|(start, length)| bytes.get(start as usize..(start + length) as usize)),
        })
    }
}

impl Flight {
    /// The guesses in program order.
    pub fn guesses(&self) -> impl ExactSizeIterator<Item = Guess<'_>> {
        self.heads.iter().map(|head| {
            let first = head.first_value as usize;
            Guess {
                ticket: head.ticket,
                template: head.template,
                values: &self.values[first..first + head.value_count as usize],
                bytes: &self.bytes,
            }
        })
    }

    /// How many guesses there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Takes all guesses out.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.values.clear();
        self.bytes.clear();
    }

    /// Lets `write` append a guess's values; `accept` sees their bytes and gives the ticket. Nothing is added if
    /// either declines.
    pub(crate) fn add(
        &mut self,
        template: u32,
        write: impl FnOnce(&mut Vec<u8>, &mut Vec<Slot>) -> bool,
        accept: impl FnOnce(&[u8]) -> Option<Ticket>,
    ) -> Option<Ticket> {
        let (bytes_before, values_before) = (self.bytes.len(), self.values.len());
        let is_written = write(&mut self.bytes, &mut self.values);
        let ticket = if is_written { accept(&self.bytes[bytes_before..]) } else { None };
        let Some(ticket) = ticket else {
            self.bytes.truncate(bytes_before);
            self.values.truncate(values_before);
            return None;
        };
        self.heads.push(Head {
            ticket,
            template,
            first_value: values_before as u32,
            value_count: (self.values.len() - values_before) as u32,
        });
        Some(ticket)
    }
}
