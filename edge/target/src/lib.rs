//! Where the database is, and how a program is pointed at it.
//!
//! Scope: PostgreSQL connection settings by libpq's rules (reading, resolving, rewriting), password files, TLS to the
//! server, addresses, and launching a program whose settings lead to the gateway. Of MySQL, where the server is: settings, option files.
//! Not in scope: sockets and the protocol; the gateway has them.

pub mod address;
mod conninfo;
mod environment;
mod error;
mod host;
pub mod intercept;
mod kept;
mod keywords;
pub mod launch;
mod login_path;
mod mysql;
mod mysql_clients;
mod mysql_tls;
mod option_files;
pub mod passfile;
mod protocol;
mod require_auth;
mod rewrite;
mod service;
mod settings;
mod sslmode;
pub mod tls;
mod written;

pub use conninfo::{Conninfo, RootCertificates, Secret};
pub use environment::Environment;
pub use error::ConninfoError;
pub use host::{Host, HostName};
pub use kept::Keepalives;
pub use protocol::Protocol;
pub use require_auth::RequireAuth;
pub use rewrite::{ClientTls, REDACTED, redact, rewrite};
pub use settings::{Settings, is_secret};
pub use sslmode::SslMode;
