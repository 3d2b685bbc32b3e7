//! One template's part in a loop: what was guessed, what came of it, and how much more may be.

use std::collections::HashSet;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::frame::FrameId;
use crate::history::START_MAX;
use crate::value::Template;
use crate::values::Values;

/// Guesses of one template that may wait for the program.
pub(crate) const WINDOW_MAX: u32 = 2048;

/// Guesses that leave together where there are so many.
pub(crate) const FLIGHT_MIN: u32 = 16;

/// Statements in a row that were foreseen, after which a loop that has wasted all it may gets another chance.
const STREAK_MIN: u32 = 8;

/// Values that are remembered as fetched.
const FETCHED_MAX: usize = 1 << 14;

/// An answer should be asked for within this: half of what the buffer keeps it for.
const AHEAD_MAX: f64 = 1e9;

/// Statements of one template that walk the rows of one loop, all instances of its frame together.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Position in the edges.
    pub(crate) edge: u32,
    pub(crate) template: Template,
    /// Levels below the loop's root.
    pub(crate) depth: u8,
    /// Values of the program's last statement.
    pub(crate) last: Values,
    pub(crate) has_last: bool,
    /// Where the last statement's values came from.
    pub(crate) last_place: Option<(FrameId, u32)>,
    /// Statements in a row at increasing rows, with other values each.
    pub(crate) evidence: u32,
    /// Statements of the program.
    pub(crate) statements: u32,
    /// Those of them that came where they were expected, guessed or not.
    foreseen: u32,
    /// Guesses that may be unserved before the first hit; grows to `START_MAX` at most.
    pub(crate) start: u32,
    pub(crate) hits: u32,
    pub(crate) wasted: u32,
    /// Guesses that were neither served nor wasted.
    pub(crate) outstanding: u32,
    /// Those of them that the server has not answered.
    pub(crate) unanswered: u32,
    /// Statements in a row that came where they were expected.
    pub(crate) streak: u32,
    /// Its statement comes in another form lately.
    pub(crate) is_left: bool,
    /// Hashes of values that were fetched since the last flush: a repeat is answered from memory.
    pub(crate) fetched: HashSet<u32, RandomState>,
    last_at: Duration,
    /// Nanoseconds between the program's statements, lately.
    interval: f64,
}

impl Stream {
    pub(crate) fn new(edge: u32, template: Template, depth: u8) -> Self {
        Self { edge, template, depth, ..Self::default() }
    }

    /// Whether its statements are guessed.
    pub(crate) fn is_live(&self) -> bool {
        self.start > 0 && !self.is_left
    }

    /// The law: outstanding and wasted together are never more than this, so that wasted guesses never are either.
    fn law(&self) -> u32 {
        self.start.max(self.hits)
    }

    pub(crate) fn keeps_law(&self) -> bool {
        self.outstanding + self.wasted <= self.law()
    }

    /// Guesses that the law allows now.
    pub(crate) fn allowed(&self) -> u32 {
        self.law().saturating_sub(self.wasted).min(WINDOW_MAX).saturating_sub(self.outstanding)
    }

    /// Guesses that are worth a flight of their own: about half of a small window, an eighth of a large one.
    pub(crate) fn flight_min(&self) -> u32 {
        let window = self.law().saturating_sub(self.wasted).min(WINDOW_MAX);
        match window < 2 * FLIGHT_MIN {
            true => (window / 2).max(1),
            false => (window / 8).max(FLIGHT_MIN),
        }
    }

    /// Answers that the program will have asked for before they are old.
    pub(crate) fn ahead_max(&self) -> u32 {
        match self.interval > 0.0 {
            true => ((AHEAD_MAX / self.interval) as u32).max(1),
            false => WINDOW_MAX,
        }
    }

    /// How probable it is that a guess is right: what the edge knows counts like eight statements.
    pub(crate) fn probability(&self, before: f64) -> f64 {
        let known = f64::from(self.statements) + f64::from(self.wasted);
        (8.0 * before + f64::from(self.foreseen)) / (8.0 + known)
    }

