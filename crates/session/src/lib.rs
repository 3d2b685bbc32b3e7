//! One client's conversation with its database, as a state machine without I/O.
//!
//! ```text
//!            startup packet             ReadyForQuery
//!  Opening ------------------> Entering --------------> Serving
//!     |  (encryption asked: N)    |   (authentication      |
//!     |                           |    relayed)            |
//!     +---------------------------+------------------------+---> ended by the driver
//! ```
//!
//! Bytes go in by [`Session::handle_client`] and [`Session::handle_server`], which say what to do with the message at
//! the front: forward it as it came, replace it, or wait for more of it. Time is an argument. Trips are counted by
//! the [`ReplyQueue`] and the units that it settles; finished exchanges leave as encoded records in the session's
//! stream. While it observes, a session changes nothing after the start-up but the cancel key; [`Remedies`] answer
//! some messages before the server does, under the rules of [`Rule`].
//!
//! Non-scope: sockets, TLS, other sessions, and what is found in the exchanges.

mod canonical;
mod events;
mod facts;
mod names;
mod own_names;
mod parameters;
mod remedies;
mod reply_queue;
mod scopes;
mod session;
mod slots;
mod statements;
mod tally;
mod texts;
mod units;

pub use facts::Knowledge;
pub use onetrip_loops::{BadKept, Edges, KEPT_BYTES_MAX};
pub use remedies::{
    BadLobPrefetch, BadRemedies, BadVerify, Common, Endless, Fence, IsolationLevel, LobPolicy, LobPrefetch,
    Overflow, Remedies, Rule, Spill, Spilled, UnknownIsolation, Verify,
};
pub use reply_queue::{Due, Expect, Reply, ReplyQueue, Service, Taker};
pub use session::{
    BackendKey, INSPECT_BYTES_MAX, Observed, Opening, Session, SessionConfig, SessionError, Verdict,
};
pub use slots::{Lesson, Slot};
pub use tally::{Counts, Tally};
pub use texts::Texts;
