//! Loops, as pure state machines: which statements a program will send next and with which values ([`Predictor`]), and
//! the answers that wait until it asks for them ([`Buffer`]).
//!
//! ```text
//!            statement, served, result_row, result_end, failed, flush
//!   session ---------------------------------------------------------> Predictor --- plan ---> Flight of guesses
//!      |
//!      |     expect, append, complete, fail, flush
//!      +---------------------------------------------------------> Buffer --- ask ---> Serve | Wait | Forward
//! ```
//!
//! A **frame** is a result whose rows a loop walks. An **edge** says which template takes its parameters from which
//! columns of which other template's rows. A **guess** is a statement that nobody has asked for yet. A guess is never
//! trusted: what the program gets is decided by byte equality alone ([`Buffer::ask`]). Time is an argument, counted
//! from any one origin.
//!
//! In a transaction with a snapshot, for each event in its order:
//!
//! 1. The program asks: [`Buffer::ask`] with the exact request. `Serve`: answer, [`Predictor::served`]. `Wait`: hold the
//!    request until that guess is answered. `Forward`: [`Predictor::statement`], [`Buffer::expect`], send it.
//! 2. The server answers a statement or guess: [`Buffer::append`], [`Predictor::result_row`] if the rows are wanted;
//!    then [`Buffer::complete`] and [`Predictor::result_end`], or [`Buffer::fail`] and [`Predictor::failed`].
//! 3. Anything that is not a proven read: [`Predictor::flush`] and [`Buffer::flush`], before it is sent. The end of the
//!    transaction: [`Predictor::transaction_ended`] and [`Buffer::flush`].
//! 4. After a batch of these, where guesses may leave: [`Predictor::plan`], and for each guess [`Buffer::expect`]; one
//!    that is not sent has failed.
//!
//! Non-scope: SQL, protocol messages, sockets, purity of statements, the shield around a flight.

mod buffer;
mod canonical;
mod costs;
mod edge;
mod edges;
mod filter;
mod flight;
mod forms;
mod frame;
mod history;
mod kept;
mod locate;
mod packed;
mod planning;
mod predictor;
mod rendering;
mod running;
mod settle;
mod stream;
mod tickets;
mod value;
mod values;

pub use buffer::{
    AGE_MAX, Answer, Asking, BYTES_MAX, Buffer, BufferCounters, ENTRIES_MAX, Forwarded, Origin,
};
pub use edges::{EDGES_MAX, Edges};
pub use flight::{Flight, Guess};
pub use kept::{BadKept, KEPT_BYTES_MAX};
pub use predictor::{Counters, Outcome, Predictor};
pub use value::{Arrival, Column, Form, Format, Template, Ticket, Value};
