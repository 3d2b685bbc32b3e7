//! Packet captures to exchanges: the files, link and IP layers, TCP reassembly, and what the network cost.
//!
//! ```text
//!   bytes of a file -> file -> link -> segment -> tcp -> postgres, mysql -> session (watching) -> records
//!                                        |         |  \-> turns (what is not decoded) -----------/
//!                                    fragments     \-> marks, path -> NetworkSummary
//! ```
//!
//! Bytes in, records out: [`CaptureFile`] turns a file's bytes into packets, [`Capture`] packets into blocks of records for
//! a `ledger::Analyzer`, as a gateway writes them. What was not captured is unknown, and counted as that; it is never
//! guessed.
//!
//! [`source`] opens files and pipes. Non-scope: protocols' messages (`wire`), what they mean for trips (`session`), and what is found
//! in them (`ledger`).

mod capture;
mod connection;
mod copying;
pub mod file;
mod fragments;
pub mod link;
mod mysql;
mod ports;
mod postgres;
pub mod segment;
pub mod sides;
pub mod source;
mod tcp;
mod tls;
mod turns;
mod twice;
mod untimed;
mod watched;

pub use capture::{Capture, CaptureConfig};
pub use file::{CaptureFile, FileError, FileProblem, Interface, Packet};
pub use tcp::Marks;
pub use tls::{KeyLog, KeyLogError};
pub use untimed::without_times;
