//! Generators of programs, a file for what one remedy may break.

pub(crate) mod begins;
pub(crate) mod commits;
mod common;
pub(crate) mod conflicts;
pub(crate) mod faults;
pub(crate) mod loops;
pub(crate) mod pieces;
pub(crate) mod statements;
