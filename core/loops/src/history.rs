//! What became of an edge's guesses, and how far its loops went.

use smallvec::SmallVec;

/// Statements guessed ahead of the first hit, at most.
pub(crate) const START_MAX: u32 = 32;

/// Loops that are remembered.
const LOOPS_MAX: usize = 16;

/// Guesses until an edge's waste is judged.
const JUDGED_MIN: u32 = 64;

/// Hits and misses are halved beyond this, so that an edge can still change.
const TALLY_MAX: u32 = 4096;

/// Times that an edge was turned off which still make the next one longer.
const OFF_TIMES_MAX: u32 = 16;

/// An edge's past.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    hits: u32,
    misses: u32,
    /// Share of guesses wasted in the loops lately.
    waste: f32,
    judged: u32,
    /// Statements of the program before the edge is tried again.
    off_for: u32,
    off_times: u32,
    /// Statements of the loops before, the newest last; and whether rows were left.
    loops: SmallVec<[(u32, bool); LOOPS_MAX]>,
}

impl History {
    /// A guess was asked for, or was wrong: the program passed it by, or the server refused it. One that was merely left
    /// over at a loop's end is neither.
    pub(crate) fn settle(&mut self, is_hit: bool) {
        if is_hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
        if self.hits + self.misses > TALLY_MAX {
            self.hits /= 2;
            self.misses /= 2;
        }
    }

    /// A loop is over in which so many guesses were hits and so many wasted, those left over included.
    pub(crate) fn judge(&mut self, hits: u32, wasted: u32) {
        let guesses = hits.saturating_add(wasted);
        if guesses == 0 {
            return;
        }
        let share = wasted as f32 / guesses as f32;
        self.waste += (share - self.waste) * (guesses as f32 / JUDGED_MIN as f32).min(0.5);
        self.judged = self.judged.saturating_add(guesses);
        if self.judged < JUDGED_MIN {
            return;
        }
        if self.waste > 0.8 {
            self.off_for = JUDGED_MIN << self.off_times;
            self.off_times = (self.off_times + 1).min(OFF_TIMES_MAX);
            self.waste = 0.5;
            self.judged = 0;
        } else if self.waste < 0.2 {
            self.off_times = 0;
        }
    }

    /// The program sent the edge's statement.
    pub(crate) fn arrived(&mut self) {
        self.off_for = self.off_for.saturating_sub(1);
    }

    /// A loop is over.
    pub(crate) fn looped(&mut self, statements: u32, rows_were_left: bool) {
        if self.loops.len() == LOOPS_MAX {
            self.loops.remove(0);
        }
        self.loops.push((statements, rows_were_left));
    }

    /// Wasted too much lately: not tried for some time.
    pub(crate) fn is_off(&self) -> bool {
        self.off_for > 0
    }

    /// Guesses that may leave behind the first statement of a loop; `None` while the pair is not well known: the
    /// lower bound of a Beta(1 + hits, 1 + misses) is below 0.8, too much was wasted lately, or its loops mostly end
    /// with their first statement.
    pub(crate) fn start(&self) -> Option<u32> {
        if !self.is_known() || self.waste >= 0.5 {
            return None;
        }
        match self.quantile(0.5, f64::floor, |_| true) {
            None => Some(START_MAX),
            Some(statements) => Some(statements.saturating_sub(1).min(START_MAX)).filter(|start| *start > 0),
        }
    }

    /// Statements after which most loops break off; `None` if most go to the end.
    pub(crate) fn breaks_after(&self) -> Option<u32> {
        let broken = self.loops.iter().filter(|(_, rows_were_left)| *rows_were_left).count();
        if self.loops.len() < 4 || broken * 2 < self.loops.len() {
            return None;
        }
        self.quantile(0.9, f64::ceil, |rows_were_left| rows_were_left)
    }

    /// Guesses settled: which of two histories knows more.
    pub(crate) fn weight(&self) -> u32 {
        self.hits + self.misses
    }

    /// Share of guesses that were hits.
    pub(crate) fn hit_rate(&self) -> f64 {
        f64::from(1 + self.hits) / f64::from(2 + self.hits + self.misses)
    }

