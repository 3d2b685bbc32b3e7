//! A connection without a socket.

use std::io;
use std::sync::Arc;

use super::connection::{Context, Conversation, Ends};
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
    let context = Arc::new(Context { looks_max, ..Context::new(options)? });
    let ticket = context.registry.enter(None);
    let connection = database::open(&context.options, false).map_err(io::Error::other)?;
    let mut answer = Vec::new();
    let mut input = Input::new();
    let mut ends = Ends { source: &mut request, sink: &mut answer };
    let Some(client) = startup::run(&context, &mut ends, &mut input)? else { return Ok(answer) };
    let begun = Conversation::begin(&context, (connection, client), input, &ticket, &mut answer)?;
    let Some(mut conversation) = begun else { return Ok(answer) };
    while conversation.answer(&mut answer)? && conversation.receive(&mut request)? {}
    drop(conversation); // before its ticket
    Ok(answer)
}
