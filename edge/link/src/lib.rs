//! The simulated link: a path with a round-trip time, a bandwidth, jitter and TCP's congestion window.
//!
//! Two halves, and the first knows nothing of the second:
//!
//! - the **schedule** says when bytes that enter the path leave it. [`Lane`] is one direction of one connection,
//!   [`Bottleneck`] what the connections of one direction share, [`TcpWindow`] how much may be under way. It has no
//!   clocks and no sockets. Time is an argument ([`Moment`]), so a test or a forecast runs it as fast as it likes.
//! - The **relay** keeps that schedule for real connections, in one thread: [`Relay`] in the background of a
//!   program, [`serve`] in the foreground. [`LinkStats`] says how well the schedule was kept.
//!
//! Not modelled: loss, reordering, packet headers, a receive window that closes. See `docs/link.md`.

mod bottleneck;
mod control;
mod jitter;
mod lane;
mod moment;
mod pacer;
mod relay;
mod spec;
mod stats;
mod target;
mod units;
mod window;

pub use bottleneck::Bottleneck;
pub use lane::{Lane, Payload, Release, Transfer};
pub use moment::Moment;
pub use relay::{Relay, Shutdown, serve};
pub use spec::LinkSpec;
pub use stats::{LinkStats, Pauses, Scheduling};
pub use target::Target;
pub use units::{BitsPerSecond, ByteSize, HumanDuration, UnitError};
pub use window::{INITIAL_WINDOW, MSS, RTO_FLOOR, TcpWindow, slow_start_rounds};
