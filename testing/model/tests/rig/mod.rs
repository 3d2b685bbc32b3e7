//! Programs on the model: what writes them, what runs them, and where two runs differ.
#![allow(dead_code)]

pub(crate) mod compare;
pub(crate) mod families;
pub(crate) mod family;
pub(crate) mod lane;
pub(crate) mod postgres;
pub(crate) mod simulation;
