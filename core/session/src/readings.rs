//! What was found in texts, for those that come again: programs send the same ones over and over.
//!
//! A text has one seat that it may take, and takes it when it comes for the second time with none in between that has the
//! same. Of texts that never come again nothing is kept.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use onetrip_sql::StatementKind;
use smallvec::SmallVec;

/// Seats.
const SEATS: usize = 4096;
/// Longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 4096;
/// Bytes of all that is kept, at most.
const BYTES_MAX: usize = 4 << 20;

/// Whether texts of this kind are kept: those that programs send over and over. Statements that exist to set a password
/// (`ALTER ROLE`) are none of them, nor is what changes how other texts are read. Any literal may still hold a secret: a text is in
/// memory only, until another one takes its seat.
pub(crate) fn are_kept(kind: StatementKind) -> bool {
    use StatementKind as S;
    kind.is_row_write()
        || kind.is_transaction_control()
        || matches!(
            kind,
            S::Select | S::Values | S::With | S::Show | S::Declare | S::Fetch | S::Move | S::CloseCursor
        )
}

/// What was found in the latest texts.
#[derive(Debug)]
pub(crate) struct Readings<T> {
    keys: RandomState,
    seats: Mutex<Seats<T>>,
}

#[derive(Debug)]
struct Seats<T> {
    /// None as long as nothing was looked for.
    all: Vec<Seat<T>>,
    bytes: usize,
}

#[derive(Debug)]
struct Seat<T> {
    /// Hash of the latest text without a seat that came by.
    passed: u64,
    kept: Option<Arc<Reading<T>>>,
}

/// What was found in a text.
#[derive(Debug)]
pub(crate) struct Reading<T> {
    /// What decides besides the text how it is read.
    mode: u8,
    text: Box<[u8]>,
    /// Its template, as it is recorded.
    pub(crate) template: Box<[u8]>,
    /// Values of its literals, one after the other, and where each ends.
    values: Vec<u8>,
    ends: SmallVec<[u32; 4]>,
    /// What else was found.
    pub(crate) found: T,
}

/// What is known of a text.
#[derive(Debug)]
pub(crate) enum Looked<T> {
    /// It was read before.
    Known(Arc<Reading<T>>),
    /// It came before: what is found in it is worth keeping.
    Again,
    New,
}

impl<T> Default for Readings<T> {
    fn default() -> Self {
        Self { keys: RandomState::default(), seats: Mutex::new(Seats { all: Vec::new(), bytes: 0 }) }
    }
}

impl<T> Readings<T> {
    /// What is known of a text that is read in this mode.
    pub(crate) fn look(&self, mode: u8, text: &[u8]) -> Looked<T> {
        if text.len() > TEXT_BYTES_MAX {
            return Looked::New;
        }
        let hash = self.keys.hash_one((mode, text));
        // Whoever would have to wait can read it as fast.
        let Ok(mut seats) = self.seats.try_lock() else { return Looked::New };
        let seat = seats.of(hash);
        match &seat.kept {
            Some(kept) if kept.mode == mode && *kept.text == *text => Looked::Known(Arc::clone(kept)),
            _ if std::mem::replace(&mut seat.passed, hash) == hash => Looked::Again,
            _ => Looked::New,
        }
    }

    /// Keeps what was found, if there is room.
    pub(crate) fn keep(&self, reading: Reading<T>) {
        let hash = self.keys.hash_one((reading.mode, &*reading.text));
        let Ok(mut seats) = self.seats.try_lock() else { return };
        let before = seats.of(hash).kept.as_ref().map_or(0, |kept| kept.bytes());
        let after = seats.bytes - before + reading.bytes();
        if after <= BYTES_MAX {
            seats.bytes = after;
            seats.of(hash).kept = Some(Arc::new(reading));
        }
    }
}

impl<T> Seats<T> {
    fn of(&mut self, hash: u64) -> &mut Seat<T> {
        if self.all.is_empty() {
            self.all.resize_with(SEATS, || Seat { passed: 0, kept: None });
        }
        &mut self.all[hash as usize % SEATS]
    }
}

impl<T> Reading<T> {
    /// Nothing but this was found in a text, so far.
    pub(crate) fn new(mode: u8, text: &[u8], template: &[u8], found: T) -> Self {
        let (values, ends) = Default::default();
        Self { mode, text: text.into(), template: template.into(), values, ends, found }
    }

    /// Adds the value of a literal.
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.values.extend_from_slice(value);
        self.ends.push(self.values.len() as u32);
    }

    /// Values of the literals, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.values[start as usize..*end as usize])
    }

    fn bytes(&self) -> usize {
        let ends = if self.ends.spilled() { self.ends.len() * size_of::<u32>() } else { 0 };
        size_of::<Self>() + self.text.len() + self.template.len() + self.values.capacity() + ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &[u8], values: &[&[u8]]) -> Reading<u32> {
        let mut reading = Reading::new(0, text, b"SELECT $1, $2", text.len() as u32);
        values.iter().for_each(|value| reading.push(value));
        reading
    }

    #[test]
    fn a_text_that_comes_again_is_known_with_all_that_was_found() {
        let readings = Readings::default();
        let text = b"SELECT '', 'ab'";
        assert!(matches!(readings.look(0, text), Looked::New));
        assert!(matches!(readings.look(0, text), Looked::Again));
        readings.keep(reading(text, &[b"", b"ab"]));
        let Looked::Known(known) = readings.look(0, text) else { panic!("it is kept") };
        assert_eq!((&*known.template, known.found), (&b"SELECT $1, $2"[..], text.len() as u32));
        assert_eq!(known.values().collect::<Vec<_>>(), [&b""[..], b"ab"]);
        assert!(!matches!(readings.look(1, text), Looked::Known(_)), "another mode reads otherwise");
        assert!(!matches!(readings.look(0, b"SELECT '', 'aB'"), Looked::Known(_)));
    }

    #[test]
    fn what_never_comes_again_is_not_kept_and_pushes_nothing_out() {
        let readings = Readings::default();
        readings.keep(reading(b"SELECT 1", &[b"1"]));
        for number in 0..50_000 {
            let text = format!("SELECT 'once', {number}");
            assert!(!matches!(readings.look(0, text.as_bytes()), Looked::Known(_)));
        }
        assert!(matches!(readings.look(0, b"SELECT 1"), Looked::Known(_)));
        assert!(matches!(readings.look(0, &[b'x'; TEXT_BYTES_MAX + 1]), Looked::New));
        assert!(matches!(readings.look(0, &[b'x'; TEXT_BYTES_MAX + 1]), Looked::New), "it is too long");
    }

    #[test]
    fn no_more_bytes_are_kept_than_the_bound() {
        let readings = Readings::default();
        for number in 0..20_000 {
            readings.keep(reading(format!("SELECT {number} -- {:4000}", "").as_bytes(), &[b"1"]));
        }
        let seats = readings.seats.lock().unwrap();
        let kept: usize =
            seats.all.iter().filter_map(|seat| seat.kept.as_ref()).map(|kept| kept.bytes()).sum();
        assert_eq!(seats.bytes, kept);
        assert!((BYTES_MAX / 2..=BYTES_MAX).contains(&kept), "{kept}");
    }
}
