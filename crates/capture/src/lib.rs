//! x
pub mod file;
mod fragments;
pub mod link;
pub mod segment;
