//! A connection without a socket.

use std::io::{self, Read};

use super::connection::{self, Context, Ends};
use super::input::Input;
use super::startup;
use crate::database;
use crate::options::ServeOptions;
use crate::watch::STEPS;

/// Most steps of SQLite's virtual machine that one replay takes.
const STEPS_MAX: u32 = 1_000_000;

/// What the server answers to all that one client sends, from its startup packet on: a whole connection without
/// sockets and threads, for tests and fuzzing. The database can be `:memory:`, which is empty at the start. Statements
/// that together take more than a million steps of SQLite's virtual machine end with SQLSTATE 57014, and so does
/// `pg_sleep`.
///
/// # Errors
/// Those of the system, such as a database that cannot be opened; what the client did wrong is in the answer.
pub fn replay(options: ServeOptions, mut request: &[u8]) -> io::Result<Vec<u8>> {
    let looks_max = Some(STEPS_MAX / STEPS as u32);
    let context = Context { looks_max, ..Context::new(options)? };
    let ticket = context.registry.enter(None);
    let connection = database::open(&context.options, false).map_err(io::Error::other)?;
    let mut answer = Vec::new();
    let mut input = Input::new();
    let source: &mut dyn Read = &mut request;
    let mut ends = Ends { source, sink: &mut answer };
    if let Some(client) = startup::run(&context, &mut ends, &mut input)? {
        connection::with_connection(&context, ends, &ticket, &mut input, client, &connection)?;
    }
    Ok(answer)
}
