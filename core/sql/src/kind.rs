//! What sort of statement a text is.

use crate::words::Keyword;

/// The sort of a statement, by its main verb. It says nothing about functions that the statement calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StatementKind {
    /// Nothing but blanks, comments and semicolons.
    #[default]
    Empty,
    /// Several non-empty statements; see [`Facts::parts`](crate::Facts::parts).
    Multi,
    /// `SELECT`, also `TABLE name`. May still write: see `writes`, `into`, `locks_rows` of the facts.
    Select,
    /// `VALUES (…)`.
    Values,
    /// `WITH …` whose main verb was not found.
    With,
    /// `INSERT`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE`.
    Delete,
    /// `MERGE`.
    Merge,
    /// `BEGIN`, `START TRANSACTION`.
    Begin,
    /// `COMMIT`, `END`.
    Commit,
    /// `ROLLBACK`, `ABORT` of the whole transaction.
    Rollback,
    /// `SAVEPOINT name`.
    Savepoint,
    /// `RELEASE name`.
    Release,
    /// `ROLLBACK TO name`.
    RollbackTo,
    /// `PREPARE TRANSACTION`, `COMMIT PREPARED`, `ROLLBACK PREPARED`.
    TwoPhase,
    /// `SET`.
    Set,
    /// `RESET`.
    Reset,
    /// `SHOW`.
    Show,
    /// `DECLARE … CURSOR`.
    Declare,
    /// `FETCH`.
    Fetch,
    /// `MOVE`.
    Move,
    /// `CLOSE`.
    CloseCursor,
    /// `COPY`, either way.
    Copy,
    /// `PREPARE name AS …`.
    Prepare,
    /// `EXECUTE name`.
    Execute,
    /// `DEALLOCATE`.
    Deallocate,
    /// `DISCARD`.
    Discard,
    /// `LOCK TABLE`.
    Lock,
    /// `LISTEN`.
    Listen,
    /// `NOTIFY`.
    Notify,
    /// `UNLISTEN`.
    Unlisten,
    /// `EXPLAIN`, which runs its statement only with `ANALYZE`.
    Explain,
    /// `CALL`.
    Call,
    /// `DO`.
    Do,
    /// `VACUUM`, `ANALYZE`, `REINDEX`, `CLUSTER`, `CHECKPOINT`, `REFRESH`.
    Maintenance,
    /// `CREATE`, `ALTER`, `DROP`, `TRUNCATE`, `COMMENT`, `GRANT`, `REVOKE` and their like.
    Ddl,
    /// Anything else, also what PostgreSQL would refuse.
    Other,
}

impl StatementKind {
    /// Whether the verb alone reads. A `SELECT` can write all the same: ask the facts too.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Select | Self::Values | Self::Show | Self::Fetch)
    }

    /// Whether the verb writes rows.
    pub fn is_row_write(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete | Self::Merge)
    }

    /// Whether it begins, ends or divides a transaction.
    pub fn is_transaction_control(self) -> bool {
        matches!(
            self,
            Self::Begin
                | Self::Commit
                | Self::Rollback
                | Self::Savepoint
                | Self::Release
                | Self::RollbackTo
                | Self::TwoPhase
        )
    }

    /// The sort that a statement's first word announces.
    pub(crate) fn of_first_word(word: Keyword) -> Self {
        match word {
            Keyword::Select | Keyword::Table => Self::Select,
            Keyword::Values => Self::Values,
            Keyword::With => Self::With,
            Keyword::Insert => Self::Insert,
            Keyword::Update => Self::Update,
            Keyword::Delete => Self::Delete,
            Keyword::Merge => Self::Merge,
            Keyword::Begin => Self::Begin,
            Keyword::Commit | Keyword::End => Self::Commit,
            Keyword::Rollback | Keyword::Abort => Self::Rollback,
            Keyword::Savepoint => Self::Savepoint,
            Keyword::Release => Self::Release,
            Keyword::Explain => Self::Explain,
            Keyword::Call => Self::Call,
            Keyword::Do => Self::Do,
            Keyword::Copy => Self::Copy,
            Keyword::Lock => Self::Lock,
            _ => Self::of_session_word(word),
        }
    }

    fn of_session_word(word: Keyword) -> Self {
        match word {
            Keyword::Set => Self::Set,
            Keyword::Reset => Self::Reset,
            Keyword::Show => Self::Show,
            Keyword::Declare => Self::Declare,
            Keyword::Fetch => Self::Fetch,
            Keyword::Move => Self::Move,
            Keyword::Close => Self::CloseCursor,
            Keyword::Prepare => Self::Prepare,
            Keyword::Execute => Self::Execute,
            Keyword::Deallocate => Self::Deallocate,
            Keyword::Discard => Self::Discard,
            Keyword::Listen => Self::Listen,
            Keyword::Notify => Self::Notify,
            Keyword::Unlisten => Self::Unlisten,
            Keyword::Vacuum
            | Keyword::Analyze
            | Keyword::Reindex
            | Keyword::Cluster
            | Keyword::Checkpoint
            | Keyword::Refresh => Self::Maintenance,
            Keyword::Create
            | Keyword::Alter
            | Keyword::Drop
            | Keyword::Truncate
            | Keyword::Comment
            | Keyword::Grant
            | Keyword::Revoke
            | Keyword::Reassign
            | Keyword::Security
            | Keyword::Import => Self::Ddl,
            _ => Self::Other,
        }
    }
}
