//! The rig: programs of several sessions on a fixed schedule, run direct, direct again and through a gateway with
//! remedies. Every byte that a session sees is compared, and the state that is left.
//!
//! | file | what |
//! |---|---|
//! | `schema.rs` | the tables that programs use, and what is known of their rows |
//! | `families/` | generators of programs, a file for what one remedy may break |
//! | `perturb.rs` | what no program expects between two of its steps |
//! | `smith.rs` | random queries over the server's own catalogue |
//! | `regress.rs` | programs of PostgreSQL's regression files |
//! | `recorded.rs` | what drivers' own tests and applications have sent |
//! | `family.rs` | the table of families: weights, links, and how much must have been removed |
//! | `run.rs`, `lane.rs` | the schedule; a step that waits for another session is seen to wait, and the rest goes on |
//! | `state.rs` | tables, sequences, locks, statements, cursors and settings afterwards |
//! | `compare.rs` | where two runs differ |
//! | `prove.rs` | running many |
//! | `minima.rs` | which shapes of queries were served, and which must have been |
//!
//! Chance, steps, scripts and the cutting down of a program are those of the crate `onetrip-testkit`.
//!
//! `ONETRIP_PROGRAMS=5000` runs more, `ONETRIP_FROM=5000` others, `ONETRIP_SEED=N` the one program that a failure names, `ONETRIP_FAMILY=loops` only
//! programs of one family, `ONETRIP_REMEDIES=exact,-begin` other remedies (without minima for what they remove). Each second answer from
//! memory is run for real as well: `ONETRIP_VERIFY=none` does without. `ONETRIP_FAILURES=20` goes on until so many programs have
//! differed. Without `ONETRIP_FROM` the commit's hash chooses the first program.
#![allow(dead_code)]

pub(crate) mod compare;
pub(crate) mod families;
pub(crate) mod family;
pub(crate) mod lane;
pub(crate) mod minima;
pub(crate) mod perturb;
pub(crate) mod prove;
pub(crate) mod recorded;
pub(crate) mod regress;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod smith;
pub(crate) mod state;

pub(crate) use onetrip_testkit::{asked, random, script, shrink, step};