    /// The program sent a statement of this stream.
    pub(crate) fn consumed(&mut self, now: Duration, was_expected: bool) {
        if self.statements > 0 {
            let interval = now.saturating_sub(self.last_at).as_nanos() as f64;
            // the program's own pace is the fast one: what it waits for an answer is not its own
            let share = match self.interval {
                0.0 => 1.0,
                pace if interval < pace => 0.5,
                _ => 1.0 / 16.0,
            };
            self.interval += (interval - self.interval) * share;
        }
        self.last_at = now;
        self.is_left = false;
        self.statements = self.statements.saturating_add(1);
        self.foreseen += u32::from(was_expected);
        self.streak = if was_expected { self.streak + 1 } else { 0 };
        self.restart();
    }

    /// These values need not be fetched again. If the program did so all the same, what was fetched is gone.
    pub(crate) fn note_fetched(&mut self, fingerprint: u32) {
        if self.fetched.len() >= FETCHED_MAX || self.fetched.contains(&fingerprint) {
            self.fetched.clear();
        }
        self.fetched.insert(fingerprint);
    }

    /// A loop that has wasted all it may stays dead by the law. If what it does can be foreseen after all, it starts
    /// again with a few guesses, within the largest start.
    fn restart(&mut self) {
        if self.law() <= self.wasted {
            self.restart_beside(self.wasted);
        }
    }

    /// The same where the whole loop has wasted so many.
    pub(crate) fn restart_beside(&mut self, wasted: u32) {
        if self.streak < STREAK_MIN || self.start == 0 {
            return;
        }
        self.start = (wasted + STREAK_MIN).min(START_MAX).max(self.start);
        self.streak = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(start: u32) -> Stream {
        Stream { start, ..Stream::default() }
    }

    #[test]
    fn outstanding_and_wasted_never_exceed_start_or_hits() {
        let mut stream = stream(4);
        assert_eq!(stream.allowed(), 4);
        stream.outstanding = 3;
        assert_eq!(stream.allowed(), 1);
        stream.wasted = 1;
        assert_eq!(stream.allowed(), 0);
        stream.hits = 10;
        assert_eq!(stream.allowed(), 6);
        stream.hits = 100_000;
        assert_eq!(stream.allowed(), WINDOW_MAX - 3);
    }

    #[test]
    fn what_was_foreseen_counts_even_if_it_was_not_guessed() {
        let mut stream = stream(0);
        assert_eq!(stream.probability(0.5), 0.5);
        (0..24).for_each(|_| stream.consumed(Duration::ZERO, true));
        assert!(stream.probability(0.5) > 0.85);
        stream.wasted = 32;
        assert!(stream.probability(0.5) < 0.5);
    }

    #[test]
    fn flights_grow_with_the_window() {
        let flights: Vec<u32> = [1, 4, 31, 32, 200, 512]
            .into_iter()
            .map(|hits| Stream { hits, ..stream(1) }.flight_min())
            .collect();
        assert_eq!(flights, [1, 2, 15, 16, 25, 64]);
    }

    #[test]
    fn a_loop_that_wasted_its_start_gets_another_one_after_eight_foreseen_statements() {
        let mut stream = Stream { wasted: 1, ..stream(1) };
        (0..7).for_each(|_| stream.consumed(Duration::ZERO, true));
        assert_eq!(stream.allowed(), 0);
        stream.consumed(Duration::ZERO, true);
        assert_eq!(stream.allowed(), 8);
        stream.wasted = 32;
        (0..100).for_each(|_| stream.consumed(Duration::ZERO, true));
        assert_eq!(stream.allowed(), 0, "32 is all it may ever start with");
    }

    #[test]
    fn a_slow_program_is_not_far_ahead_of() {
        let mut stream = stream(1);
        for second in 0..20 {
            stream.consumed(Duration::from_millis(100 * second), true);
        }
        assert_eq!(stream.ahead_max(), 10);
    }
}
