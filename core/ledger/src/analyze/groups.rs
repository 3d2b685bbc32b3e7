//! OT012: reads one after another, none of which can need the result of another of its group.
//!
//! What a statement needs, it gets as parameters. A read without parameters, or with values only that were sent before
//! the group began or with its first statement, could have been sent together with the first. A value that comes up
//! within the group, such as a constant of a statement's text, leaves a doubt. The doubt is gone when the statement is run
//! again with that value and another one beside it.
//!
//! A long gap parts a group, unless the same two reads came one right after the other another time: then a busy machine made it
//! long.

use smallvec::SmallVec;

use super::claims::{Claims, Pattern, Share, TripNumber};
use super::event::{Event, Run};
use super::hash::{Set, clear};
use super::pace::Gap;
use crate::findings::Code;

/// Reads that make a group.
const READS_MIN: usize = 3;
/// Reads of one group.
const READS_MAX: usize = 32;
/// Parameters sent before that are remembered.
const KNOWN_MAX: usize = 64;
/// Values returned within one group that are remembered.
const RETURNED_MAX: usize = 512;
/// Reads that a group with doubts waits for.
const WAIT_MAX: usize = 64;
/// Pairs of reads that are remembered as near each other.
const NEAR_MAX: usize = 256;
/// Groups with long gaps that wait for the same reads to come again.
const PARTED_MAX: usize = 16;

/// The group of one connection that may be under way.
#[derive(Debug, Default)]
pub(super) struct Groups {
    reads: Vec<Read>,
    doubts: Vec<Doubt>,
    /// Groups that are over, and have long gaps or many slow ones.
    parted: Vec<(Vec<Read>, u32)>,
    /// Templates of which the second has come right after the first.
    near: Set<(u32, u32)>,
    /// The latest group that is over and has doubts left.
    doubtful: Option<Doubtful>,
    request: u64,
    scope: u32,
    /// Parameters of the first read.
    first: Vec<u64>,
    /// Those of them that it found its rows by.
    first_keys: Vec<u64>,
    /// What the reads of the group returned.
    returned: Vec<u32>,
    /// There was more than can be remembered.
    returned_more: bool,
    known: Known,
}

/// A read of a group.
#[derive(Debug, Clone, Copy)]
struct Read {
    template: u32,
    trip: TripNumber,
    /// The gap before it.
    gap: Gap,
}

/// A read of which some values were never seen before, neither sent nor returned.
#[derive(Debug)]
struct Doubt {
    /// Its place in the group.
    place: usize,
    template: u32,
    parameters: Vec<u64>,
    /// Which of them.
    unseen: Vec<usize>,
}

/// A group that is proven when nothing is left of its doubts.
#[derive(Debug)]
struct Doubtful {
    reads: Vec<Read>,
    doubts: Vec<Doubt>,
    scope: u32,
    waited: usize,
}

/// Where the values of a read come from.
#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// From the time before the group, or its first read.
    Before,
    /// These, by position, came up with it; others are what the first read found its rows by.
    Unseen(Vec<usize>),
    /// Some may be a result of the group, or it is about something else.
    Within,
}

/// Parameters that were sent lately.
#[derive(Debug, Default)]
struct Known {
    /// At most [`KNOWN_MAX`]; those of a connection that rests take no room.
    values: Vec<u64>,
    next: usize,
}

