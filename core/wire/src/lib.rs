//! Bytes to messages and back: no sockets, clocks, async or logging.
//!
//! A reader finds frames by their header and forwards what it does not need to understand; bodies are decoded
//! only where a decision needs them. Every decoder takes exactly one body, cannot panic and treats left-over
//! bytes as an error; what decodes encodes back to the same bytes.
//!
//! Besides the messages there are [`Prefetch`], the setting that clients and gateways have in common, and the [`calendar`]
//! that binary dates are counted by.
//!
//! Non-scope: values inside rows (their types belong to `sql` and to the drivers), and any state but that of
//! [`mysql::dialogue`]. In MySQL's protocol, the packets before a packet decide what it is.

pub mod calendar;
pub mod mysql;
pub mod pg;

mod error;
mod prefetch;
mod reader;

pub use error::WireError;
pub use prefetch::{BadPrefetch, Prefetch};
pub use reader::Reader;
