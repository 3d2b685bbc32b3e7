//! Sockets, TLS and a recorder around one [`onetrip_session::Session`] per client, or around a
//! [`onetrip_session::MysqlSession`], which only watches.
//!
//! ```text
//!  client --> [leg: plain or TLS]  session  [leg: plain or TLS] --> database        opened by the door, served by the engine
//!                              |
//!                     blocks of records --> recorder thread --> trace file and analyzer
//! ```
//!
//! Moves bytes and decides nothing: what a message becomes is the session's business.
//!
//! Non-scope: where the database is and how to speak TLS with it (`target`), and what the records mean (`ledger`).

mod address;
mod buffer;
mod cancel;
mod channel;
mod config;
mod conversation;
mod dial;
mod door;
mod engine;
mod error;
mod gateway;
mod leg;
mod line;
mod links;
mod notice;
mod opening;
mod overflow;
mod password_key;
mod ping;
mod queue;
mod recorder;
mod securing;
mod shared;
mod socket;
mod spin;

pub use address::{ListenAddress, ListenAddressError};
pub use config::GatewayConfig;
pub use error::{GatewayError, with_causes};
pub use gateway::{Gateway, Leader, Outcome};
pub use links::LinkOutcome;
pub use notice::{tell, wait_until_told};
pub use onetrip_session::{
    BadKept, Common, Counts, Edges, IsolationLevel, KEPT_BYTES_MAX, LobPolicy, LobPrefetch, Remedies, Tally,
    Verify,
};
pub use ping::{Opening, OpeningStep, PathTimes, Ping, PingError, PingedServer, ServerMessage, Spread, Step};
