//! Which finding a reading trip is booked on: at most one.
//!
//! Several patterns can be true of one trip, and they are seen at different times. A loop is proven with its third run,
//! a look-up before an INSERT with the INSERT, and a sequence of reads when it ends. So every reading trip gets a number,
//! and patterns claim numbers. A pattern that ranks higher takes a trip away from one that ranks lower.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use super::book::{Book, Fate, Key, Sighting};
use super::chatter::{self, Chatter, Sort};
use super::client::Client;
use super::event::Event;
use super::hash::Table;
use super::spots::Spots;
use super::would::Reach;
use crate::findings::{Code, Evidence, Spot, Would};
use crate::{Driver, Moment};

/// Trips that can still be claimed; older ones stay with whom they are.
const REMEMBERED_MAX: usize = 256;
/// Patterns followed per connection.
const TALLIES_MAX: usize = 4096;
/// The owner of a trip that nobody claimed, and of one that is part of a proven loop (which are counted elsewhere).
const NOBODY: u32 = u32::MAX;
const LOOP: u32 = u32::MAX - 1;

/// Number of a reading trip of one connection. It begins at one, so that none takes no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TripNumber(NonZeroU64);

impl TripNumber {
    fn of_place(place: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(place))
    }

    fn place(self) -> u64 {
        self.0.get() - 1
    }
}

impl Default for TripNumber {
    fn default() -> Self {
        Self::of_place(0)
    }
}

/// What a claim is counted by, within one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    pub(super) code: Code,
    pub(super) template: u32,
    /// The other statement of the pattern, or zero.
    pub(super) other: u32,
}

/// What a claimed trip is to its pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// The one trip that has to stay.
    Kept,
    /// A trip that the fix saves.
    Avoidable,
}

/// Claims of one connection.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// When the connection was opened.
    opened_at: Moment,
    /// Place of the first remembered trip among all.
    first: u64,
    trips: VecDeque<Slot>,
    tallies: Vec<Tally>,
    ids: Table<Pattern, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    waited_ns: u64,
    wire_ns: u64,
    sent_at: Moment,
    owner: u32,
    avoidable: bool,
    /// Whether it could have been answered from memory.
    memory: Reach,
}

#[derive(Debug)]
struct Tally {
    pattern: Pattern,
    scope: u32,
    spots: Spots,
    occurrences: u64,
    distinct: u64,
    slow_gaps: u64,
    trips: u64,
    avoidable: u64,
    would: Would,
    waited_ns: u64,
    wire_ns: u64,
}

/// Who takes a trip from whom: lower goes first.
fn rank(code: Code) -> u8 {
    match code {
        Code::Loop => 0,
        Code::Repeated => 1,
        Code::ExistsThenInsert => 2,
        Code::ReadBeforeWrite => 3,
        Code::SequenceTrip => 4,
        Code::OnePerValue => 5,
        Code::Sequence => 6,
        _ => 7,
    }
}

impl Claims {
    /// Numbers a reading trip.
    pub(super) fn number(&mut self, event: &Event<'_>) -> TripNumber {
        if self.trips.len() >= REMEMBERED_MAX {
            self.trips.pop_front();
            self.first += 1;
        }
        self.opened_at = event.opened_at;
        self.trips.push_back(Slot {
            waited_ns: event.exchange.duration(),
            wire_ns: event.wire_ns,
            sent_at: event.exchange.sent_at,
            owner: NOBODY,
            avoidable: false,
            memory: event.would.memory,
        });
        TripNumber::of_place(self.first + self.trips.len() as u64 - 1)
    }

    /// Books a trip on a pattern; false if it is another's that ranks as high, or too long ago.
    pub(super) fn claim(&mut self, trip: TripNumber, pattern: Pattern, scope: u32, share: Share) -> bool {
        let Some(&slot) = self.slot(trip) else { return false };
        if !self.yields(slot.owner, pattern.code) {
            return false;
        }
        let Some(id) = self.tally(pattern, scope) else { return false };
        self.release(slot);
        let avoidable = share == Share::Avoidable;
        let spot = self.spot(slot);
        let tally = &mut self.tallies[id as usize];
        tally.add(slot.waited_ns, slot.wire_ns, avoidable, spot);
        tally.would.add(slot.would(avoidable, pattern.code));
        self.set(trip, id, avoidable);
        true
    }

    /// Books a trip on a proven loop; false if it is too long ago.
    pub(super) fn claim_for_loop(&mut self, trip: TripNumber) -> bool {
        let Some(&slot) = self.slot(trip) else { return false };
        if slot.owner == LOOP {
            return false;
        }
        self.release(slot);
        self.set(trip, LOOP, false);
        true
    }

    /// Books a trip that no other pattern can be true of, and that therefore has no number.
    pub(super) fn add(&mut self, event: &Event<'_>, pattern: Pattern, share: Share) {
        if let Some(id) = self.tally(pattern, event.scope) {
            let avoidable = share == Share::Avoidable;
            self.tallies[id as usize].add(event.exchange.duration(), event.wire_ns, avoidable, event.spot());
        }
    }

    /// Whether a pattern of this code could claim the trip.
    pub(super) fn is_open_to(&self, trip: TripNumber, code: Code) -> bool {
        self.slot(trip).is_some_and(|slot| self.yields(slot.owner, code))
    }

    /// When the connection was opened.
    pub(super) fn opened_at(&self) -> Moment {
        self.opened_at
    }

