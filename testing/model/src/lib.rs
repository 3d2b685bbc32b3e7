//! A model of PostgreSQL without I/O, on which tests run the generated programs of `onetrip-testkit`.
//!
//! [`Server`] takes and gives bytes of the protocol; time is an argument. It keeps versions of rows, snapshots, locks of
//! rows and tables, savepoints, portals, cursors, prepared statements and settings, and reads a small part of SQL. Whatever
//! it does not know is an error (SQLSTATE `XXMOD`), never a guess.
//!
//! Non-scope: SERIALIZABLE, DDL, plans, more of SQL than the programs use. A statement that PostgreSQL answers otherwise is
//! a mistake of the model's: `tests/postgres.rs` compares the two.

mod server;

pub use server::{BackendNumber, Server, TABLES, TableOf, refill, schema};