impl Groups {
    /// Takes one more run of a reading statement in its own trip, right behind the last exchange that was taken.
    pub(super) fn take(&mut self, event: &Event<'_>, run: &Run<'_>, trip: TripNumber, claims: &mut Claims) {
        let gap = event.gap();
        let pair = self.reads.last().map(|last| (last.template, run.template));
        let may_go_on = !self.reads.is_empty()
            && self.reads.len() < READS_MAX
            && self.request == event.exchange.request
            && gap < Gap::Pause
            && self.reads.iter().all(|read| read.template != run.template);
        let origin = if may_go_on { self.origin(run) } else { Origin::Within };
        let goes_on = origin != Origin::Within;
        if !goes_on {
            self.end(claims);
            self.begin(event, run);
        } else if let Origin::Unseen(unseen) = origin {
            let (place, parameters) = (self.reads.len(), run.parameters.to_vec());
            self.doubts.push(Doubt { place, template: run.template, parameters, unseen });
        }
        if let Some(pair) = pair.filter(|_| goes_on && gap == Gap::Short && self.near.len() < NEAR_MAX) {
            self.near.insert(pair);
        }
        self.resolve(run, claims);
        self.reads.push(Read { template: run.template, trip, gap });
        let room = RETURNED_MAX - self.returned.len();
        self.returned_more |= run.results.len() > room;
        self.returned.extend_from_slice(&run.results[..run.results.len().min(room)]);
    }

    fn begin(&mut self, event: &Event<'_>, run: &Run<'_>) {
        self.request = event.exchange.request;
        self.scope = event.scope;
        self.first.clear();
        self.first.extend_from_slice(run.parameters);
        self.first_keys.clear();
        let keys = run.facts.keys.iter().filter_map(|(_, position)| run.parameters.get(position));
        self.first_keys.extend(keys);
        clear(&mut self.returned, run.results.len().min(RETURNED_MAX));
        self.returned_more = false;
    }

    /// Remembers what was sent.
    pub(super) fn sent(&mut self, run: &Run<'_>) {
        for value in run.parameters.iter().take(KNOWN_MAX / 4) {
            self.known.put(*value);
        }
    }

    /// The group is over: something else was sent.
    pub(super) fn end(&mut self, claims: &mut Claims) {
        let mut reads = std::mem::take(&mut self.reads);
        let doubts = std::mem::take(&mut self.doubts);
        if doubts.is_empty() {
            self.settle(&mut reads, self.scope, claims);
        } else if reads.len() >= READS_MIN {
            self.give_up(claims);
            let reads = std::mem::take(&mut reads);
            self.doubtful = Some(Doubtful { reads, doubts, scope: self.scope, waited: 0 });
        }
        // Its room serves the next group.
        reads.clear();
        self.reads = reads;
    }

    /// Books a group without doubts, or has it wait if the gaps in it are long.
    fn settle(&mut self, reads: &mut Vec<Read>, scope: u32, claims: &mut Claims) {
        let is_long = |pair: &[Read]| !self.are_together(&pair[0], &pair[1]);
        let waits = reads.windows(2).any(is_long) || self.is_slow(reads);
        if waits && reads.len() >= READS_MIN && self.parted.len() < PARTED_MAX {
            self.parted.push((std::mem::take(reads), scope));
        } else {
            self.claim_parts(reads, scope, claims);
        }
    }

    /// Whether the second came right after the first another time.
    fn are_near(&self, first: u32, second: u32) -> bool {
        self.near.contains(&(first, second))
    }

    /// Whether the program took long before most of these, as far as it is not known to be faster.
    fn is_slow(&self, reads: &[Read]) -> bool {
        let is_slow =
            |pair: &&[Read]| pair[1].gap >= Gap::Slow && !self.are_near(pair[0].template, pair[1].template);
        reads.windows(2).filter(is_slow).count() * 2 > reads.len()
    }

    /// Whether no long gap is between two reads, as far as is known.
    fn are_together(&self, before: &Read, read: &Read) -> bool {
        read.gap < Gap::Waiting || self.are_near(before.template, read.template)
    }

    /// Books the reads between long gaps.
    fn claim_parts(&self, reads: &[Read], scope: u32, claims: &mut Claims) {
        let parts = reads.chunk_by(|before, read| self.are_together(before, read));
        for part in parts.filter(|part| !self.is_slow(part)) {
            claim(part, scope, claims);
        }
    }

