//! What the gateway's sessions know together of prepared statements: which texts the server accepts, and how it
//! describes them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use onetrip_ledger::Moment;
use onetrip_wire::pg::Oid;

use crate::facts::{Place, Stamp, are_settings_fresh};

/// Longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;
/// Longest description that is kept, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// What is kept in all, in bytes; with more, it starts anew.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Statements that the server has accepted, by where their names are resolved, their text and their parameters' types.
#[derive(Debug, Default)]
pub(crate) struct Descriptions {
    store: Mutex<Store>,
}

#[derive(Debug, Default)]
struct Store {
    places: HashMap<Place, Statements, RandomState>,
    bytes: usize,
}

type Statements = HashMap<Box<[u8]>, Entry, RandomState>;

/// What the server has said about a statement.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    accepted: Stamp,
    described: Option<(Arc<Description>, Stamp)>,
}

/// A statement's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    /// Body of the ParameterDescription.
    pub(crate) parameters: Box<[u8]>,
    /// Body of the RowDescription; none where the server says NoData.
    pub(crate) row: Option<Box<[u8]>>,
}

/// What the server has said to a statement.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// It has accepted it.
    Accepted,
    /// It has accepted and described it.
    Described(Description),
}

/// A Parse that was sent as the client wrote it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// As [`key`] makes it.
    key: Box<[u8]>,
    stamp: Stamp,
    /// How often the session's own state had, or may have, changed.
    generation: u64,
}

impl Asked {
    /// `None` for a text that is not kept.
    pub(crate) fn new(
        text: &[u8],
        types: impl Iterator<Item = Oid>,
        stamp: Stamp,
        generation: u64,
    ) -> Option<Self> {
        Some(Self { key: key(text, types)?, stamp, generation })
    }

    /// Whether it was sent so shortly ago that no configuration counts that was read anew since.
    pub(crate) fn is_recent(&self, now: Moment) -> bool {
        are_settings_fresh(self.stamp.at, now)
    }

    /// Whether it was sent at this moment or later.
    pub(crate) fn is_since(&self, moment: Moment) -> bool {
        self.stamp.at >= moment
    }

    /// Whether the server has read it at this epoch and generation.
    pub(crate) fn is_of(&self, epoch: u64, generation: u64) -> bool {
        self.stamp.epoch == epoch && self.generation == generation
    }
}

/// A statement's text and the types that its client fixed for its parameters; `None` for a text that is not kept.
pub(crate) fn key(text: &[u8], types: impl Iterator<Item = Oid>) -> Option<Box<[u8]>> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let types = types.flat_map(Oid::to_be_bytes);
    Some(text.iter().copied().chain([0]).chain(types).collect())
}

impl Entry {
    /// Whether the server has accepted the text of late.
    pub(crate) fn is_accepted(&self, now: Moment, epoch: u64) -> bool {
        self.accepted.is_fresh(now, epoch)
    }

    /// How it is described.
    pub(crate) fn description(&self) -> Option<&Arc<Description>> {
        self.described.as_ref().map(|(description, _)| description)
    }

    /// Whether the server has described it so of late.
    pub(crate) fn is_described(&self, now: Moment, epoch: u64) -> bool {
        self.described.as_ref().is_some_and(|(_, stamp)| stamp.is_fresh(now, epoch))
    }
}

impl Descriptions {
    pub(crate) fn get(&self, place: &Place, key: &[u8]) -> Option<Entry> {
        self.lock().places.get(place)?.get(key).cloned()
    }

    /// Whether this statement is known anywhere in the database of this name.
    pub(crate) fn has_somewhere(&self, database: &[u8], key: &[u8]) -> bool {
        let store = self.lock();
        store
            .places
            .iter()
            .any(|(other, statements)| other.is_in_database(database) && statements.contains_key(key))
    }

    /// The server has said this.
    pub(crate) fn said(&self, place: &Place, asked: &Asked, said: Said) {
        match said {
            Said::Accepted => self.accepted(place, asked),
            Said::Described(description) => self.described(place, asked, description),
        }
    }

    /// The server has accepted it.
    pub(crate) fn accepted(&self, place: &Place, asked: &Asked) {
        let mut store = self.lock();
        let described = match store.statements(place).get_mut(&asked.key) {
            Some(entry) => {
                entry.accepted = asked.stamp;
                return;
            }
            None => None,
        };
        let entry = Entry { accepted: asked.stamp, described };
        store.put(place, asked.key.clone(), entry);
    }

