//! What tests of the remedies share: programs of several sessions, and a model of PostgreSQL that runs them without I/O.
//!
//! [`Server`] takes and gives bytes of the protocol; time is an argument. It keeps versions of rows, snapshots, locks of
//! rows and tables, savepoints, portals, cursors, prepared statements and settings, and reads a small part of SQL. Whatever
//! it does not know is an error (SQLSTATE `XXMOD`), never a guess.
//!
//! | file | what |
//! |---|---|
//! | `asked.rs` | whether what a client asked for was answered |
//! | `random.rs` | where chance comes from |
//! | `messages.rs` | messages of a client, encoded |
//! | `step.rs`, `script.rs` | what one session does next; how a statement is put into messages |
//! | `shrink.rs` | cutting a program down to what its failure needs |
//! | `server/` | the model |
//!
//! Non-scope: SERIALIZABLE, DDL, plans, more of SQL than the programs use. A statement that PostgreSQL answers otherwise is
//! a mistake of the model's: `tests/postgres.rs` compares the two.

pub mod asked;
pub mod messages;
pub mod random;
pub mod script;
mod server;
pub mod shrink;
pub mod step;

pub use server::{BackendNumber, Server, TABLES, TableOf, refill, schema};
