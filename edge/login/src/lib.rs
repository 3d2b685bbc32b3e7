//! Logging in to PostgreSQL as a client.
//!
//! In scope: the answer to SSLRequest, the startup packet, and passwords (clear text, MD5, SCRAM-SHA-256 with and without
//! channel binding). Also what the server says of itself until it is ready for the first statement.
//! Not in scope: sockets, clocks, TLS itself, and where the server is.
//!
//! ```text
//!   [SSLRequest --> TlsAnswer]
//!   start --> Starting --AuthenticationOk--> LetIn --ReadyForQuery--> Ready
//!              '- questions about the password, answered into the caller's output
//! ```

mod authenticator;
mod dialogue;
mod end_point;
mod error;
mod tls_answer;

pub use authenticator::{ChannelBinding, Method};
pub use dialogue::{Channel, Dialogue, Heard, Login};
pub use error::LoginError;
pub use tls_answer::TlsAnswer;