    /// The server has accepted and described it.
    pub(crate) fn described(&self, place: &Place, asked: &Asked, description: Description) {
        if description.len() > DESCRIPTION_BYTES_MAX {
            return;
        }
        let mut store = self.lock();
        let stamp = asked.stamp;
        let same = match store.statements(place).get_mut(&asked.key) {
            Some(entry) => {
                entry.accepted = stamp;
                entry.described.as_mut().filter(|(known, _)| **known == description)
            }
            None => None,
        };
        if let Some((_, confirmed)) = same {
            *confirmed = stamp;
            return;
        }
        let entry = Entry { accepted: stamp, described: Some((Arc::new(description), stamp)) };
        store.put(place, asked.key.clone(), entry);
    }

    /// The server says something else now.
    pub(crate) fn forget(&self, place: &Place, key: &[u8]) {
        self.lock().statements(place).remove(key);
    }

    /// Nothing that was said in this place holds.
    pub(crate) fn forget_all(&self, place: &Place) {
        self.lock().places.remove(place);
    }

    /// Nothing that was said anywhere in the database of this name holds.
    pub(crate) fn forget_database(&self, name: &[u8]) {
        self.lock().places.retain(|place, _| !place.is_in_database(name));
    }

    /// A panic elsewhere leaves the map whole.
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    fn statements(&mut self, place: &Place) -> &mut Statements {
        if !self.places.contains_key(place) {
            self.places.insert(place.clone(), Statements::default());
        }
        self.places.entry(place.clone()).or_default()
    }

    fn put(&mut self, place: &Place, key: Box<[u8]>, entry: Entry) {
        let described = entry.description().map_or(0, |description| description.len());
        let bytes = key.len() + described + size_of::<Entry>() + place.len();
        if self.bytes + bytes > BYTES_MAX {
            self.places.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.statements(place).insert(key, entry);
    }
}

impl Description {
    fn len(&self) -> usize {
        self.parameters.len() + self.row.as_ref().map_or(0, |row| row.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str, sent_at: u64, epoch: u64) -> Asked {
        Asked::new(text.as_bytes(), [23].into_iter(), Stamp { at: Moment(sent_at), epoch }, 0).unwrap()
    }

    #[test]
    fn what_was_sent_two_seconds_ago_may_have_met_another_configuration() {
        let asked = asked("SELECT 1", 1_000_000_000, 0);
        assert!(asked.is_recent(Moment(2_999_999_999)) && !asked.is_recent(Moment(3_000_000_000)));
    }

    fn description(row: &[u8]) -> Description {
        Description { parameters: Box::from(&b"\0\0"[..]), row: Some(Box::from(row)) }
    }

    #[test]
    fn what_is_not_confirmed_for_a_minute_is_not_fresh() {
        let (known, place) = (Descriptions::default(), Place::default());
        let key = key(b"SELECT 1", [23].into_iter()).unwrap();
        let minute = 60_000_000_000;
        known.described(&place, &asked("SELECT 1", 0, 0), description(b"one"));
        known.accepted(&place, &asked("SELECT 1", minute, 0));
        let entry = known.get(&place, &key).unwrap();
        assert!(entry.is_accepted(Moment(minute), 0) && !entry.is_accepted(Moment(minute), 1));
        assert!(!entry.is_described(Moment(minute), 0), "accepted is not described");
        known.described(&place, &asked("SELECT 1", 2 * minute, 1), description(b"two"));
        let entry = known.get(&place, &key).unwrap();
        assert!(entry.is_described(Moment(2 * minute), 1));
        assert_eq!(entry.description().unwrap().row.as_deref(), Some(&b"two"[..]));
        known.forget(&place, &key);
        assert!(known.get(&place, &key).is_none());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let (known, place) = (Descriptions::default(), Place::default());
        let long = "x".repeat(TEXT_BYTES_MAX - 8);
        for number in 0..2 * BYTES_MAX / TEXT_BYTES_MAX {
            known.accepted(&place, &asked(&format!("{long}{number:08}"), 0, 0));
        }
        let kept = known.lock().places[&place].len();
        assert!(kept > 0 && kept <= BYTES_MAX / TEXT_BYTES_MAX, "{kept}");
        assert!(key(&vec![b'x'; TEXT_BYTES_MAX + 1], [].into_iter()).is_none());
    }
}
