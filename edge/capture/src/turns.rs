//! Trips of a protocol that is not decoded, counted by whose turn it is.

use onetrip_ledger::{Exchange, Moment, Outcome, StreamEncoder, UnitKind};

/// Counts the turns of one connection: what the client sends until it has seen an answer and sends again is one unit.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    exchange: Exchange,
    is_sent: bool,
    is_answered: bool,
}

impl Turns {
    /// The client sent bytes, and whether it had received all that the server said.
    pub(crate) fn client(
        &mut self,
        now: Moment,
        bytes: u64,
        kind: UnitKind,
        scope: u32,
        has_read: bool,
        stream: &mut StreamEncoder,
    ) {
        if self.is_answered && has_read {
            self.settle(stream);
        }
        if !self.is_sent {
            self.is_sent = true;
            self.exchange.kind = kind;
            self.exchange.sent_at = now;
            self.exchange.starts_trip = true;
            self.exchange.scope = scope;
        }
        self.exchange.bytes_sent += bytes;
    }

    /// The server sent bytes. What it sends before it is asked answers nothing.
    pub(crate) fn server(&mut self, now: Moment, bytes: u64) {
        if !self.is_sent {
            return;
        }
        if !self.is_answered {
            self.is_answered = true;
            self.exchange.first_reply_at = now;
        }
        self.exchange.last_reply_at = now;
        self.exchange.bytes_received += bytes;
    }

    /// Books the unit that is answered, if there is one.
    pub(crate) fn settle(&mut self, stream: &mut StreamEncoder) {
        if self.is_sent && self.is_answered {
            self.exchange.outcome = Outcome::Done;
            stream.exchange(&self.exchange);
        }
        *self = Self::default();
    }

    /// Units that were sent and not answered.
    pub(crate) fn unanswered(&self) -> u64 {
        u64::from(self.is_sent && !self.is_answered)
    }
}
