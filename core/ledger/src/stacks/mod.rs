//! Drivers and ORMs: what their traffic looks like, and what to change in a program that uses them.
//!
//! Each is one file of `data/`, so that adding one is adding a file and its line in `files.rs`. A driver is known by its
//! startup parameters and by the names that it gives to prepared statements. An ORM is known by shapes of statements that
//! nobody else writes: two different ones, as one may be chance. Where that is not certain, the driver alone is named.

mod files;
mod recogniser;
#[cfg(test)]
mod recorded;
mod stack;

pub(crate) use recogniser::{Language, Recogniser, Sent, Startup, language_of};
pub(crate) use stack::{Marks, marks_of};

use serde::{Serialize, Serializer};

use crate::Code;

/// A client driver or ORM, as far as its traffic tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Driver(u8);

impl Driver {
    /// Not recognised.
    pub const UNKNOWN: Self = Self(0);

    /// All that can be told apart, and the unknown one first.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..files::FILES.len()).map(|position| Self(position as u8))
    }

    /// The one of this key, such as `psycopg3`: the name of its file, and what reports in JSON call it.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::all().find(|driver| driver.key() == key)
    }

    /// What reports in JSON call it.
    pub fn key(self) -> &'static str {
        files::FILES[usize::from(self.0)].0
    }

    /// The name that its users know.
    pub fn name(self) -> &'static str {
        &stack::of(self).name
    }

    /// An ORM hides the driver beneath it, because its fixes are the ones to name.
    pub fn is_orm(self) -> bool {
        stack::of(self).is_orm()
    }

    /// The language of its programs, if they are all of one.
    pub(crate) fn language(self) -> Option<Language> {
        stack::of(self).language
    }

    /// It may prove a password in C, where its programs run in a language that takes longer.
    pub(crate) fn has_quick_proof(self) -> bool {
        stack::of(self).quick_proof
    }

    /// Another one, whose fixes hold for it, too.
    fn like(self) -> Option<Self> {
        stack::of(self).like.as_deref().and_then(Self::of_key)
    }

    /// What to change in its programs, where that is known; else what every driver's programs may do.
    pub fn fix(self, code: Code) -> &'static str {
        let of = |driver| stack::of(driver).fixes.get(&code).map(String::as_str);
        of(self).or_else(|| self.like().and_then(of)).or_else(|| of(Self::UNKNOWN)).unwrap_or_default()
    }

    /// The same for a loop that updates or deletes rows: advice on how to insert many would not do.
    pub fn fix_of_changes(self, code: Code) -> &'static str {
        let of = |driver| stack::of(driver).changes.get(&code).map(String::as_str);
        let known = of(self).or_else(|| self.like().and_then(of)).or_else(|| of(Self::UNKNOWN));
        known.unwrap_or_else(|| self.fix(code))
    }

    /// The same for a queue's worker that takes a job by one statement and changes it by the next.
    pub(crate) fn fix_of_worker(self) -> &'static str {
        let of = |driver| stack::of(driver).worker.as_deref();
        of(self).or_else(|| self.like().and_then(of)).or_else(|| of(Self::UNKNOWN)).unwrap_or_default()
    }
}

impl Serialize for Driver {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}
