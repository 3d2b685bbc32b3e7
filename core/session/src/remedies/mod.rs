//! Remedies: what takes round trips out of a program that stays as it is. They obey the rules of [`Rule`].

mod begin;
mod chatter;
mod commit;
pub(crate) mod cursors;
#[cfg(test)]
mod example;
pub(crate) mod lobs;
mod loops;
#[cfg(onetrip_peek)]
mod peek;
pub(crate) mod proposes;
mod refusal;
pub(crate) mod remedy;
pub(crate) mod statements;
pub(crate) mod watching;

pub(crate) use crate::rules::Rule;

pub(crate) use begin::EarlyBegin;
pub(crate) use chatter::Chatter;
pub(crate) use commit::Commit;
pub(crate) use cursors::Cursors;
#[cfg(test)]
pub(crate) use example::Example;
pub(crate) use lobs::Lobs;
pub(crate) use loops::Loops;
pub(crate) use refusal::statement_refused;
pub(crate) use statements::Statements;
