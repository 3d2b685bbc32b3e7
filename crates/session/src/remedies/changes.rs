use std::sync::atomic::{AtomicU64, Ordering};

/// Changes of one database's catalogue that pass through the gateway (rule S3).
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Goes up when something may have changed.
    epoch: AtomicU64,
    /// Sessions in whose transactions something may be changing.
    defining: AtomicU64,
}

impl Changes {
    /// What is learnt of the catalogue now holds until this is another.
    pub(crate) fn epoch(&self) -> u64 {
        match self.defining.load(Ordering::Acquire) {
            0 => self.epoch.load(Ordering::Acquire),
            // What is learnt now may be over at any moment: each epoch is over when the next one asks.
            _ => self.epoch.fetch_add(1, Ordering::AcqRel) + 1,
        }
    }

    /// A transaction begins to do what may change the catalogue: until it is over nothing that is known is relied on, as
    /// the server may already let nobody else see what it changes.
    pub(crate) fn begin(&self) {
        self.defining.fetch_add(1, Ordering::AcqRel);
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// It is over.
    pub(crate) fn end(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.defining.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_holds_while_something_may_change_and_nothing_from_before_holds_afterwards() {
        let changes = Changes::default();
        let before = changes.epoch();
        assert_eq!(changes.epoch(), before);
        changes.begin();
        let during = changes.epoch();
        assert!(during != before && changes.epoch() != during);
        changes.end();
        let after = changes.epoch();
        assert!(after != during && after != before && changes.epoch() == after);
    }
}
