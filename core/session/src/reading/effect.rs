use onetrip_sql::StatementKind;

/// What a statement does to its session and transaction, as far as its text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Effect {
    /// Begins a transaction.
    Begin,
    /// Ends one.
    End,
    /// Nothing that outlives it, or is for the session alone: SHOW, an empty text, SET of `onetrip.lob_prefetch`.
    Nothing,
    /// Divides the transaction.
    Savepoint,
    /// Takes prepared statements away, and does nothing else (rule S7).
    Deallocates,
    /// Reads, if the catalogue says so too.
    Read,
    /// Writes rows; triggers may do more to the session, and are not taken to change the catalogue.
    WritesRows,
    /// Changes the session, not the catalogue.
    Unknown,
    /// Anything: it may change the catalogue.
    #[default]
    MayDefine,
}

impl Effect {
    pub(crate) fn of(kind: StatementKind) -> Self {
        use StatementKind as S;
        match kind {
            S::Begin => Self::Begin,
            S::Commit | S::Rollback => Self::End,
            S::Show | S::Empty => Self::Nothing,
            S::Savepoint | S::Release | S::RollbackTo => Self::Savepoint,
            S::Select | S::Values | S::With => Self::Read,
            S::Insert | S::Update | S::Delete | S::Merge => Self::WritesRows,
            S::Set | S::Reset | S::Declare | S::Fetch | S::Move | S::CloseCursor | S::Copy | S::Prepare => {
                Self::Unknown
            }
            S::Deallocate => Self::Deallocates,
            S::Discard | S::Listen | S::Notify | S::Unlisten => Self::Unknown,
            // What a Parse says of a table that is locked is for the server to say.
            S::Lock => Self::MayDefine,
            _ => Self::MayDefine,
        }
    }
}

/// Whether a statement of this kind has neither a query nor an expression in it that could call a function: it only directs its
/// session.
pub(crate) fn has_no_query(kind: StatementKind) -> bool {
    use StatementKind as S;
    matches!(kind, S::Set | S::Reset | S::CloseCursor | S::Discard | S::Listen | S::Notify | S::Unlisten)
}
