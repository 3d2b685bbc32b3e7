//! Two captures of one path, at the client and at the server: where each millisecond went.
//!
//! ```text
//!   packets at the client -> Side (when each byte left, and arrived) --\
//!                                                                       merge -> clock -> split
//!   packets at the server -> Side (when each byte arrived, and left) --/
//! ```
//!
//! The same bytes have the same sequence numbers in both captures. A byte arrives after it has left: each request says how far
//! the server's clock can be ahead at most, each reply how far at least. Connections are matched by the numbers that their SYNs
//! begin with, which a router that translates addresses leaves as they are; where no SYN was captured, by their addresses.

mod clock;
mod merge;
mod side;

pub use side::Side;
