//! Whether to ask the server for the session's state again.

/// Occasions that pass at most before the server is asked again for what nobody has used.
const SKIPPED_MAX: u32 = 63;

/// How much asking for the session's state is worth.
#[derive(Debug, Default)]
pub(super) struct Appetite {
    /// A remedy could have removed a trip if it had been known.
    pub(super) is_wanted: bool,
    /// A remedy can remove one if it is asked for as soon as it is lost.
    pub(super) is_wanted_again: bool,
    /// It was asked for on a guess: that nobody uses it says nothing of this program.
    pub(super) is_guessed: bool,
    /// A remedy has removed one because it was.
    pub(super) is_used: bool,
    /// How often in a row it was lost before anybody used it.
    unused: u32,
    /// Occasions that are let pass before the server is asked again.
    skipped: u32,
}

impl Appetite {
    /// A trip was not removed because the state is not known.
    pub(super) fn miss(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.is_wanted = true;
        }
    }

    /// The same, where it would have to be known before the occasion.
    pub(super) fn miss_beforehand(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.is_wanted_again = true;
        }
    }

    pub(super) fn answered(&mut self) {
        (self.is_wanted, self.is_used) = (false, false);
    }

    pub(super) fn used(&mut self) {
        (self.is_used, self.unused, self.skipped) = (true, 0, 0);
    }

    /// What was known is known no longer.
    pub(super) fn lost(&mut self) {
        let is_guessed = std::mem::take(&mut self.is_guessed);
        if self.is_used {
            self.is_wanted = true; // it is of use to this program
        } else if !is_guessed {
            self.unused = self.unused.saturating_add(1);
            self.skipped = 1_u32
                .checked_shl(self.unused)
                .map_or(SKIPPED_MAX, |occasions| occasions - 1)
                .min(SKIPPED_MAX);
        }
    }
}
