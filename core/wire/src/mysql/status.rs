use std::fmt;

/// Status of a session, from OK and EOF packets.
///
/// Source: MySQL Internals, "Status Flags"; MariaDB Knowledge Base, "OK_Packet".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(pub u16);

impl Status {
    /// A transaction is open.
    pub const IN_TRANSACTION: Self = Self(1);
    /// Autocommit is on.
    pub const AUTOCOMMIT: Self = Self(1 << 1);
    /// Another result of the same command follows.
    pub const MORE_RESULTS_EXIST: Self = Self(1 << 3);
    /// No index was good enough.
    pub const NO_GOOD_INDEX_USED: Self = Self(1 << 4);
    /// No index was used.
    pub const NO_INDEX_USED: Self = Self(1 << 5);
    /// A cursor is open; its rows are fetched.
    pub const CURSOR_EXISTS: Self = Self(1 << 6);
    /// The last row of a cursor was sent.
    pub const LAST_ROW_SENT: Self = Self(1 << 7);
    /// A database was dropped.
    pub const DB_DROPPED: Self = Self(1 << 8);
    /// A backslash is itself within quotes.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 9);
    /// A prepared statement has other columns than before.
    pub const METADATA_CHANGED: Self = Self(1 << 10);
    /// The statement was slow.
    pub const QUERY_WAS_SLOW: Self = Self(1 << 11);
    /// The result is the values of a procedure's OUT parameters.
    pub const PS_OUT_PARAMS: Self = Self(1 << 12);
    /// The open transaction only reads.
    pub const IN_TRANSACTION_READ_ONLY: Self = Self(1 << 13);
    /// The OK packet tells what changed of the session.
    pub const SESSION_STATE_CHANGED: Self = Self(1 << 14);
    /// Double quotes are an identifier's (MariaDB).
    pub const ANSI_QUOTES: Self = Self(1 << 15);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#x})", self.0)
    }
}
