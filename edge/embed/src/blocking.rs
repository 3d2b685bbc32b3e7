//! What a thread is told before it waits for anything but its clients' next messages.

use std::cell::Cell;

thread_local! {
    /// What lets others go on while this thread waits; none where nobody depends on it.
    static HAND_OVER: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// To be called before this thread waits: whoever depends on it is served by another one then.
pub(crate) fn announce() {
    if let Some(hand_over) = HAND_OVER.get() {
        hand_over();
    }
}

/// Until this is dropped, a wait of this thread is announced to `hand_over`.
pub(crate) struct Announcing(());

impl Announcing {
    pub(crate) fn start(hand_over: fn()) -> Self {
        HAND_OVER.set(Some(hand_over));
        Self(())
    }
}

impl Drop for Announcing {
    fn drop(&mut self) {
        HAND_OVER.set(None);
    }
}
