//! What many sessions never use.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// A value in memory of its own, made at its first use.
#[derive(Debug)]
pub(crate) struct Lazy<T>(OnceCell<Box<T>>);

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T: Default> Lazy<T> {
    #[cold]
    fn make(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

// Each message looks at it often, and mostly it is there.
impl<T: Default> Deref for Lazy<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        match self.0.get() {
            Some(value) => value,
            None => self.make(),
        }
    }
}

impl<T: Default> DerefMut for Lazy<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        if self.0.get().is_none() {
            self.make();
        }
        self.0.get_mut().expect("it was made above")
    }
}
