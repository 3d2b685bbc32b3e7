//! Generators: what one session of a program does.

pub(crate) mod begins;
pub(crate) mod commits;
pub(crate) mod common;
pub(crate) mod cursors;
pub(crate) mod lobs;
pub(crate) mod loops;
pub(crate) mod meanings;
pub(crate) mod portals;
pub(crate) mod settings;
pub(crate) mod statements;
pub(crate) mod timeouts;
