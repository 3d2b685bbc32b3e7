//! A session with the connection that it borrows, which can go to another thread.
#![allow(unsafe_code)] // a value that borrows from its neighbour cannot be written without

use std::io;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use rusqlite::Connection;

use super::{Flow, Output, Session};

/// A [`Session`] and its connection.
pub(crate) struct OwnedSession {
    /// Borrows `connection`, and never leaves this struct.
    session: ManuallyDrop<Session<'static>>,
    /// Made by `Box::leak`; only `session` uses it.
    connection: NonNull<Connection>,
}

// SAFETY: `Session` is not Send for its `&Connection`, `Rc`s and statements. All that share them are in this struct, or
// in the connection, whose closures are Send, and so they move together. Nothing of them leaves it: `handle` gives back
// plain values. SQLite is built thread-safe, and lets a connection be used by one thread after the other.
unsafe impl Send for OwnedSession {}

impl OwnedSession {
    /// Begins a session over a connection, which is closed after it.
    pub(crate) fn new(
        connection: Connection,
        begin: impl for<'c> FnOnce(&'c Connection) -> rusqlite::Result<Session<'c>>,
    ) -> rusqlite::Result<Self> {
        let connection = NonNull::from(Box::leak(Box::new(connection)));
        // SAFETY: the connection stays where it is until `session` is dropped, and is borrowed shared until then.
        match begin(unsafe { connection.as_ref() }) {
            Ok(session) => Ok(Self { session: ManuallyDrop::new(session), connection }),
            Err(error) => {
                // SAFETY: it is from `Box::leak`, and the session that could have borrowed it was not made.
                drop(unsafe { Box::from_raw(connection.as_ptr()) });
                Err(error)
            }
        }
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

impl Drop for OwnedSession {
    fn drop(&mut self) {
        // SAFETY: nobody uses the session after this, and the connection is borrowed by nothing else.
        unsafe {
            ManuallyDrop::drop(&mut self.session);
            drop(Box::from_raw(self.connection.as_ptr()));
        }
    }
}
