//! One connection from accept to close.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use onetrip_wire::pg::{BackendKeyData, Severity, TransactionStatus, encode_ready_for_query};
use rusqlite::Connection;

use super::eager::{Awake, EagerReader};
use super::input::Input;
use super::registry::{Cancellable, Registry, Ticket};
use super::scram::Secrets;
use super::startup::{self, Client};
use crate::database;
use crate::error::SqlError;
use crate::functions::{self, SessionFacts};
use crate::options::{Login, ServeOptions};
use crate::session::{Common, Flow, Output, Session};
use crate::watch::{STEPS, Watch, Watching};

/// What all connections of a server share.
pub(super) struct Context {
    pub(super) options: ServeOptions,
    pub(super) secrets: Option<Secrets>,
    pub(super) registry: Arc<Registry>,
    pub(super) common: Arc<Common>,
    pub(super) awake: Awake,
    /// Of each session, see [`Watch::new`].
    pub(super) looks_max: Option<u32>,
}

impl Context {
    pub(super) fn new(options: ServeOptions) -> io::Result<Self> {
        let secrets = match &options.login {
            Login::Trust => None,
            Login::Scram(users) => Some(Secrets::new(users)?),
        };
        let registry = Arc::new(Registry::new(options.sessions_max));
        let common = Arc::new(Common::new()?);
        Ok(Self { options, secrets, registry, common, awake: Awake::new(), looks_max: None })
    }
}

/// Both directions of a connection.
pub(super) struct Ends<'s> {
    pub(super) source: &'s mut dyn Read,
    pub(super) sink: &'s mut dyn Write,
}

/// Reads from a client that has to be known by a deadline, however it cuts what it says into pieces.
struct LoginReader<'s> {
    stream: &'s TcpStream,
    deadline: Instant,
}

impl Read for LoginReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

/// Serves a connection until it ends. An error of the socket ends it too, and there is nobody to tell.
pub(super) fn run(context: &Context, stream: &TcpStream, ticket: &Ticket) {
    let _ = serve(context, stream, ticket);
    let _ = stream.shutdown(std::net::Shutdown::Write);
}

fn serve(context: &Context, stream: &TcpStream, ticket: &Ticket) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut sink = stream;
    let mut input = Input::new();
    let mut source = LoginReader { stream, deadline: Instant::now() + context.options.login_timeout };
    let mut ends = Ends { source: &mut source, sink: &mut sink };
    let Some(client) = startup::run(context, &mut ends, &mut input)? else { return Ok(()) };
    stream.set_read_timeout(None)?;
    let mut source = EagerReader::new(stream, &context.awake);
    let ends = Ends { source: &mut source, sink: &mut sink };
    match database::open(&context.options, false) {
        Ok(connection) => with_connection(context, ends, ticket, &mut input, client, &connection),
        Err(error) => {
            refuse(ends.sink, &SqlError::new("58030", format!("cannot open the database: {error}")))
        }
    }
}

/// A session over an open database, from the greeting on.
pub(super) fn with_connection(
    context: &Context,
    ends: Ends<'_>,
    ticket: &Ticket,
    input: &mut Input,
    client: Client,
    connection: &Connection,
) -> io::Result<()> {
    let watch = Arc::new(Watch::new(context.looks_max));
    let _watching = Watching::start(Arc::clone(&watch));
    let facts =
        Arc::new(SessionFacts::new(client.user, client.database, ticket.number(), client.settings, watch));
    let watched = Arc::clone(&facts);
    connection.progress_handler(STEPS, Some(move || watched.watch.must_stop()));
    let key = getrandom::u32().map_err(io::Error::other)?.to_be_bytes();
    let interrupt = connection.get_interrupt_handle();
    let cancellable = Cancellable { key, interrupt, facts: Arc::clone(&facts) };
    let Some(_running) = ticket.start_session(cancellable) else {
        return refuse(ends.sink, &SqlError::new("53300", "sorry, too many clients already"));
    };
    let session = functions::register(connection, &facts)
        .and_then(|()| Session::new(connection, Arc::clone(&facts), Arc::clone(&context.common)));
    let session = match session {
        Ok(session) => session,
        Err(error) => return refuse(ends.sink, &SqlError::new("XX000", error.to_string())),
    };
    let mut out = Output::new(ends.sink);
    for (name, value) in facts.settings().reported() {
        out.parameter_status(name, value);
    }
    BackendKeyData { process_id: ticket.number(), key: &key }.encode(&mut out.buffer);
    encode_ready_for_query(&mut out.buffer, TransactionStatus::Idle);
    out.flush()?;
    converse(context, ends.source, input, session, &mut out)
}

fn converse(
    context: &Context,
    source: &mut dyn Read,
    input: &mut Input,
    mut session: Session<'_>,
    out: &mut Output<'_>,
) -> io::Result<()> {
    let length_max = context.options.message_bytes_max;
    loop {
        let mut messages = 0;
        let mut must_flush = false;
        loop {
            let frame = match input.next_frame(length_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    SqlError::protocol(error.to_string()).encode(&mut out.buffer, Severity::Fatal);
                    return out.flush();
                }
            };
            messages += 1;
            match session.handle(frame.tag, input.body(frame), input.next_is_sync(), out)? {
                Flow::Continue => {}
                Flow::Flush => must_flush = true,
                Flow::Close => return out.flush(),
            }
            out.flush_if_full()?;
        }
        context.registry.count_messages(messages);
        if must_flush {
            out.flush()?;
        }
        if !input.fill(source, length_max)? {
            return Ok(());
        }
    }
}

fn refuse(sink: &mut dyn Write, error: &SqlError) -> io::Result<()> {
    let mut out = Vec::new();
    error.encode(&mut out, Severity::Fatal);
    sink.write_all(&out)
}
