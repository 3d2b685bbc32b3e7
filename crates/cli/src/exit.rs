//! What a command ends with.

/// The number that the program exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode(u8);

impl ExitCode {
    /// Nothing to complain about.
    pub(crate) const SUCCESS: Self = Self(0);

    /// The number.
    pub(crate) fn code(self) -> u8 {
        self.0
    }
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> Self {
        Self(code)
    }
}
