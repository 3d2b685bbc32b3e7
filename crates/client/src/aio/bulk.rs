use super::{Client, Pipeline};
use crate::core::{Many, SetList};
use crate::{Bulk, BulkDone, BulkError, OnError, OperationId, Param};

impl Client {
    /// Runs one statement with many sets of parameters; returns how many rows they changed together. Outside of a
    /// transaction all of it is kept, or nothing.
    ///
    /// # Errors
    /// Which set failed, and with what; as [`pipeline`](Self::pipeline).
    pub async fn execute_many<'p>(
        &mut self,
        statement: &str,
        sets: impl IntoIterator<Item = &'p [&'p (dyn Param + Sync)]>,
    ) -> Result<u64, BulkError> {
        self.execute_many_by(Bulk::Auto, statement, sets).await.map(|done| done.rows)
    }

    /// The same, in a way that you choose.
    ///
    /// # Errors
    /// As [`execute_many`](Self::execute_many), and [`Usage::NotPlainInsert`](crate::Usage::NotPlainInsert) for a
    /// statement that cannot go this way.
    pub async fn execute_many_by<'p>(
        &mut self,
        way: Bulk,
        statement: &str,
        sets: impl IntoIterator<Item = &'p [&'p (dyn Param + Sync)]>,
    ) -> Result<BulkDone, BulkError> {
        let sets: SetList<'p, dyn Param + Sync + 'p> = SetList(sets.into_iter().collect());
        self.settle().await?;
        let mut many = Many::new(&self.core, way, statement, &sets)?;
        loop {
            match self.try_many(&mut many, statement, &sets).await {
                Err(failed) if many.goes_again(&self.core, &failed) => many.one_by_one(),
                done => return done,
            }
        }
    }

    async fn try_many<'p>(
        &mut self,
        many: &mut Many<'_>,
        statement: &str,
        sets: &SetList<'p, dyn Param + Sync + 'p>,
    ) -> Result<BulkDone, BulkError> {
        let mut pipeline = self.pipeline(OnError::Abort).await?;
        if let Some(table) = many.asks_about() {
            let asked = pipeline.client.core.push_facts(statement, sets, table)?;
            pipeline.process(asked).await?;
            if !many.learn(&mut pipeline.client.core, asked, sets) {
                pipeline.end().await?;
                many.one_by_one();
                pipeline = self.pipeline(OnError::Abort).await?;
            }
        }
        if let Err(failed) = pipeline.push_many(many, statement, sets).await {
            // What was pushed shall not hold either. A connection that is lost has nothing to take back.
            if many.takes_back(&pipeline.client.core) {
                let _ = pipeline.execute("ROLLBACK", &[]).await;
            }
            let _ = pipeline.end().await;
            return Err(failed);
        }
        pipeline.end().await?;
        many.finish(&self.core)
    }
}

impl Pipeline<'_> {
    async fn push_many<'p>(
        &mut self,
        many: &mut Many<'_>,
        statement: &str,
        sets: &SetList<'p, dyn Param + Sync + 'p>,
    ) -> Result<(), BulkError> {
        loop {
            let first = many.position();
            let Some(piece) = many.next(sets)? else { return Ok(()) };
            let operation = match piece.push(&mut self.client.core)? {
                Some(operation) => {
                    self.send().await?;
                    operation
                }
                None => self.execute_set(statement, sets, first).await?,
            };
            many.pushed(operation, &piece, first);
        }
    }

    async fn execute_set<'p>(
        &mut self,
        statement: &str,
        sets: &SetList<'p, dyn Param + Sync + 'p>,
        set: usize,
    ) -> Result<OperationId, BulkError> {
        let failed = |error| BulkError { set: Some(set), error };
        self.execute(statement, sets.0[set]).await.map_err(failed)
    }
}
