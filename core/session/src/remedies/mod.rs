//! Remedies: what takes round trips out of a program that stays as it is. They obey the rules of [`Rule`].

mod asking;
mod begin;
mod chatter;
mod commit;
pub(crate) mod cursors;
mod effects;
#[cfg(test)]
mod example;
mod inquiry;
mod list;
pub(crate) mod lobs;
mod loops;
mod obstacles;
#[cfg(onetrip_peek)]
mod peek;
mod proposes;
mod raised;
mod refusal;
pub(crate) mod remedy;
mod session;
mod statements;
mod watching;

pub(crate) use crate::rules::Rule;

pub(crate) use begin::EarlyBegin;
pub(crate) use chatter::Chatter;
pub(crate) use commit::Commit;
pub(crate) use cursors::Cursors;
#[cfg(test)]
pub(crate) use example::Example;
pub(crate) use inquiry::Inquiries;
pub(crate) use lobs::Lobs;
pub(crate) use loops::Loops;
pub use raised::Endless;
pub(crate) use raised::Raised;
pub(crate) use refusal::statement_refused;
pub use session::Session;
pub(crate) use statements::Statements;
