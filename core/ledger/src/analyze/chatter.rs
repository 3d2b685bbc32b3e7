//! OT011: trips that do no work of the program's: pings, settings, questions about the session and the catalogue.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::book::{Book, Key, Sighting};
use super::claims::{Claims, Pattern, Share, TripNumber};
use super::client::Client;
use super::event::{Event, Run};
use super::hash::{Table, digest};
use super::purpose::Purpose;
use crate::Driver;
use crate::findings::{Code, Evidence};

/// Avoidable trips of one driver that are worth a finding.
const AVOIDABLE_MIN: u64 = 5;
/// Look-ups of one connection whose answers are remembered.
const ANSWERS_MAX: usize = 1024;

/// Sorts of chatter: each is a finding of its own, because each has a cause of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Sort {
    Ping,
    Setting,
    LookUp,
}

/// Chatter of all connections.
#[derive(Debug, Default)]
pub(super) struct Chatter {
    /// Templates of calls that set something: the first run of each has a purpose.
    called: HashSet<u32>,
    heard: HashMap<(Driver, Sort, u32), Sighting>,
}

/// Look-ups of one connection, by template and digest of the parameters.
#[derive(Debug, Default)]
pub(super) struct LookUps {
    answers: Table<(u32, u64), Answer>,
}

/// What a look-up was answered: the digest of all rows, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    digest: u64,
    rows: u64,
}

impl LookUps {
    /// Whether the answer is the one that the same question got the last time, which is certain only if all of it was seen.
    fn is_known(&mut self, run: &Run<'_>) -> bool {
        let key = (run.template, digest(run.parameters));
        if self.answers.len() >= ANSWERS_MAX && !self.answers.contains_key(&key) {
            self.answers.clear();
        }
        let answer = Answer { digest: run.statement.result_digest, rows: run.statement.rows };
        let is_seen = answer.digest != 0 || answer.rows == 0;
        self.answers.insert(key, answer) == Some(answer) && is_seen
    }
}

impl Sort {
    /// The sort of a trip in which nothing else was run, and the template that stands for it.
    fn of(event: &Event<'_>) -> Option<(Self, u32)> {
        let mut sort = None;
        for run in &event.runs {
            let of_run = match run.facts.purpose {
                _ if run.continues() => return None,
                Purpose::Ping => Self::Ping,
                Purpose::Set | Purpose::Reset | Purpose::Show => Self::Setting,
                Purpose::LookUp | Purpose::SetByCall => Self::LookUp,
                _ => return None,
            };
            sort = sort.max(Some((of_run, run.template)));
        }
        sort
    }

    /// What this sort of chatter is counted by, within one connection.
    fn pattern(self, template: u32) -> Pattern {
        Pattern { code: Code::SessionChatter, template, other: self as u32 }
    }

    /// The sort that a pattern was counted by.
    pub(super) fn of_pattern(pattern: Pattern) -> Option<Self> {
        let sorts = [Self::Ping, Self::Setting, Self::LookUp];
        sorts.into_iter().find(|sort| pattern == sort.pattern(pattern.template))
    }
}

impl Chatter {
    /// Takes one exchange of any sort; `trip` is its number if it is a reading trip.
    pub(super) fn take(
        &mut self,
        event: &Event<'_>,
        trip: Option<TripNumber>,
        look_ups: &mut LookUps,
        claims: &mut Claims,
    ) {
        if !event.is_own_trip() || event.failed() {
            return;
        }
        let Some((sort, template)) = Sort::of(event) else { return };
        let mut has_purpose = false;
        for run in &event.runs {
            has_purpose |= match run.facts.purpose {
                Purpose::LookUp => !look_ups.is_known(run),
                Purpose::SetByCall => self.called.insert(run.template),
                _ => false,
            };
        }
        let share = if has_purpose { Share::Kept } else { Share::Avoidable };
        match trip {
            Some(trip) => {
                claims.claim(trip, sort.pattern(template), event.scope, share);
            }
            None => claims.add(event, sort.pattern(template), share),
        }
    }

    /// Takes what one connection's chatter of one template came to.
    pub(super) fn add(&mut self, driver: Driver, sort: Sort, template: u32, more: Sighting) {
        match self.heard.get_mut(&(driver, sort, template)) {
            Some(sighting) => sighting.merge(more),
            None => {
                self.heard.insert((driver, sort, template), more);
            }
        }
    }

    /// Books all of it, by driver and sort, under the statements that were sent most often.
    pub(super) fn book(&mut self, book: &mut Book) {
        let mut by_sort: BTreeMap<(Driver, Sort), Vec<(u32, Sighting)>> = BTreeMap::new();
        let mut avoidable: HashMap<Driver, u64> = HashMap::new();
        for ((driver, sort, template), sighting) in
            self.heard.drain().filter(|(_, heard)| heard.avoidable > 0)
        {
            *avoidable.entry(driver).or_default() += sighting.avoidable;
            by_sort.entry((driver, sort)).or_default().push((template, sighting));
        }
        for ((driver, _), mut heard) in by_sort {
            if avoidable.get(&driver).is_none_or(|trips| *trips < AVOIDABLE_MIN) {
                continue;
            }
            heard.sort_by_key(|(template, sighting)| (std::cmp::Reverse(sighting.avoidable), *template));
            let template = |position: usize| heard.get(position).map_or(0, |(template, _)| *template);
            let client = Client::Known(driver);
            let key = Key { code: Code::SessionChatter, template: template(0), source: template(1), client };
            for (_, sighting) in heard {
                book.add(key, sighting);
            }
        }
    }
}

/// What shows that trips were chatter.
pub(super) fn evidence(sort: Sort, trips: u64) -> Evidence {
    let count = |wanted: Sort| if sort == wanted { trips } else { 0 };
    Evidence::Chatter {
        pings: count(Sort::Ping),
        settings: count(Sort::Setting),
        lookups: count(Sort::LookUp),
    }
}
