//! Generated programs of several sessions: what writes them, puts them into messages, waits for their answers and cuts
//! them down. Two rigs run them: `testing/model/tests/rig` on a model of PostgreSQL, by the hundred thousand and on a
//! virtual clock, and `edge/gateway/tests/rig` on real servers, through real sockets.
//!
//! | file | what |
//! |---|---|
//! | `random.rs` | where chance comes from |
//! | `step.rs`, `script.rs` | what one session does next; how a statement is put into messages |
//! | `messages.rs` | messages of a client, encoded |
//! | `begins.rs` | BEGIN and its kin, in an order of chance |
//! | `tables.rs` | what both rigs' tables have in common |
//! | `asked.rs` | whether what a client asked for was answered |
//! | `shrink.rs` | cutting a program down to what its failure needs |
//!
//! Non-scope: running programs, and which statements a family of programs is made of: a rig has those that its server
//! and its tables know.

pub mod asked;
pub mod begins;
pub mod messages;
pub mod random;
pub mod script;
pub mod shrink;
pub mod step;
pub mod tables;
