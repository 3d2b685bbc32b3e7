//! What a level that the gateway has raised (`--isolation`) breaks: a loop that never ends is noticed, and told.
//!
//! What others have committed since a transaction's snapshot is out of its sight, and still collides. So the usual upsert
//! (UPDATE, else INSERT, else again) goes round forever: as statements of the program, or inside one function.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use onetrip_ledger::{Moment, TransactionStatus};

use crate::config::SessionConfig;
use crate::facts::{Facts, Isolation};
use crate::reply_queue::Due;
use crate::session::core::Core;

/// A statement that has collided so often in a row is told; and again each time that ten times as many have.
const COLLISIONS_TOLD: u64 = 10;
/// A statement that has run for so long is told.
const LONG: Duration = Duration::from_secs(10);

/// Something that may never end at the level that the gateway has set, and would at the program's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endless {
    /// The same statement has failed with 23505 or 40001 so often in a row.
    Collides(u64),
    /// One statement runs longer than any should.
    Runs,
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collides(times) => write!(
                f,
                "the same statement has failed {times} times in a row with 23505 or 40001: it may never end under --isolation \
                 repeatable-read, because the row that it collides with is out of its transaction's sight"
            ),
            Self::Runs => write!(
                f,
                "a statement has run for {} s: it may never end under --isolation repeatable-read, if it waits or tries again \
                 for what others commit; a statement_timeout ends it",
                LONG.as_secs()
            ),
        }
    }
}

/// What is noticed of a session whose level was raised.
#[derive(Debug, Default)]
pub(crate) struct Raised {
    is_raised: bool,
    /// The template that has collided last, and how often in a row.
    collided: Option<(usize, u64)>,
    /// The unit that was told to run for long.
    told: Option<u64>,
    endless: VecDeque<Endless>,
}

impl Raised {
    /// The gateway sets the session's level.
    pub(crate) fn raise(&mut self) {
        self.is_raised = true;
    }

    /// A statement has collided with what another transaction has written.
    fn collides(&mut self, template: usize) -> Option<Endless> {
        let before = self.collided.filter(|(last, _)| *last == template).map_or(0, |(_, times)| times);
        let times = before + 1;
        self.collided = Some((template, times));
        let mut told_at = COLLISIONS_TOLD;
        while told_at < times {
            told_at = told_at.saturating_mul(10);
        }
        (times == told_at).then_some(Endless::Collides(times))
    }

    /// A statement has succeeded.
    fn succeeds(&mut self, template: usize) {
        self.collided.take_if(|(last, _)| *last == template);
    }
}

impl Raised {
    /// What may never end, if that was noticed since the last call.
    pub(crate) fn take_endless(&mut self) -> Option<Endless> {
        self.endless.pop_front()
    }

    /// Tells of this, about the statement of this template or zero.
    fn tells(&mut self, core: &mut Core, config: &SessionConfig, template: usize, endless: Endless) {
        let failures = match endless {
            Endless::Collides(times) => times,
            Endless::Runs => 0,
        };
        core.stream().may_not_end(template as u32, failures);
        config.common.tally.may_never_end();
        self.endless.push_back(endless);
    }

    /// Whether the transaction has the level that the gateway has set, as far as is known.
    fn has_raised_level(&self, facts: &Facts) -> bool {
        self.is_raised && facts.transaction.isolation() != Isolation::ReadCommitted
    }

    /// What this message is about has failed.
    pub(crate) fn statement_failed(
        &mut self,
        (core, facts): (&mut Core, &Facts),
        config: &SessionConfig,
        due: Due,
        sqlstate: &[u8],
    ) {
        if !self.has_raised_level(facts) || !matches!(sqlstate, b"23505" | b"40001") {
            return;
        }
        let Some(template) = core.template_of(due) else { return };
        if let Some(endless) = self.collides(template) {
            self.tells(core, config, template, endless);
        }
    }

    /// What this message is about has succeeded.
    pub(crate) fn statement_succeeded(&mut self, core: &mut Core, due: Due) {
        if self.collided.is_none() {
            return;
        }
        if let Some(template) = core.template_of(due) {
            self.succeeds(template);
        }
    }

    /// When the oldest statement under way has run for long.
    pub(crate) fn runs_long_at(&self, core: &Core, facts: &Facts) -> Option<Moment> {
        let unit = core.units().oldest();
        let is_waited_for = core.queue().owes_client() && !core.queue().is_copying_in();
        let is_told = self.told == Some(unit) || core.status() == TransactionStatus::Failed;
        if !self.has_raised_level(facts) || !is_waited_for || is_told {
            return None;
        }
        let sent_at = core.units().sent_at(unit)?;
        Some(Moment(sent_at.0.saturating_add(LONG.as_nanos() as u64)))
    }

    /// Tells of a statement that has run for long.
    pub(crate) fn look_at_long(
        &mut self,
        (core, facts): (&mut Core, &Facts),
        config: &SessionConfig,
        now: Moment,
    ) {
        if self.runs_long_at(core, facts).is_some_and(|at| at <= now) {
            self.told = Some(core.units().oldest());
            let asked = core.queue().front();
            let template = asked.and_then(|due| core.template_of(due)).unwrap_or_default();
            self.tells(core, config, template, Endless::Runs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_collides_again_and_again_is_told_at_powers_of_ten() {
        let mut raised = Raised::default();
        let told =
            |raised: &mut Raised, times| (0..times).filter_map(|_| raised.collides(7)).collect::<Vec<_>>();
        assert_eq!(told(&mut raised, 99), [Endless::Collides(10)]);
        assert_eq!(told(&mut raised, 1), [Endless::Collides(100)]);
        raised.succeeds(8);
        assert_eq!(raised.collided, Some((7, 100)));
        raised.succeeds(7);
        assert_eq!(told(&mut raised, 9), []);
        raised.collides(8);
        assert_eq!(told(&mut raised, 9), [], "another statement has collided between");
    }
}
