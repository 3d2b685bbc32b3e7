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

impl<T: Default> Deref for Lazy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

impl<T: Default> DerefMut for Lazy<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        if self.0.get().is_none() {
            *self = Self(OnceCell::from(Box::default()));
        }
        self.0.get_mut().expect("it was made above")
    }
}
