//! What a server is told at its start.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// How to serve a database file.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The SQLite file; made when it is not there.
    pub database: PathBuf,
    /// Address that [`crate::Server::start`] listens on; port 0 takes a free one. [`crate::serve`] is given a
    /// socket and does not look at it.
    pub listen: SocketAddr,
    /// How clients prove who they are.
    pub login: Login,
    /// Most sessions at a time; one more is refused with SQLSTATE 53300. Each takes three file descriptors and up to
    /// [`Self::cache_kib`] of page cache; those whose statements wait, or run for long, take a thread each.
    pub sessions_max: usize,
    /// How long a client may take from its connection to the end of its login. As many clients as there may be sessions,
    /// and a few more, can be at it; one more takes the place of the one that has been at it longest.
    pub login_timeout: Duration,
    /// Longest message that a client may send, and longest value that a row may hold, in bytes.
    pub message_bytes_max: u32,
    /// How long a statement waits for another session's write to end before it fails with SQLSTATE 55P03.
    pub lock_timeout: Duration,
    /// What a COMMIT waits for.
    pub durability: Durability,
    /// Page cache of a session, in KiB.
    pub cache_kib: u32,
}

impl ServeOptions {
    /// Serves this file on a free port of the loopback address, to anyone who can reach it there.
    pub fn new(database: impl Into<PathBuf>) -> Self {
        Self {
            database: database.into(),
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            login: Login::Trust,
            sessions_max: 100,
            login_timeout: Duration::from_secs(60), // PostgreSQL's default
            message_bytes_max: 64 << 20,
            lock_timeout: Duration::from_secs(5),
            durability: Durability::Full,
            cache_kib: 2048,
        }
    }
}

/// Who is let in.
#[derive(Debug, Clone)]
pub enum Login {
    /// Everyone, under any name.
    Trust,
    /// These users, by SCRAM-SHA-256.
    Scram(Vec<User>),
}

/// A name and its password.
#[derive(Clone)]
pub struct User {
    /// Name as clients send it.
    pub name: String,
    /// The password. It is used as it is: SASLprep changes ASCII text in no way, other text is compared byte by byte.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// SQLite's `synchronous`, in write-ahead mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A COMMIT is on disk before it is answered.
    #[default]
    Full,
    /// The file survives a power cut whole, but the last commits may be lost.
    Normal,
    /// The file survives a crash of the server, not one of the machine.
    Off,
}

impl Durability {
    pub(crate) fn pragma(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
            Self::Off => "OFF",
        }
    }
}
