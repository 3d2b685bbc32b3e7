use onetrip_wire::pg::Format;

use super::statements::Slot;

/// What the server owes for one thing that was sent. Replies come in the order of sending, so these stand in one queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Awaited {
    /// The operation that it belongs to; what the client sends for itself belongs to the one it serves.
    pub(crate) id: u64,
    pub(crate) kind: Kind,
    /// The statement, for kinds that run one.
    pub(crate) slot: Slot,
    /// The Parse that the statement's name is of.
    pub(crate) number: u32,
    /// Which replies are still to come.
    pub(crate) due: Due,
    pub(crate) format: Format,
    /// Where its last byte ends in the connection's stream: before it was sent, nothing of this can have run.
    pub(crate) end: u64,
}

/// Kinds of things that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// What the caller asked for; `shielded` if later operations go on after its failure.
    Operation { shielded: bool },
    /// A statement of our own that the operation after it depends on.
    Own,
    /// A statement of our own without which the operation before it does not hold.
    Seal,
    /// The question for what was printed; nothing depends on it.
    Lines,
    /// Close of a statement.
    Close,
    /// Sync.
    Sync,
    /// A simple Query, which is its own Sync.
    Simple,
}

/// Replies that are still to come before the statement's own, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Due(u8);

impl Due {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const PARSE: Self = Self(1);
    pub(crate) const PARAMETERS: Self = Self(2);
    pub(crate) const COLUMNS: Self = Self(4);
    pub(crate) const BIND: Self = Self(8);
    pub(crate) const EXECUTE: Self = Self(16);

    /// Both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether the reply is the next that is due; then it is due no more.
    pub(crate) fn take(&mut self, reply: Self) -> bool {
        let is_next = self.0 & reply.0 != 0 && self.0 & (reply.0 - 1) == 0;
        if is_next {
            self.0 &= !reply.0;
        }
        is_next
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_taken_in_their_order_only() {
        let mut due = Due::PARSE.and(Due::BIND).and(Due::EXECUTE);
        assert!(!due.take(Due::BIND), "Parse has not been answered");
        assert!(!due.take(Due::COLUMNS), "nobody asked");
        assert!(due.take(Due::PARSE) && due.take(Due::BIND) && due.has(Due::EXECUTE));
        assert!(due.take(Due::EXECUTE) && due.is_empty());
    }
}
