//! PostgreSQL wire over an embedded SQLite file.
mod catalog;
mod error;
mod sql;
mod types;
mod value;
pub use error::EmbedError;
