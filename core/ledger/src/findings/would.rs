use serde::Serialize;

/// Trips that remedies would have removed, at least, had they been on: counted from what was sent while they were off.
///
/// Each is a trip that meets the conditions of its remedy as far as traffic shows them. That a name in a statement is a plain
/// table, without row-level security, views of volatile functions or code of users, is taken for granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Would {
    /// By `--remedies exact`.
    pub exact: u64,
    /// More, if the program's transactions also ran at `--isolation repeatable-read`.
    pub isolated: u64,
}

impl Would {
    /// By `--remedies exact --isolation repeatable-read`.
    pub fn all(self) -> u64 {
        self.exact + self.isolated
    }

    /// Whether nothing would have been removed.
    pub fn is_nothing(&self) -> bool {
        self.all() == 0
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.exact += more.exact;
        self.isolated += more.isolated;
    }

    pub(crate) fn take_away(&mut self, less: Self) {
        self.exact = self.exact.saturating_sub(less.exact);
        self.isolated = self.isolated.saturating_sub(less.isolated);
    }
}
