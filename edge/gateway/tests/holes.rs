//! Holes that the other tests did not see: what a program saw through a gateway with all exact remedies, and did not see
//! directly. Each has its program here, and a harmless one beside it from which the gateway must still remove trips.
//!
//! `docs/safety.md` lists them with their causes and rules.

mod common;
mod holes {
    mod code;
    mod comments;
    mod cursors;
    mod definitions;
    mod errors;
    mod fetches;
    mod harmless;
    mod memory;
    mod messages;
    mod pauses;
    mod pooler;
    mod questions;
    mod raised;
    mod reloads;
    mod rights;
    mod snapshots;
    mod stage;
    mod statements;
    mod unrun;
    mod waits;
}
