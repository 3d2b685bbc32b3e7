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
//! # The contract with the driver
//!
//! **Opening.** Bytes of the client go in by [`Session::handle_opening`]. `Answer` drops a request for encryption: send what
//! the outbox for the client holds, and see [`Session::tls_begins`]. `Cancel` ends the session. `Connect` drops the startup
//! packet and has one for the server in the outbox.
//!
//! **Entering and Serving.** Bytes go in by [`Session::handle_client`] and [`Session::handle_server`], those at the front of
//! what came and was not decided. Time is an argument.
//!
//! ```text
//!           +---------------------- more bytes, of that side ---------------------+
//!           v                                                                     |
//!   set_behind; handle_* ---> Forward(n)  send n bytes on as they are -----+      |
//!           ^          |----> Replace(n)  drop n bytes -------------------+|      |
//!           |          |                                                  vv      |
//!           |          |                     append each outbox to what leaves for its side, again
//!           |          |----> Wait        more bytes must come first -------------+
//!           |          |----> Hold        append each outbox; the message stays, and is asked for again
//!           |          |                  once the other side has spoken, the client has taken what was
//!           +----------+                  sent to it, or the fence wakes the driver ([`Fence::wake`])
//!                      +----> Err         send what the outbox for the client holds, and end both connections
//! ```
//!
//! An outbox goes behind the bytes that were just forwarded. `Replace` and `Hold` of one side may fill the outbox of the
//! other: both are looked at after each call. Where [`Session::is_full`], nothing more is read from the client. At
//! [`Session::deadline`], if nothing happens before, the driver calls [`Session::meet_deadline`]; when a side is gone,
//! [`Session::client_left`]; at the end, [`Session::close`].
//!
//! # Inside
//!
//! ```text
//!   session     books messages, asks remedies for answers, passes replies to their takers, tells all what has happened
//!     core      what was sent and is owed (units, reply_queue), what has a name, what is recorded, what is to leave
//!     facts     what is known: transaction, settings, path, names; what only reads; the catalogue's changes
//!     events    what happens: one list, for all who have to know
//!     reading   what a statement's text tells by itself
//!     config    what a session is told at its start
//!     contract  what a session says to its driver, and the limits of messages
//!     services  what several remedies need, and that knows none of them: flights, verifying, unnamed objects
//!     remedies  private state behind one trait; `session/list` has their order
//!     mysql     a MySQL conversation, which is only watched: beside the session, on what knows no message of PostgreSQL's
//! ```
//!
//! Trips are counted by the [`ReplyQueue`] and the units that it settles; finished exchanges leave as encoded records in
//! the session's stream. While it observes, a session changes nothing after the start-up but the cancel key; [`Remedies`]
//! answer some messages before the server does, under the rules of [`Rule`].
//!
//! Non-scope: sockets, TLS, other sessions, and what is found in the exchanges.

mod canonical;
mod charset;
mod config;
mod contract;
mod events;
mod facts;
mod lazy;
mod mysql;
mod names;
mod own_names;
mod parameters;
mod reading;
mod readings;
mod remedies;
mod reply_queue;
mod rows;
mod rules;
mod scopes;
mod services;
mod session;
mod slots;
mod statements;
mod tally;
mod texts;
mod units;
mod unrun;

pub use config::{
    BadLobPrefetch, BadRemedies, BadVerify, IsolationLevel, LobPolicy, LobPrefetch, Overflow, Remedies,
    SessionConfig, Spill, Spilled, UnknownIsolation, Verify,
};
pub use contract::{BackendKey, INSPECT_BYTES_MAX, Opening, SessionError, Verdict};
pub use facts::{Common, Fence, Knowledge};
pub use mysql::{Hello, MysqlConfig, MysqlSession, PasswordKey, Refused, TlsOffer, Unseen};
pub use onetrip_loops::{BadKept, Edges, KEPT_BYTES_MAX};
pub use reply_queue::{Due, Expect, Reply, ReplyQueue, Service, Taker};
pub use rules::Rule;
pub use services::Endless;
pub use session::{Observed, Session};
pub use slots::{Lesson, Slot};
pub use tally::{Counts, Tally};
pub use texts::Texts;
