use serde::Serialize;

/// What is missing from the records that a summary was counted from. Without gaps all is zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Gaps {
    /// Bytes of records that could not be kept, because the disk or a reader was too slow, or the disk was full.
    pub lost_bytes: u64,
    /// Places of the trace that are damaged; each may have held several blocks.
    pub damaged_blocks: u64,
    /// Bytes of the trace in such places.
    pub damaged_bytes: u64,
    /// Bytes at the end of the trace that are no complete block.
    pub tail_bytes: u64,
    /// The trace has no end mark: it is still being written, or its writer was killed.
    pub is_open: bool,
    /// Exchanges of which the trace keeps a part only: trips, statements and rows are counted, findings may miss some.
    pub cut_exchanges: u64,
    /// Statements whose text is not told apart, because there are too many different ones.
    pub untold_statements: u64,
    /// Statements whose scope or request is not told apart, because there are too many.
    pub unscoped_statements: u64,
}

impl Gaps {
    /// Whether records are missing: all counts are then lower bounds.
    pub fn has_loss(&self) -> bool {
        self.lost_bytes > 0 || self.damaged_blocks > 0
    }

    /// Whether the trace may hold less than the run did.
    pub fn is_partial(&self) -> bool {
        self.has_loss() || self.is_open
    }

    /// Whether findings may be missing although no record is.
    pub fn hides_findings(&self) -> bool {
        self.cut_exchanges > 0 || self.untold_statements > 0
    }
}

/// What of an exchange is counted and not kept, because there is too much of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    /// Statements that were run.
    pub statements: u64,
    /// Statements that failed.
    pub failed: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Values given to statements that are kept.
    pub values: u64,
    /// Statements whose text is not told apart.
    pub untold: u64,
    /// Statements whose scope is not told apart.
    pub unscoped: u64,
}

impl Cut {
    /// Whether all of the exchange is kept.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Whether only a part of the exchange is kept.
    pub(crate) fn leaves_out(&self) -> bool {
        self.statements > 0 || self.failed > 0 || self.values > 0
    }
}
