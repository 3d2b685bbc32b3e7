use super::prefetch::first_part;
use super::{LENGTH_OBJECT, Lob, LobSource};
use crate::core::{Connection, OperationId, Prefetch, Request};
use crate::{Done, Error, Outcomes};

/// What is fetched of many large values together, without its waiting: an operation for each in a block that aborts.
#[derive(Debug)]
pub(crate) struct FirstParts<'a> {
    lobs: Vec<Lob<'a>>,
    /// How much of each, by those who may say so.
    levels: Vec<Prefetch>,
    /// The next value to ask for.
    next: usize,
    /// The values that were asked for, how much of each (0 is the length), and by which operation.
    asked: Vec<(usize, u32, OperationId)>,
}

impl<'a> FirstParts<'a> {
    /// Of these values. Each says for itself or leaves it to `prefetch`, and that to the connection's default; the
    /// narrower wins.
    pub(crate) fn new(
        core: &Connection,
        sources: &[(LobSource<'a>, Option<Prefetch>)],
        prefetch: Option<Prefetch>,
    ) -> Self {
        let default = core.limits().prefetch;
        Self {
            lobs: sources.iter().map(|(source, _)| Lob::new(*source)).collect(),
            levels: sources
                .iter()
                .map(|(_, own)| Prefetch::narrowest([Some(default), prefetch, *own]))
                .collect(),
            next: 0,
            asked: Vec::new(),
        }
    }

    /// Adds what is asked of the next value to the block; false once all have been.
    ///
    /// # Errors
    /// As [`Connection::push`].
    pub(crate) fn push_next(&mut self, core: &mut Connection) -> Result<bool, Error> {
        let index = self.next;
        let Some((lob, level)) = self.lobs.get(index).zip(self.levels.get(index)) else { return Ok(false) };
        self.next += 1;
        let first = first_part(*level, self.lobs.len(), core.limits().read_ahead);
        if first > 0 {
            let operation = lob.asking(1, first, |request| core.push(request, None))?;
            self.asked.push((index, first, operation));
        } else if let (Prefetch::Length, LobSource::Object(oid)) = (level, lob.source) {
            self.asked.push((index, 0, core.push(&Request::new(LENGTH_OBJECT, &[&oid]), None)?));
        }
        Ok(true)
    }

    /// The values, once the block has ended.
    ///
    /// # Errors
    /// The first that could not be read.
    pub(crate) fn take(mut self, mut outcomes: Outcomes<'_>) -> Result<Vec<Lob<'a>>, Error> {
        outcomes.check()?;
        for (index, first, operation) in self.asked {
            let done = outcomes.take(operation)?;
            match first {
                0 => self.lobs[index].length = length_of(&done)?,
                first => self.lobs[index].take_piece(done, first)?,
            }
        }
        Ok(self.lobs)
    }
}

fn length_of(done: &Done) -> Result<Option<u64>, Error> {
    let row = done.rows.as_ref().and_then(|rows| rows.rows().next());
    let length: Option<i64> = row.map(|row| row.get(0)).transpose()?;
    Ok(length.and_then(|length| u64::try_from(length).ok()))
}