    /// The connection is over.
    pub(super) fn close(&mut self, claims: &mut Claims) {
        self.end(claims);
        self.give_up(claims);
        for (reads, scope) in std::mem::take(&mut self.parted) {
            self.claim_parts(&reads, scope, claims);
        }
    }

    /// Holds the doubts about an earlier group against one more run.
    fn resolve(&mut self, run: &Run<'_>, claims: &mut Claims) {
        let Some(doubtful) = &mut self.doubtful else { return };
        doubtful.waited += 1;
        let of_run = |doubt: &&Doubt| doubt.template == run.template;
        let differs = doubtful.doubts.iter().find(of_run).is_some_and(|doubt| !doubt.recurs(run.parameters));
        if differs || doubtful.waited > WAIT_MAX {
            return self.give_up(claims);
        }
        let is_left = |doubt: &Doubt| doubt.template != run.template || doubt.parameters == run.parameters;
        doubtful.doubts.retain(is_left);
        if doubtful.doubts.is_empty() {
            let (mut reads, scope) = (std::mem::take(&mut doubtful.reads), doubtful.scope);
            self.doubtful = None;
            self.settle(&mut reads, scope, claims);
        }
    }

    /// Doubts stay: only the reads from the last doubtful one on are known to need nothing of each other.
    fn give_up(&mut self, claims: &mut Claims) {
        let Some(Doubtful { mut reads, doubts, scope, .. }) = self.doubtful.take() else { return };
        reads.drain(..doubts.last().map_or(0, |doubt| doubt.place));
        self.settle(&mut reads, scope, claims);
    }

    fn origin(&self, run: &Run<'_>) -> Origin {
        let mut unseen = Vec::new();
        let mut is_about_first = false;
        for (position, value) in run.parameters.iter().enumerate() {
            if self.first_keys.contains(value) {
                is_about_first = true;
                continue;
            }
            // A small number may be the first read's limit and yet come from a row.
            if self.returned_more || self.returned.contains(&(*value as u32)) {
                return Origin::Within;
            }
            if !self.first.contains(value) && !self.known.has(*value) {
                unseen.push(position);
            }
        }
        match unseen.is_empty() {
            true => Origin::Before,
            false if is_about_first => Origin::Unseen(unseen),
            false => Origin::Within,
        }
    }
}

impl Doubt {
    /// Whether the values that are in doubt are the same again.
    fn recurs(&self, parameters: &[u64]) -> bool {
        self.unseen.iter().all(|position| self.parameters.get(*position) == parameters.get(*position))
    }
}

/// Books the reads of a group but the first, as far as no pattern that ranks higher has them.
fn claim(reads: &[Read], scope: u32, claims: &mut Claims) {
    if reads.len() < READS_MIN {
        return;
    }
    let mut open = reads.iter().filter(|read| claims.is_open_to(read.trip, Code::Sequence));
    let (Some(first), Some(second), Some(third)) = (open.next(), open.next(), open.next()) else { return };
    let rest: SmallVec<[TripNumber; 8]> =
        [second, third].into_iter().chain(open).map(|read| read.trip).collect();
    let pattern = Pattern { code: Code::Sequence, template: first.template, other: second.template };
    claims.claim(first.trip, pattern, scope, Share::Kept);
    for trip in rest {
        claims.claim(trip, pattern, scope, Share::Avoidable);
    }
    claims.occurred(pattern, 1, 0);
}

impl Known {
    fn has(&self, value: u64) -> bool {
        // Zero is NULL, which needs no source.
        let is_null = value == 0 && self.values.len() < KNOWN_MAX;
        is_null || self.values.contains(&value)
    }

    fn put(&mut self, value: u64) {
        if !self.has(value) {
            match self.values.get_mut(self.next) {
                Some(oldest) => *oldest = value,
                None => self.values.push(value),
            }
            self.next = (self.next + 1) % KNOWN_MAX;
        }
    }
}
