// Made from aio/bulk.rs by tests/twins.rs: change that one.
use super::{Client, Pipeline};
use crate::core::{Many, ManyStep, SetList, Sets};
use crate::{Bulk, BulkDone, BulkError, Param};

impl Client {
    /// Runs one statement with many sets of parameters; returns how many rows they changed together. Outside of a
    /// transaction all of it is kept, or nothing.
    ///
    /// # Errors
    /// Which set failed, and with what; as [`pipeline`](Self::pipeline).
    pub fn execute_many<'p>(
        &mut self,
        statement: &str,
        sets: impl IntoIterator<Item = &'p [&'p dyn Param]>,
    ) -> Result<u64, BulkError> {
        self.execute_many_by(Bulk::Auto, statement, sets).map(|done| done.rows)
    }

    /// The same, in a way that you choose.
    ///
    /// # Errors
    /// As [`execute_many`](Self::execute_many), and [`Usage::NotPlainInsert`](crate::Usage::NotPlainInsert) for a
    /// statement that cannot go this way.
    pub fn execute_many_by<'p>(
        &mut self,
        way: Bulk,
        statement: &str,
        sets: impl IntoIterator<Item = &'p [&'p dyn Param]>,
    ) -> Result<BulkDone, BulkError> {
        let sets: SetList<'p, dyn Param + 'p> = SetList(sets.into_iter().collect());
        self.run_many(way, statement, &sets, false)
    }

    /// The same with sets of a kind of the caller's own. With `begins`, BEGIN travels along if no transaction is open.
    ///
    /// # Errors
    /// As [`execute_many_by`](Self::execute_many_by).
    pub fn run_many(
        &mut self,
        way: Bulk,
        statement: &str,
        sets: &impl Sets,
        begins: bool,
    ) -> Result<BulkDone, BulkError> {
        self.settle()?;
        let mut many = Many::new(&self.core, way, statement, sets, begins)?;
        let mut pipeline = Pipeline::new(self);
        loop {
            match many.step(&mut pipeline.client.core, sets)? {
                ManyStep::Send => pipeline.send()?,
                ManyStep::Answer(operation) => pipeline.process(operation)?,
                ManyStep::Settle => pipeline.wait_settled()?,
                ManyStep::Done(done) => return Ok(done),
            }
        }
    }
}
