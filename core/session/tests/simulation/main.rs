//! Deterministic simulation: a client, a session and a server on a virtual clock, seeded, thousands of schedules;
//! and the reply queue alone against the same model of a server.

mod backend;
mod books;
mod gateway;
mod message;
mod planted_bugs;
mod random;
mod reply_queue_model;
mod schedules;
mod script;
mod world;
