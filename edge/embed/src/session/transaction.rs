//! Transaction blocks over SQLite's transactions.
//!
//! ```text
//!            first statement of several        BEGIN
//!   Idle ───────────────────────────▶ Implicit ─────▶ Explicit ◀── BEGIN ── Idle
//!     ▲      Sync, end of the Query      │              │  │ error
//!     └──────────────────────────────────┘    COMMIT    │  ▼
//!     └──────────────────────────────────────ROLLBACK── failed
//! ```

use onetrip_wire::pg::TransactionStatus;
use rusqlite::Connection;

use super::errors::from_sqlite;
use crate::error::{SqlError, SqlResult};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// SQLite commits each statement by itself.
    Idle,
    /// Several statements that the client sent without waiting in between.
    Implicit,
    /// From BEGIN on.
    Explicit,
}

/// Where a session stands, and the statements that move it.
pub(super) struct Transaction<'c> {
    connection: &'c Connection,
    pub(super) block: Block,
    pub(super) has_failed: bool,
    pub(super) is_read_only: bool,
    begin: rusqlite::Statement<'c>,
    commit: rusqlite::Statement<'c>,
    rollback: rusqlite::Statement<'c>,
}

impl<'c> Transaction<'c> {
    pub(super) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            block: Block::Idle,
            has_failed: false,
            is_read_only: false,
            begin: connection.prepare("BEGIN")?,
            commit: connection.prepare("COMMIT")?,
            rollback: connection.prepare("ROLLBACK")?,
        })
    }

    pub(super) fn status(&self) -> TransactionStatus {
        match self.block {
            Block::Explicit if self.has_failed => TransactionStatus::Failed,
            Block::Explicit => TransactionStatus::Active,
            _ => TransactionStatus::Idle,
        }
    }

    pub(super) fn begin(&mut self, block: Block) -> SqlResult<()> {
        if self.block == Block::Idle {
            self.begin.raw_execute().map_err(|error| from_sqlite(&error))?;
        }
        self.block = block;
        Ok(())
    }

    /// Commits; where that fails, everything is rolled back, as in PostgreSQL.
    pub(super) fn commit(&mut self) -> SqlResult<()> {
        if self.block == Block::Idle {
            return Ok(());
        }
        if self.connection.is_autocommit() {
            // SQLite has rolled back by itself after a severe error, which was reported then.
            self.end();
            return Ok(());
        }
        let committed = self.commit.raw_execute().map_err(|error| from_sqlite(&error));
        if committed.is_err() {
            self.rollback();
        }
        self.end();
        committed.map(drop)
    }

    pub(super) fn rollback(&mut self) {
        if !self.connection.is_autocommit() {
            // A rollback fails only where there is nothing left to roll back.
            let _ = self.rollback.raw_execute();
        }
        self.end();
    }

    fn end(&mut self) {
        self.block = Block::Idle;
        self.has_failed = false;
        self.is_read_only = false;
    }

    /// Refuses everything but the end of a failed transaction.
    pub(super) fn check_usable(&self) -> SqlResult<()> {
        if self.has_failed {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return Err(SqlError::new("25P02", message));
        }
        Ok(())
    }
}
