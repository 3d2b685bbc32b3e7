//! Which statements come next.

use std::time::Duration;

use crate::flight::Flight;
use crate::value::{Arrival, Column, Ticket};

/// What an execution took, as the session measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// The server's time for the statement alone, if it can be told.
    pub execution: Option<Duration>,
    /// Bytes of the reply.
    pub bytes: usize,
}

/// What happened, in statements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Guesses made.
    pub guesses: u64,
    /// Guesses that the program asked for.
    pub hits: u64,
    /// Guesses that it passed by, and those flushed or failed.
    pub wasted: u64,
    /// Flights of guesses.
    pub flights: u64,
}

/// Watches one session's statements and results, and guesses what comes next. One call per event, in the order in
/// which the session sees them; then [`Predictor::plan`], once per batch of events.
#[derive(Debug, Default)]
pub struct Predictor {
    next_ticket: u64,
    counters: Counters,
}

impl Predictor {
    /// A *pure* statement goes to the server. It proves that its template is executed by the program in this
    /// transaction (rule P11); the guesses of the next [`Predictor::plan`] may leave right behind it.
    pub fn statement(&mut self, _now: Duration, _arrival: &Arrival<'_>) -> Ticket {
        self.ticket()
    }

    /// A statement goes to the server of which only the rows are of interest: it is no read that is known to be pure.
    /// Call [`Predictor::flush`] before, unless it is known to change nothing.
    pub fn source(&mut self, _arrival: &Arrival<'_>) -> Ticket {
        self.ticket()
    }

    /// The program asked for what the guess, or an earlier statement, already fetched, and got it from memory.
    /// More than once for a repeat.
    pub fn served(&mut self, _now: Duration, _ticket: Ticket) {}

    /// Whether the rows of this result are of use. If not, [`Predictor::result_row`] need not be called.
    pub fn wants_rows(&self, _ticket: Ticket) -> bool {
        false
    }

    /// A row of the result of a statement or a guess. Rows may go on after a [`Predictor::result_end`] (a portal read
    /// in pieces).
    pub fn result_row(&mut self, _ticket: Ticket, _columns: &[Column], _row: &[Option<&[u8]>]) {}

    /// The result is complete.
    pub fn result_end(&mut self, _now: Duration, _ticket: Ticket, _cost: Cost) {}

    /// The server could not answer the statement or guess, or the session did not send it, or the answer must not be
    /// kept.
    pub fn failed(&mut self, _ticket: Ticket) {}

    /// Anything not pure happens: guesses that were not served are worthless now.
    pub fn flush(&mut self) {}

    /// The transaction is over: nothing is known any more but the edges.
    pub fn transaction_ended(&mut self) {}

    /// Fills `flight` with the guesses to send now, in program order; often none.
    pub fn plan(&mut self, _now: Duration, flight: &mut Flight) {
        flight.clear();
    }

    /// The distance to the server, as the session measures it. Nothing is guessed while it is zero.
    pub fn set_round_trip(&mut self, _round_trip: Duration) {}

    /// What happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }
}
