//! Threads that are over, for those who go on afterwards.
//!
//! A thread that goes on has waited for another one if it was silent for most of that one's life, until its end. The
//! moment at which it must have been silent by then is the same for all who may have waited. So the threads that are over
//! are leaves of a tree in the order of these moments. Its nodes know the latest thread below them. Who was silent since a
//! moment asks for the latest of the threads from there on: as many nodes as the tree is high, however many threads are
//! over.

/// Begin and end of every thread's life, and what follows of them for all plays.
#[derive(Debug)]
pub(crate) struct Lives {
    /// When each thread's first trip started, and its last one ended.
    pub(crate) spans: Vec<(u64, u64)>,
    /// Threads by their ends.
    by_end: Vec<usize>,
    /// For each thread its position among these.
    places: Vec<usize>,
    /// Who was silent before this moment has waited for the thread; ascending.
    silent_before: Vec<u64>,
    /// For each thread its position among these.
    leaves: Vec<usize>,
}

/// The threads that are over at one moment of a play.
#[derive(Debug)]
pub(crate) struct Ended<'l> {
    lives: &'l Lives,
    /// How many of [`Lives::by_end`].
    count: usize,
    /// A tree without pointers: node `n` is above `2 n` and `2 n + 1`, and leaves are its second half. The latest has the
    /// largest shift, and of several has ended last.
    latest: Vec<Option<Late>>,
    #[cfg(test)]
    pub(crate) looked_at: std::cell::Cell<u64>,
}

/// Shift of a thread, and its place among the threads by their ends.
type Late = (i64, usize);

impl Lives {
    pub(crate) fn new(spans: Vec<(u64, u64)>) -> Self {
        let mut by_end: Vec<usize> = (0..spans.len()).collect();
        by_end.sort_by_key(|thread| spans[*thread].1);
        let bound = |thread: &usize| silent_before(spans[*thread]);
        let mut by_bound = by_end.clone();
        by_bound.sort_by_key(bound);
        let silent_before = by_bound.iter().map(bound).collect();
        let (places, leaves) = (positions(&by_end), positions(&by_bound));
        Self { spans, by_end, places, silent_before, leaves }
    }

    /// How many threads there are.
    pub(crate) fn count(&self) -> usize {
        self.spans.len()
    }

    /// Whether the first thread goes on after `moment`.
    pub(crate) fn first_goes_on(&self, moment: u64) -> bool {
        self.spans.first().is_some_and(|(_, end)| *end > moment)
    }
}

/// The moment before which a thread must have become silent, to have been so for most of a life until its end.
fn silent_before((began, ended): (u64, u64)) -> u64 {
    // Half of it, rounded down, may be the silence's; of a life of no length the end must come after the silence began.
    ended - (ended.saturating_sub(began) / 2).saturating_sub(1)
}

/// For each value, its position in `order`.
fn positions(order: &[usize]) -> Vec<usize> {
    let mut positions = vec![0; order.len()];
    order.iter().enumerate().for_each(|(position, value)| positions[*value] = position);
    positions
}

impl<'l> Ended<'l> {
    /// None yet.
    pub(crate) fn new(lives: &'l Lives) -> Self {
        Self {
            lives,
            count: 0,
            latest: vec![None; 2 * lives.count()],
            #[cfg(test)]
            looked_at: std::cell::Cell::default(),
        }
    }

    /// Adds the threads whose lives have ended by `now`; `shift` says how late each is.
    pub(crate) fn pass(&mut self, now: u64, shift: impl Fn(usize) -> i64) {
        let lives = self.lives;
        while let Some(thread) = lives.by_end.get(self.count).filter(|thread| lives.spans[**thread].1 <= now)
        {
            self.count += 1;
            self.put(*thread, shift(*thread));
        }
    }

    /// A thread has another shift. One that is over may still make a trip: at the moment of its end, in no time.
    pub(crate) fn moved(&mut self, thread: usize, shift: i64) {
        if self.has(thread) {
            self.put(thread, shift);
        }
    }

    /// Whether a thread is over.
    pub(crate) fn has(&self, thread: usize) -> bool {
        self.lives.places[thread] < self.count
    }

    /// The thread that ended last.
    pub(crate) fn last(&self) -> Option<usize> {
        self.lives.by_end.get(self.count.checked_sub(1)?).copied()
    }

    /// The latest of the threads that one has waited for which was silent since `since`.
    pub(crate) fn latest_awaited(&self, since: u64) -> Option<usize> {
        // Mostly none has ended since.
        self.last().filter(|last| self.lives.spans[*last].1 > since)?;
        let leaves = self.lives.count();
        let mut from = leaves + self.lives.silent_before.partition_point(|bound| *bound <= since);
        let mut to = 2 * leaves;
        let mut latest = None;
        while from < to {
            // Right children are not covered by their parents alone, nor is the last node of an odd number.
            if from % 2 == 1 {
                latest = latest.max(self.look_at(from));
                from += 1;
            }
            if to % 2 == 1 {
                to -= 1;
                latest = latest.max(self.look_at(to));
            }
            (from, to) = (from / 2, to / 2);
        }
        latest.map(|(_, place)| self.lives.by_end[place])
    }

    fn put(&mut self, thread: usize, shift: i64) {
        let mut node = self.lives.count() + self.lives.leaves[thread];
        self.latest[node] = Some((shift, self.lives.places[thread]));
        while node > 1 {
            node /= 2;
            self.latest[node] = self.look_at(2 * node).max(self.look_at(2 * node + 1));
        }
    }

    fn look_at(&self, node: usize) -> Option<Late> {
        #[cfg(test)]
        self.looked_at.set(self.looked_at.get() + 1);
        self.latest[node]
    }
}
