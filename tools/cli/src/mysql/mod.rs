//! What `ping` and `ready` say to a MySQL or MariaDB server: bytes in, bytes out. The decoders are those of counting.
//!
//! ```text
//!   Login::new --greeting--> Greeted --[ask_for_tls]--> start --question--> Say --> ... --> LetIn
//! ```
//!
//! Non-scope: sockets, clocks, and TLS itself.

mod answers;
mod login;

pub(crate) use login::{Applicant, Login, LoginError, Turn};
