//! What a command ends with. `docs/budgets.md` lists the codes.

use onetrip_ledger::judge::Ruling;

/// The number that the program exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode(u8);

impl ExitCode {
    /// Nothing to complain about.
    pub(crate) const SUCCESS: Self = Self(0);
    /// A check failed: a budget was exceeded, or a finding of --fail-on is there.
    pub(crate) const CHECK_FAILED: Self = Self(90);
    /// A check could not be judged.
    pub(crate) const UNJUDGED: Self = Self(91);
    /// onetrip itself failed: what `env`, `timeout` and `nice` exit with for the same.
    pub(crate) const FAILED: Self = Self(125);

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

impl From<Ruling> for ExitCode {
    fn from(ruling: Ruling) -> Self {
        match ruling {
            Ruling::Passed => Self::SUCCESS,
            Ruling::Unjudged => Self::UNJUDGED,
            Ruling::Failed => Self::CHECK_FAILED,
        }
    }
}
