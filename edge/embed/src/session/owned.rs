//! A session with the connection that it borrows, which can go to another thread.
#![allow(unsafe_code)] // a value that borrows from its neighbour cannot be written without

use std::io;
use std::ptr::NonNull;

use rusqlite::Connection;

use super::{Flow, Output, Session};

/// A [`Session`] and its connection. It ends in the order of the fields.
pub(crate) struct OwnedSession {
    /// Borrows from `connection`, and never leaves this struct.
    session: Session<'static>,
    _connection: Kept,
}

// SAFETY: `Session` is not Send for its `&Connection`, `Rc`s and statements. All that share them are in this struct, or
// in the connection, whose closures are Send, and so they move together. Nothing of them leaves it: `handle` gives back
// plain values. SQLite is built thread-safe, and lets a connection be used by one thread after the other.
unsafe impl Send for OwnedSession {}

/// A connection that stays in its place, wherever this goes, until this is dropped.
struct Kept(NonNull<Connection>);

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: it is from `Box::leak`, and the session that borrows from it is gone: it was not made, or ended first.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

impl OwnedSession {
    /// Begins a session over a connection, which is closed after it.
    pub(crate) fn new(
        connection: Connection,
        begin: impl for<'c> FnOnce(&'c Connection) -> rusqlite::Result<Session<'c>>,
    ) -> rusqlite::Result<Self> {
        let kept = Kept(NonNull::from(Box::leak(Box::new(connection))));
        // SAFETY: it stays where it is until `kept` is dropped, after the session, and is only borrowed shared.
        let session = begin(unsafe { kept.0.as_ref() })?;
        Ok(Self { session, _connection: kept })
    }

    /// See [`Session::handle`].
    pub(crate) fn handle(
        &mut self,
        tag: u8,
        body: &[u8],
        next_is_sync: bool,
        out: &mut Output<'_>,
    ) -> io::Result<Flow> {
        self.session.handle(tag, body, next_is_sync, out)
    }
}
