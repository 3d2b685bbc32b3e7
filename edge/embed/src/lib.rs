//! PostgreSQL's wire protocol over an embedded SQLite file: the server of `onetrip serve`.
//!
//! A client speaks protocol 3.0, simple or extended. Its session translates PostgreSQL's SQL to SQLite's, runs it, and
//! encodes the rows directly into the output buffer. One thread serves all sessions whose clients wait for an answer,
//! and another one goes on with them where a statement has to wait or takes long. `docs/embedded-server.md` says what
//! works and what does not, and how values get their types.
//!
//! Not here: TLS, replication, more than one database in a server, procedures and triggers in PostgreSQL's languages.

mod blocking;
mod catalog;
mod database;
mod error;
mod functions;
mod options;
mod server;
mod session;
mod sql;
mod types;
mod value;
mod watch;

pub use error::EmbedError;
pub use options::{Durability, Login, ServeOptions, User};
pub use server::{ServeStats, Server, Shutdown, replay, serve};
