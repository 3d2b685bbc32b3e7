//! What a command ends with. `docs/budgets.md` lists the codes.

use onetrip_ledger::judge::Ruling;

/// The number that the program exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExitCode(u8);

impl ExitCode {
    /// Nothing to complain about.
    pub(crate) const SUCCESS: Self = Self(0);
    /// A budget was broken, or a finding of --fail-on is there.
    pub(crate) const BROKEN: Self = Self(90);
    /// Nobody can tell whether the budgets were kept.
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
            Ruling::Kept => Self::SUCCESS,
            Ruling::Unjudged => Self::UNJUDGED,
            Ruling::Broken => Self::BROKEN,
        }
    }
}
