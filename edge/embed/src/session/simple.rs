//! The simple protocol: one message, any number of statements.

use onetrip_wire::Reader;
use onetrip_wire::pg::backend;

use super::extended::utf8;
use super::output::Output;
use super::transaction::Block;
use super::{Failure, Session, ends_transaction};
use crate::error::{SqlError, SqlResult};
use crate::sql::{Statement, Utility, split};

impl Session<'_> {
    pub(super) fn simple_query(&mut self, body: &[u8], out: &mut Output<'_>) -> Result<(), Failure> {
        match self.run_texts(body, out) {
            Ok(is_copying) if is_copying => return Ok(()), // CopyDone makes it ready
            Ok(_) => {}
            Err(Failure::Io(error)) => return Err(Failure::Io(error)),
            Err(Failure::Sql(error)) => self.fail(*error, out),
        }
        self.ready(out);
        Ok(())
    }

    /// Runs all statements of the text; true where the last one waits for COPY data.
    fn run_texts(&mut self, body: &[u8], out: &mut Output<'_>) -> Result<bool, Failure> {
        let mut reader = Reader::new(body);
        let whole = utf8(reader.c_str()?)?;
        reader.finish()?;
        let texts = split(whole).map_err(|error| error.positioned(whole, 0))?;
        if texts.is_empty() {
            out.bare(backend::EMPTY_QUERY_RESPONSE);
            self.end_message()?;
            return Ok(false);
        }
        // The unnamed statement and portal end with a simple query.
        self.unnamed_statement = None;
        if let Some(portal) = self.unnamed_portal.take() {
            self.spare_formats = portal.close();
        }
        let count = texts.len();
        for (index, text) in texts.into_iter().enumerate() {
            let base = text.as_ptr() as usize - whole.as_ptr() as usize;
            self.run_text(text, count == 1, out).map_err(|failure| match failure {
                Failure::Sql(error) => Failure::Sql(Box::new(error.positioned(whole, base))),
                other => other,
            })?;
            if self.copying.is_some() {
                if index + 1 < count {
                    return Err(SqlError::unsupported("COPY must be the last statement of its query").into());
                }
                return Ok(true);
            }
        }
        self.end_message()?;
        Ok(false)
    }

    /// Ends the transaction that belongs to one message.
    fn end_message(&mut self) -> SqlResult<()> {
        match self.transaction.block {
            Block::Implicit => self.commit(),
            Block::Explicit => Ok(()),
            Block::Idle => {
                self.end_idle();
                Ok(())
            }
        }
    }

    fn run_text(&mut self, text: &str, is_alone: bool, out: &mut Output<'_>) -> Result<(), Failure> {
        let prepared = match self.prepare(text, &[]) {
            // In a failed transaction even nonsense gets this error, unless it does not parse.
            Err(error) if error.sqlstate != "42601" => {
                self.transaction.check_usable()?;
                return Err(error.into());
            }
            prepared => prepared?,
        };
        if !ends_transaction(&prepared.statement) {
            self.transaction.check_usable()?;
        }
        if !prepared.parameters().is_empty() {
            return Err(SqlError::new("42P02", "there is no parameter $1").into());
        }
        prepared.refresh(&self.schema, self.schema_epoch())?;
        if let Statement::Utility(Utility::Copy(copy)) = &prepared.statement {
            return self.copy_start(copy, true, out);
        }
        let mut portal = self.open_portal(prepared)?;
        let done = self.run(&mut portal, None, (is_alone, true), out);
        self.spare_formats = portal.close();
        done
    }
}
