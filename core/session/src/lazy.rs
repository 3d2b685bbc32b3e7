//! What most sessions never use.

use std::cell::OnceCell;
use std::ops::{Deref, DerefMut};

/// A value in memory of its own, made at its first use. A session that is observed, and many of a gateway's, never use one.
#[derive(Debug)]
pub(crate) struct Lazy<T>(OnceCell<Box<T>>);

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceCell::new())
    }
}

impl<T: Default> Deref for Lazy<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

impl<T: Default> DerefMut for Lazy<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_init(Box::default);
        self.0.get_mut().expect("it was made above")
    }
}
