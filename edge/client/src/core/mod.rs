//! The connection without its socket: requests in, bytes out; bytes in, events out.
//!
//! ```text
//!   Opening --(let in)--> Connection
//!                           |  submit, push, sync, flush          requests: encoded into the output, booked in the queue
//!                           |  output, sent                       bytes for the socket
//!                           |  input_space, received, lost        bytes from the socket
//!                           |  leaves, heard                      when these go and came, for shells with a clock
//!                           '  next_event, row, outcome           what the server said
//! ```
//!
//! Replies come in the order of the requests, so one queue knows whose each is. After an error the server
//! skips everything up to the next Sync; the entries up to there are dropped in one place.
//!
//! Nothing here waits, reads a clock or knows a socket: a caller that moves the bytes gets the same conversation on
//! a virtual clock, blocking, or in any event loop.

mod block;
mod bulk;
mod codec;
mod connection;
mod control;
mod copying;
mod cursors;
mod distance;
mod event;
mod fetch;
mod gather;
mod handover;
mod lines;
mod lobs;
mod numbers;
mod opening;
mod outcomes;
mod pace;
mod pipeline;
mod queue;
mod reading;
mod receive;
mod request;
mod schema;
mod statements;
mod stream;
mod trips;

pub use block::{Done, OnError, Outcome};
pub(crate) use bulk::SetList;
pub use bulk::{Bulk, BulkDone, BulkError, Many, ManyStep, Sets, put_copy_text};
pub use codec::Codec;
pub use connection::{CancelKey, Connection, Settings};
pub use cursors::Cursor;
pub use event::{Event, Notification, RowSpan};
pub use fetch::{Fetch, Window};
pub use gather::Gather;
pub use lines::OutputSource;
pub use lobs::{Lob, LobBuffer, LobPart, LobParts, LobSource};
pub use onetrip_login::Login;
pub use onetrip_wire::Prefetch;
pub use opening::{Opening, Security, Step};
pub use outcomes::Outcomes;
pub use request::{Limits, Request};

pub use crate::operation::OperationId;

pub(crate) use copying::{Copied, CopyingIn, CopyingOut};
pub(crate) use cursors::{Cursors, Next};
pub(crate) use lobs::{CREATE_OBJECT, FirstParts, LobReading, LobWriting};
pub(crate) use pace::SendPace;
pub(crate) use reading::{Finish, Read, Reading};
pub(crate) use request::call_of;
