//! One connection from accept to close.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onetrip_wire::pg::{BackendKeyData, Severity, TransactionStatus, encode_ready_for_query};
use rusqlite::Connection;

use super::crew::{Crew, Member};
use super::input::Input;
use super::registry::{Cancellable, Registry, RunningSession, Ticket};
use super::scram::Secrets;
use super::startup::{self, Client};
use super::wire::Wire;
use crate::blocking;
use crate::database;
use crate::error::SqlError;
use crate::functions::{self, SessionFacts};
use crate::options::{Durability, Login, ServeOptions};
use crate::session::{Common, Flow, Output, OwnedSession, Session};
use crate::watch::{STEPS, Watch, Watching, wait_for_lock};

/// What all connections of a server share.
pub(super) struct Context {
    pub(super) options: ServeOptions,
    pub(super) secrets: Option<Secrets>,
    pub(super) registry: Arc<Registry>,
    pub(super) common: Arc<Common>,
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
        Ok(Self { options, secrets, registry, common, looks_max: None })
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

/// Takes a connection through its login, on a thread of its own; then its session rests in `crew`. An error of the
/// socket ends it, and there is nobody to tell.
pub(super) fn open(context: &Arc<Context>, crew: &Arc<Crew>, stream: Arc<TcpStream>, ticket: Ticket) {
    let (leave, number) = (Leave(Arc::clone(&stream)), ticket.number());
    let Ok(Some(conversation)) = log_in(context, &stream, &ticket) else {
        drop((leave, ticket)); // in this order
        return;
    };
    let connected = Box::new(Connected { conversation, leave, _ticket: ticket });
    // What it has received behind its login comes first: no poll would tell of it.
    if let Some(member) = connected.answer() {
        // Where the system has no memory for it, the connection is closed.
        let _ = crew.add(number, stream, member);
    }
}

fn log_in(context: &Arc<Context>, stream: &TcpStream, ticket: &Ticket) -> io::Result<Option<Conversation>> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    let mut sink = stream;
    let mut input = Input::new();
    let mut source = LoginReader { stream, deadline: Instant::now() + context.options.login_timeout };
    let mut ends = Ends { source: &mut source, sink: &mut sink };
    let Some(client) = startup::run(context, &mut ends, &mut input)? else { return Ok(None) };
    stream.set_read_timeout(None)?; // a client may be idle for as long as it likes
    match database::open(&context.options, false) {
        Ok(connection) => Conversation::begin(context, (connection, client), input, ticket, &mut sink),
        Err(error) => {
            refuse(&mut sink, &SqlError::new("58030", format!("cannot open the database: {error}")))?;
            Ok(None)
        }
    }
}

/// A session at its socket. It ends in the order of the fields.
struct Connected {
    conversation: Conversation,
    leave: Leave,
    _ticket: Ticket,
}

impl Connected {
    /// Answers what has been received.
    fn answer(mut self: Box<Self>) -> Option<Box<dyn Member>> {
        let mut wire = Wire { stream: &self.leave.0, waits: false };
        match self.conversation.answer(&mut wire) {
            Ok(true) => Some(self),
            _ => None,
        }
    }
}

