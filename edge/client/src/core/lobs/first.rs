use onetrip_wire::Prefetch;

use super::{Lob, LobPart, LobSource};
use crate::core::{Connection, OperationId};
use crate::{Error, Outcomes};

/// What is fetched of many large values together, without its waiting: an operation for each in a block that aborts.
#[derive(Debug)]
pub(crate) struct FirstParts<'a> {
    lobs: Vec<Lob<'a>>,
    /// How much of each, by those who may say so.
    levels: Vec<Prefetch>,
    /// The next value to ask for.
    next: usize,
    /// The values of which something was asked for, what of each, and by which operation.
    asked: Vec<(usize, LobPart, OperationId)>,
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
        let room = core.limits().read_ahead;
        if let Some(part) = lob.buffer.first(&lob.source, *level, self.lobs.len(), room) {
            let operation = lob.source.asking(part, |request| core.push(request, None))?;
            self.asked.push((index, part, operation));
        }
        Ok(true)
    }

    /// The values, once the block has ended.
    ///
    /// # Errors
    /// The first that could not be read.
    pub(crate) fn take(mut self, mut outcomes: Outcomes<'_>) -> Result<Vec<Lob<'a>>, Error> {
        outcomes.check()?;
        for (index, part, operation) in self.asked {
            self.lobs[index].buffer.came(part, &outcomes.take(operation)?)?;
        }
        Ok(self.lobs)
    }
}
