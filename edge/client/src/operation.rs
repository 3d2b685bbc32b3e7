use std::fmt;

/// An operation of a connection. Later ones have greater ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub(crate) u64);

impl OperationId {
    /// The number: operations of one connection are counted from one.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The id with this number; it may be no operation's.
    pub(crate) fn of_number(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}