impl Member for Connected {
    fn advance(mut self: Box<Self>, waits: bool) -> Option<Box<dyn Member>> {
        match self.conversation.receive(&mut Wire { stream: &self.leave.0, waits }) {
            Ok(true) => self.answer(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(self),
            _ => None,
        }
    }
}

/// Tells the client of the end when it is dropped.
struct Leave(Arc<TcpStream>);

impl Drop for Leave {
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

/// A session after its login, and what it has received. It ends in the order of the fields: nobody interrupts a
/// connection that is closed.
pub(super) struct Conversation {
    _running: RunningSession,
    session: OwnedSession,
    watch: Arc<Watch>,
    input: Input,
    /// Memory of replies.
    replies: Vec<u8>,
    context: Arc<Context>,
}

impl Conversation {
    /// Greets a client that has logged in, or refuses it.
    pub(super) fn begin(
        context: &Arc<Context>,
        (connection, client): (Connection, Client),
        input: Input,
        ticket: &Ticket,
        sink: &mut dyn Write,
    ) -> io::Result<Option<Self>> {
        let watch = Arc::new(Watch::new(context.looks_max).with_lock_timeout(context.options.lock_timeout));
        let _watching = Watching::start(Arc::clone(&watch));
        let (user, database) = (client.user, client.database);
        let number = ticket.number();
        let facts = Arc::new(SessionFacts::new(user, database, number, client.settings, Arc::clone(&watch)));
        let key = getrandom::u32().map_err(io::Error::other)?.to_be_bytes();
        let interrupt = connection.get_interrupt_handle();
        let Some(running) = ticket.start_session(Cancellable { key, interrupt, facts: Arc::clone(&facts) })
        else {
            refuse(sink, &SqlError::new("53300", "sorry, too many clients already"))?;
            return Ok(None);
        };
        let session = OwnedSession::new(connection, |connection| {
            hook(connection, &facts, context.options.durability)?;
            functions::register(connection, &facts)?;
            Session::new(connection, Arc::clone(&facts), Arc::clone(&context.common))
        });
        let session = match session {
            Ok(session) => session,
            Err(error) => {
                drop(running);
                refuse(sink, &SqlError::new("XX000", error.to_string()))?;
                return Ok(None);
            }
        };
        let mut out = Output::new(Output::memory(), sink);
        for (name, value) in facts.settings().reported() {
            out.parameter_status(name, value);
        }
        BackendKeyData { process_id: number, key: &key }.encode(&mut out.buffer);
        encode_ready_for_query(&mut out.buffer, TransactionStatus::Idle);
        out.flush()?;
        let replies = out.buffer;
        Ok(Some(Self { _running: running, session, watch, input, replies, context: Arc::clone(context) }))
    }

    /// Receives at least one byte; false at the end of the stream.
    pub(super) fn receive(&mut self, source: &mut dyn Read) -> io::Result<bool> {
        self.input.fill(source, self.context.options.message_bytes_max)
    }

    /// Carries out the whole messages that were received; false where that ends the conversation.
    pub(super) fn answer(&mut self, sink: &mut dyn Write) -> io::Result<bool> {
        let _watching = Watching::start(Arc::clone(&self.watch));
        let mut out = Output::new(std::mem::take(&mut self.replies), sink);
        let (mut messages, mut must_flush) = (0, false);
        loop {
            let frame = match self.input.next_frame(self.context.options.message_bytes_max) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(error) => {
                    SqlError::protocol(error.to_string()).encode(&mut out.buffer, Severity::Fatal);
                    out.flush()?;
                    return Ok(false);
                }
            };
            messages += 1;
            let body = self.input.body(frame);
            match self.session.handle(frame.tag, body, self.input.next_is_sync(), &mut out)? {
                Flow::Continue => {}
                Flow::Flush => must_flush = true,
                Flow::Close => {
                    out.flush()?;
                    return Ok(false);
                }
            }
            out.flush_if_full()?;
        }
        self.context.registry.count_messages(messages);
        if must_flush {
            out.flush()?;
        }
        self.replies = out.buffer;
        Ok(true)
    }
}

/// Lets statements be ended, and says when they are about to wait.
fn hook(connection: &Connection, facts: &Arc<SessionFacts>, durability: Durability) -> rusqlite::Result<()> {
    let watched = Arc::clone(facts);
    connection.progress_handler(STEPS, Some(move || watched.watch.must_stop()));
    connection.busy_handler(Some(wait_for_lock))?;
    if durability == Durability::Full {
        let commits = || {
            blocking::announce(); // for the disk
            false
        };
        connection.commit_hook(Some(commits));
    }
    Ok(())
}

fn refuse(sink: &mut dyn Write, error: &SqlError) -> io::Result<()> {
    let mut out = Vec::new();
    error.encode(&mut out, Severity::Fatal);
    sink.write_all(&out)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use onetrip_wire::pg::{PROTOCOL_3_0, encode_startup};

    use super::*;

    #[test]
    fn the_deadline_of_a_login_does_not_outlive_it() {
        let directory = tempfile::tempdir().unwrap();
        let options = ServeOptions::new(directory.path().join("test.db"));
        let context = Arc::new(Context::new(options).unwrap());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut startup = Vec::new();
        encode_startup(&mut startup, PROTOCOL_3_0, [(&b"user"[..], &b"ann"[..])]);
        client.write_all(&startup).unwrap();
        let stream = listener.accept().unwrap().0;
        let ticket = context.registry.enter(None);
        let conversation = log_in(&context, &stream, &ticket).unwrap();
        assert!(conversation.is_some());
        assert_eq!(stream.read_timeout().unwrap(), None);
    }
}