    /// Whether nobody has claimed the trip.
    pub(super) fn is_free(&self, trip: TripNumber) -> bool {
        self.slot(trip).is_some_and(|slot| slot.owner == NOBODY)
    }

    /// Counts an occurrence of the pattern as a whole, with so many different sets of values.
    pub(super) fn occurred(&mut self, pattern: Pattern, occurrences: u64, distinct: u64) {
        if let Some(id) = self.ids.get(&pattern) {
            self.tallies[*id as usize].occurrences += occurrences;
            self.tallies[*id as usize].distinct += distinct;
        }
    }

    /// Counts a time that the program took longer than loops do between two statements of the pattern. Where it mostly
    /// did, these may belong to separate requests, and nothing is booked.
    pub(super) fn slow(&mut self, pattern: Pattern) {
        if let Some(id) = self.ids.get(&pattern) {
            self.tallies[*id as usize].slow_gaps += 1;
        }
    }

    /// Books what the connection did, and forgets it.
    pub(super) fn book(&mut self, driver: Driver, book: &mut Book, chatter: &mut Chatter) {
        self.ids.clear();
        self.trips.clear();
        for tally in self.tallies.drain(..).filter(Tally::is_pattern) {
            let Pattern { code, template, other } = tally.pattern;
            match Sort::of_pattern(tally.pattern) {
                Some(sort) => chatter.add(driver, sort, template, tally.sighting()),
                None => {
                    let client = Client::Known(driver);
                    book.add(Key { code, template, source: other, client }, tally.sighting());
                }
            }
        }
    }

    fn slot(&self, trip: TripNumber) -> Option<&Slot> {
        self.trips.get(usize::try_from(trip.place().checked_sub(self.first)?).ok()?)
    }

    fn spot(&self, slot: Slot) -> Spot {
        Spot { opened_at: self.opened_at, sent_at: slot.sent_at }
    }

    fn set(&mut self, trip: TripNumber, owner: u32, avoidable: bool) {
        let position =
            trip.place().checked_sub(self.first).and_then(|position| usize::try_from(position).ok());
        if let Some(slot) = position.and_then(|position| self.trips.get_mut(position)) {
            slot.owner = owner;
            slot.avoidable = avoidable;
        }
    }

    fn yields(&self, owner: u32, to: Code) -> bool {
        match owner {
            NOBODY => true,
            LOOP => false,
            id => rank(to) < rank(self.tallies[id as usize].pattern.code),
        }
    }

    fn release(&mut self, slot: Slot) {
        let spot = self.spot(slot);
        if let Some(tally) = self.tallies.get_mut(slot.owner as usize) {
            tally.trips -= 1;
            tally.avoidable -= u64::from(slot.avoidable);
            tally.would.take_away(slot.would(slot.avoidable, tally.pattern.code));
            tally.waited_ns -= slot.waited_ns;
            tally.wire_ns -= slot.wire_ns;
            tally.spots.remove(spot);
        }
    }

    fn tally(&mut self, pattern: Pattern, scope: u32) -> Option<u32> {
        if let Some(id) = self.ids.get(&pattern) {
            return Some(*id);
        }
        if self.tallies.len() >= TALLIES_MAX {
            return None;
        }
        let id = self.tallies.len() as u32;
        self.tallies.push(Tally::new(pattern, scope));
        self.ids.insert(pattern, id);
        Some(id)
    }
}

impl Slot {
    /// What the remedy `repeats` would have removed of a trip with this owner.
    fn would(&self, avoidable: bool, code: Code) -> Would {
        match avoidable && code == Code::Repeated {
            true => self.memory.trip(),
            false => Would::default(),
        }
    }
}

impl Tally {
    fn new(pattern: Pattern, scope: u32) -> Self {
        Self {
            pattern,
            scope,
            spots: Spots::default(),
            occurrences: 0,
            distinct: 0,
            slow_gaps: 0,
            trips: 0,
            avoidable: 0,
            would: Would::default(),
            waited_ns: 0,
            wire_ns: 0,
        }
    }

    fn add(&mut self, waited_ns: u64, wire_ns: u64, avoidable: bool, spot: Spot) {
        self.trips += 1;
        self.avoidable += u64::from(avoidable);
        if avoidable {
            self.spots.add(spot);
        }
        self.waited_ns += waited_ns;
        self.wire_ns += wire_ns;
    }

    fn is_pattern(&self) -> bool {
        self.trips > 0 && self.slow_gaps * 2 <= self.trips
    }

    fn sighting(&self) -> Sighting {
        let Self { scope, occurrences, distinct, trips, avoidable, waited_ns, wire_ns, .. } = *self;
        // A pattern that ranks higher may have taken some of the trips.
        let distinct = distinct.min(trips);
        let (occurrences, evidence) = match self.pattern.code {
            Code::SessionChatter => {
                let sort = Sort::of_pattern(self.pattern).unwrap_or(Sort::LookUp);
                (trips, chatter::evidence(sort, trips))
            }
            Code::Repeated => (occurrences, Evidence::Repeats { distinct, runs: trips }),
            Code::OnePerValue => (occurrences, Evidence::Values { distinct, runs: trips }),
            Code::Sequence => (occurrences, Evidence::Groups { groups: occurrences, statements: trips }),
            _ => (trips, Evidence::Pairs { pairs: trips }),
        };
        let (spots, fate) = (self.spots.clone(), Fate { would: self.would, ..Fate::default() });
        Sighting { scope, spots, occurrences, trips, avoidable, waited_ns, wire_ns, evidence, fate }
    }
}
