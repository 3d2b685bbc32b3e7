//! A pipelining PostgreSQL client. It needs as few trips, as little CPU and as little memory as the work allows. Its
//! types say what ran and what did not.
//!
//! [`core`] is the connection without a socket. [`blocking`] puts a socket around it, and [`aio`] one of tokio's.
//! Both use the same terms:
//!
//! - A [`core::Request`] becomes an operation with an [`OperationId`].
//! - Operations travel alone or in the block of a pipeline.
//! - [`Error::retry`] says whether the failed operation may be done again.
//!
//! Not in scope: other databases, and mapping rows to objects.

#[cfg(feature = "aio")]
pub mod aio;
pub mod blocking;
mod config;
pub mod core;
mod error;
mod operation;
mod param;
mod row;
mod tag;

pub use config::{Config, TargetSession};
pub use core::{Bulk, BulkDone, BulkError, Done, Notification, OnError, Outcome, Outcomes};
pub use error::{ConnectError, Error, Retry, ServerError, Usage};
pub use onetrip_wire::pg::{Format, Oid, TransactionStatus};
pub use operation::OperationId;
pub use param::{Param, Typed, Written};
pub use postgres_types as types;
pub use row::{Column, Columns, Place, ResultSet, Row};
pub use tag::CommandTag;

/// The tutorial's code compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/client.md")]
struct Tutorial;
