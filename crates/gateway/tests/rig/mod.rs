//! The rig: programs of several sessions on a fixed schedule, run direct, direct again and through a gateway with
//! remedies. Every byte that a session sees is compared, and the state that is left.
//!
//! | file | what |
//! |---|---|
//! | `schema.rs` | the tables that programs use, and what is known of their rows |
//! | `families/` | generators of programs, a file for what one remedy may break |
//! | `family.rs` | the table of families: weights, links, and how much must have been removed |
//! | `run.rs`, `lane.rs` | the schedule; a step that waits for another session is seen to wait, and the rest goes on |
//! | `state.rs` | tables, sequences, locks, statements, cursors and settings afterwards |
//! | `compare.rs` | where two runs differ |
//! | `prove.rs` | running many |
//!
//! Chance, steps, scripts and the cutting down of a program are those of the crate `onetrip-model`.
//!
//! `ONETRIP_PROGRAMS=5000` runs more, `ONETRIP_FROM=5000` others, `ONETRIP_SEED=N` the one program that a failure names, `ONETRIP_FAMILY=loops` only
//! programs of one family, `ONETRIP_REMEDIES=exact,-begin` other remedies (without minima for what they remove), `ONETRIP_VERIFY=1/2` has
//! answers from memory run for real as well.
#![allow(dead_code)]

pub(crate) mod compare;
pub(crate) mod families;
pub(crate) mod family;
pub(crate) mod lane;
pub(crate) mod perturb;
pub(crate) mod prove;
pub(crate) mod regress;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod smith;
pub(crate) mod state;

pub(crate) use onetrip_model::{asked, random, script, shrink, step};
