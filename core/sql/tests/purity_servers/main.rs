//! Purity against real servers: what a catalogue says, and whether a verdict holds when the statement runs.

mod catalogues;
mod lists;
mod server;
mod statements;
