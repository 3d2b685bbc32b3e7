use std::fmt;
use std::ops::{BitAnd, BitOr};

/// Capability flags of a client or a server: the 32 of MySQL, and above them the 32 that MariaDB adds.
///
/// Source: MySQL Internals, "Capability Flags"; MariaDB Knowledge Base, "Connection: Capabilities". What both sides set is
/// what holds for the connection. Those that no server of MariaDB 10.11 or MySQL 5.6 knows are not verified on 8.x.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Long passwords; MariaDB calls it CLIENT_MYSQL, and a side that is MariaDB's and extended leaves it out.
    pub const LONG_PASSWORD: Self = Self(1);
    /// Counts of changes are those of rows found.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// Columns have long flags.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// The client names a database when it connects.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// `database.table.column` is not allowed.
    pub const NO_SCHEMA: Self = Self(1 << 4);
    /// Packets are compressed by zlib after the login.
    pub const COMPRESS: Self = Self(1 << 5);
    /// The client is ODBC.
    pub const ODBC: Self = Self(1 << 6);
    /// `LOAD DATA LOCAL INFILE` may be used.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// Blanks before a parenthesis are ignored.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// The protocol of 4.1, the only one here.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// `interactive_timeout` holds.
    pub const INTERACTIVE: Self = Self(1 << 10);
    /// TLS follows the first 32 bytes of the response.
    pub const SSL: Self = Self(1 << 11);
    /// For the client's own use.
    pub const IGNORE_SIGPIPE: Self = Self(1 << 12);
    /// Status flags are in OK packets.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Of the protocol of 4.1, once.
    pub const RESERVED: Self = Self(1 << 14);
    /// Answers to the challenge have a length; also "secure connection".
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// Several statements in a text.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// Several results for a text.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// Several results for a prepared statement.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// Ways to log in have names.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// The client says things of itself.
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// The answer to the challenge has a length-encoded length.
    pub const PLUGIN_AUTH_LENENC_CLIENT_DATA: Self = Self(1 << 21);
    /// The client can change a password that has expired.
    pub const CAN_HANDLE_EXPIRED_PASSWORDS: Self = Self(1 << 22);
    /// OK packets tell what changed of the session.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// An OK packet ends rows, and nothing ends definitions of columns.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// Definitions of columns may be left out (MySQL 8; not verified on 8.x).
    pub const OPTIONAL_RESULTSET_METADATA: Self = Self(1 << 25);
    /// Packets are compressed by zstd after the login (MySQL 8; not verified on 8.x).
    pub const ZSTD_COMPRESSION: Self = Self(1 << 26);
    /// Statements carry attributes (MySQL 8; not verified on 8.x).
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);
    /// More than one factor to log in (MySQL 8; not verified on 8.x).
    pub const MULTI_FACTOR_AUTHENTICATION: Self = Self(1 << 28);
    /// Reserved by MySQL for capabilities to come; MariaDB's old progress reports.
    pub const CAPABILITY_EXTENSION: Self = Self(1 << 29);
    /// For the client's own use.
    pub const SSL_VERIFY_SERVER_CERT: Self = Self(1 << 30);
    /// For the client's own use.
    pub const REMEMBER_OPTIONS: Self = Self(1 << 31);
    /// MariaDB: progress of long statements is reported.
    pub const MARIADB_PROGRESS: Self = Self(1 << 32);
    /// MariaDB: COM_MULTI, which is gone since 10.6.
    pub const MARIADB_COM_MULTI: Self = Self(1 << 33);
    /// MariaDB: COM_STMT_BULK_EXECUTE.
    pub const MARIADB_STMT_BULK_OPERATIONS: Self = Self(1 << 34);
    /// MariaDB: columns tell more of their types.
    pub const MARIADB_EXTENDED_METADATA: Self = Self(1 << 35);
    /// MariaDB: definitions of columns that did not change are left out.
    pub const MARIADB_CACHE_METADATA: Self = Self(1 << 36);
    /// MariaDB 11.5: a bulk execution gives a result for each set.
    pub const MARIADB_BULK_UNIT_RESULTS: Self = Self(1 << 37);

    /// Whether all of `flags` are set.
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The 32 that MySQL has.
    pub(super) fn low(self) -> u32 {
        self.0 as u32
    }

    /// Whether a side that sets these sends MariaDB's 32 as well.
    pub(super) fn is_extended(low: u32) -> bool {
        low & Self::LONG_PASSWORD.low() == 0
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Capabilities {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capabilities({:#x})", self.0)
    }
}
