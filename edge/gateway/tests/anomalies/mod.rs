//! What transactions may see of each other: published scenarios, and histories whose reads are loops.

pub(crate) mod history;
pub(crate) mod lists;
pub(crate) mod scenarios;