    /// Its words in a file.
    pub(crate) fn to_text(&self) -> String {
        let loops: Vec<String> = self
            .loops
            .iter()
            .map(|(statements, left)| format!("{statements}{}", if *left { "+" } else { "" }))
            .collect();
        let loops = if loops.is_empty() { "-".to_owned() } else { loops.join(",") };
        let waste = (self.waste * 1000.0).round() as u32;
        let Self { hits, misses, judged, off_for, off_times, .. } = self;
        format!("{hits} {misses} {waste} {judged} {off_for} {off_times} {loops}")
    }

    /// Reads these words; numbers beyond what they can grow to are taken for the most that they can.
    pub(crate) fn of_text<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut number = |max: u32| words.next()?.parse::<u32>().ok().map(|number| number.min(max));
        let mut history = Self {
            hits: number(TALLY_MAX)?,
            misses: number(TALLY_MAX)?,
            waste: number(1000)? as f32 / 1000.0,
            judged: number(u32::MAX)?,
            off_for: number(JUDGED_MIN << OFF_TIMES_MAX)?,
            off_times: number(OFF_TIMES_MAX)?,
            loops: SmallVec::new(),
        };
        let loops = words.next()?;
        for one in loops.split(',').filter(|_| loops != "-") {
            let count = one.strip_suffix('+').unwrap_or(one);
            history.loops.push((count.parse().ok()?, count != one));
        }
        (history.loops.len() <= LOOPS_MAX).then_some(history)
    }

    fn is_known(&self) -> bool {
        let (hits, misses) = (f64::from(1 + self.hits), f64::from(1 + self.misses));
        let total = hits + misses;
        let deviation = (hits * misses / (total * total * (total + 1.0))).sqrt();
        hits / total - 1.64 * deviation >= 0.8
    }

    fn quantile(&self, share: f64, round: fn(f64) -> f64, which: impl Fn(bool) -> bool) -> Option<u32> {
        let mut counts: SmallVec<[u32; LOOPS_MAX]> =
            self.loops.iter().filter(|(_, left)| which(*left)).map(|(count, _)| *count).collect();
        counts.sort_unstable();
        let last = counts.len().checked_sub(1)?;
        counts.get(round(last as f64 * share) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(hits: u32, misses: u32) -> History {
        let mut history = History::default();
        (0..misses).for_each(|_| history.settle(false));
        (0..hits).for_each(|_| history.settle(true));
        history
    }

    #[test]
    fn a_pair_is_known_after_a_dozen_hits_and_not_with_many_misses() {
        assert_eq!(after(5, 0).start(), None);
        assert_eq!(after(12, 0).start(), Some(START_MAX));
        assert_eq!(after(12, 12).start(), None);
        assert_eq!(after(200, 12).start(), Some(START_MAX));
    }

    #[test]
    fn loops_that_break_off_set_the_first_flight_and_the_cap() {
        let mut history = after(100, 0);
        [5, 6, 7, 6, 5].into_iter().for_each(|statements| history.looped(statements, true));
        assert_eq!(history.start(), Some(5));
        assert_eq!(history.breaks_after(), Some(7));
        [1, 1, 1, 1, 1, 1, 1].into_iter().for_each(|statements| history.looped(statements, true));
        assert_eq!(history.start(), None, "nothing to guess behind a first statement that is the last");
    }

    #[test]
    fn loops_that_go_to_the_end_have_no_cap() {
        let mut history = after(100, 0);
        [10, 10, 10, 10].into_iter().for_each(|statements| history.looped(statements, false));
        assert_eq!(history.breaks_after(), None);
        assert_eq!(history.start(), Some(9));
    }

    #[test]
    fn waste_turns_an_edge_off_for_longer_and_longer() {
        let mut history = after(100, 0);
        history.judge(0, 32);
        assert_eq!(history.start(), None, "one loop of nothing but waste raises the threshold");
        (0..2).for_each(|_| history.judge(0, 32));
        assert!(history.is_off());
        (0..64).for_each(|_| history.arrived());
        assert!(!history.is_off(), "after 64 statements it is tried again");
        (0..80).for_each(|_| history.judge(0, 1));
        assert!(history.is_off());
        (0..64).for_each(|_| history.arrived());
        assert!(history.is_off(), "the second time it takes longer");
    }

    #[test]
    fn a_long_loop_that_stops_abruptly_stays_known() {
        let mut history = after(1000, 0);
        history.judge(1000, 512);
        history.looped(1001, true);
        assert_eq!(history.start(), Some(START_MAX));
    }
}
