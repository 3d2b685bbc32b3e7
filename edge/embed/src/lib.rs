//! PostgreSQL wire over an embedded SQLite file: the server behind `onetrip serve`.
//!
//! A client speaks protocol 3.0, simple or extended; a thread of its own translates PostgreSQL's SQL to SQLite's,
//! runs it, and encodes the rows straight into the output buffer. What works and what does not, and how values get
//! their types, is in `docs/embedded-server.md`.
//!
//! Not here: TLS, replication, more than one database in a server, procedures and triggers in PostgreSQL's languages.

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
