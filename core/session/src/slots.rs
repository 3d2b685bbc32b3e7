//! Places in a taker's own memory, which travel with the messages that it has sent.

use std::num::NonZeroU16;

/// A place in its taker's memory; to all others, a number that they hand back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(u32);

impl Slot {
    /// No place: the taker keeps nothing of the message.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// A place that no [`Slots`] gives out: it tells messages apart of which the taker keeps nothing. Counted from one.
    pub(crate) const fn reserved(number: u32) -> Self {
        Self(u32::MAX - number)
    }
}

/// The same of what is learnt, in two bytes: what has no room there is not learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lesson(NonZeroU16);

impl From<Lesson> for Slot {
    fn from(lesson: Lesson) -> Self {
        Self(u32::from(lesson.0.get()) - 1)
    }
}

impl TryFrom<Slot> for Lesson {
    type Error = ();

    fn try_from(slot: Slot) -> Result<Self, ()> {
        let number = slot.0.checked_add(1).and_then(|number| u16::try_from(number).ok());
        number.and_then(NonZeroU16::new).map(Self).ok_or(())
    }
}

/// What a taker keeps of messages whose replies are to come.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Keeps this until it is taken.
    pub(crate) fn put(&mut self, kept: T) -> Slot {
        let place = self.free.pop().unwrap_or(self.entries.len() as u32);
        match self.entries.get_mut(place as usize) {
            Some(entry) => *entry = Some(kept),
            None => self.entries.push(Some(kept)),
        }
        Slot(place)
    }

    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        self.entries.get(slot.0 as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        self.entries.get_mut(slot.0 as usize)?.as_mut()
    }

    /// Takes what is kept there; the place is free then.
    pub(crate) fn take(&mut self, slot: Slot) -> Option<T> {
        let kept = self.entries.get_mut(slot.0 as usize)?.take()?;
        self.free.push(slot.0);
        Some(kept)
    }

    /// All that is kept, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().flatten()
    }

    /// How much is kept.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_out_again_once_it_is_free() {
        let mut slots = Slots::default();
        let (one, two) = (slots.put("one"), slots.put("two"));
        assert_eq!((slots.take(one), slots.take(one), slots.len()), (Some("one"), None, 1));
        assert_eq!(slots.put("three"), one);
        *slots.get_mut(two).unwrap() = "four";
        assert_eq!((slots.get(one), slots.get(two)), (Some(&"three"), Some(&"four")));
        assert_eq!(slots.iter().count(), 2);
        assert!(slots.get(Slot::NONE).is_none() && slots.take(Slot::reserved(1)).is_none());
    }
}
