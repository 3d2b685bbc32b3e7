//! One client's conversation: messages in, replies out. It reads and writes SQLite; sockets are its caller's.

mod copy;
mod errors;
mod extended;
mod output;
mod owned;
mod portal;
mod prepared;
mod questions;
mod run;
mod savepoints;
pub(crate) mod settings;
mod simple;
mod timeout;
mod transaction;
mod utility;

use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onetrip_wire::WireError;
use onetrip_wire::pg::{
    Bind, Execute, Format, Parse, Severity, StatementOrPortal, encode_ready_for_query, frontend,
};
use rusqlite::Connection;

pub(crate) use output::Output;
pub(crate) use owned::OwnedSession;

use crate::error::{SqlError, SqlResult};
use crate::functions::SessionFacts;
use crate::sql::{LiveSchema, Statement, Utility};
use copy::Copying;
use portal::Portal;
use prepared::{Named, Plans, Prepared};
use savepoints::Savepoint;
use transaction::{Block, Transaction};

/// Most portals that a session holds, and what they may take together: each has what SQLite made of its statement, and the
/// values bound to it.
const PORTALS_BYTES_MAX: usize = 64 << 20;
const PORTALS_MAX: usize = 1_000;

/// What stops a message from being carried out.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The client is told.
    Sql(Box<SqlError>),
    /// The client cannot be told.
    Io(io::Error),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Sql(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        SqlError::protocol(format!("invalid message format: {error}")).into()
    }
}

/// What the caller does after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Reads on; replies may wait.
    Continue,
    /// Sends what there is.
    Flush,
    /// Closes the connection, after sending what there is.
    Close,
}

/// What all sessions of a server share.
#[derive(Debug)]
pub(crate) struct Common {
    /// Rises with each change of the schema made through this server.
    pub(crate) schema_epoch: AtomicU64,
    /// Tells this server's database from others.
    identity: u64,
}

impl Common {
    pub(crate) fn new() -> io::Result<Self> {
        let identity = getrandom::u64().map_err(io::Error::other)?;
        Ok(Self { schema_epoch: AtomicU64::new(0), identity })
    }
}

/// A session after its start.
pub(crate) struct Session<'c> {
    connection: &'c Connection,
    schema: LiveSchema<'c>,
    facts: Arc<SessionFacts>,
    common: Arc<Common>,
    transaction: Transaction<'c>,
    statements: Named<'c>,
    unnamed_statement: Option<Rc<Prepared<'c>>>,
    portals: HashMap<Vec<u8>, Portal<'c>>,
    unnamed_portal: Option<Portal<'c>>,
    /// Memory of the last unnamed portal's formats.
    spare_formats: Vec<Format>,
    plans: Plans<'c>,
    copying: Option<Copying<'c>>,
    /// After an error of the extended protocol: everything up to Sync is passed over.
    is_skipping: bool,
    /// Whether the open transaction changed the schema.
    changed_schema: bool,
    is_read_only_by_default: bool,
    /// Savepoints of the open transaction, the last one last.
    savepoints: Vec<Savepoint>,
    /// PREPARE has made a statement.
    has_sql_statements: bool,
}

impl<'c> Session<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        facts: Arc<SessionFacts>,
        common: Arc<Common>,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            schema: LiveSchema::new(connection)?,
            facts,
            common,
            transaction: Transaction::new(connection)?,
            statements: Named::default(),
            unnamed_statement: None,
            portals: HashMap::new(),
            unnamed_portal: None,
            spare_formats: Vec::new(),
            plans: Plans::default(),
            copying: None,
            is_skipping: false,
            changed_schema: false,
            is_read_only_by_default: false,
            savepoints: Vec::new(),
            has_sql_statements: false,
        })
    }

    /// Carries out one message; `next_is_sync` tells whether a Sync is known to follow it.
    pub(crate) fn handle(
        &mut self,
        tag: u8,
        body: &[u8],
        next_is_sync: bool,
        out: &mut Output<'_>,
    ) -> io::Result<Flow> {
        if self.is_skipping && !matches!(tag, frontend::SYNC | frontend::TERMINATE) {
            return Ok(Flow::Continue);
        }
        // Clients that do not know yet that their statement is a COPY send these; PostgreSQL passes over them too.
        if self.copying.is_some() && matches!(tag, frontend::SYNC | frontend::FLUSH) {
            return Ok(Flow::Continue);
        }
        self.facts.watch.start();
        let done = match self.dispatch(tag, body, next_is_sync, out) {
            Ok(flow) => Ok(flow),
            Err(Failure::Io(error)) => Err(error),
            Err(Failure::Sql(error)) => {
                self.fail(*error, out);
                self.is_skipping = true;
                Ok(Flow::Flush)
            }
        };
        self.facts.watch.finish();
        done
    }

    fn dispatch(
        &mut self,
        tag: u8,
        body: &[u8],
        next_is_sync: bool,
        out: &mut Output<'_>,
    ) -> Result<Flow, Failure> {
        match tag {
            _ if self.copying.is_some() && !matches!(tag, frontend::COPY_DATA | frontend::TERMINATE) => {
                return self.copy_end(tag, body, out);
            }
            frontend::BIND => self.bind(&Bind::decode(body)?, out)?,
            frontend::EXECUTE => self.execute(&Execute::decode(body)?, next_is_sync, out)?,
            frontend::SYNC => {
                self.sync(out)?;
                return Ok(Flow::Flush);
            }
            frontend::PARSE => self.parse(&Parse::decode(body)?, out)?,
            frontend::DESCRIBE => self.describe(StatementOrPortal::decode(body)?, out)?,
            frontend::CLOSE => self.close(StatementOrPortal::decode(body)?, out)?,
            frontend::FLUSH => return Ok(Flow::Flush),
            frontend::QUERY => {
                self.simple_query(body, out)?;
                return Ok(Flow::Flush);
            }
            frontend::TERMINATE => return Ok(Flow::Close),
            frontend::COPY_DATA => self.copy_data(body, out)?,
            // Behind a COPY that failed.
            frontend::COPY_DONE | frontend::COPY_FAIL => {}
            frontend::FUNCTION_CALL => {
                self.fail(SqlError::unsupported("FunctionCall is not supported"), out);
                self.ready(out);
                return Ok(Flow::Flush);
            }
            other => {
                let error = SqlError::protocol(format!("invalid frontend message type {other}"));
                error.encode(&mut out.buffer, Severity::Fatal);
                return Ok(Flow::Close);
            }
        }
        Ok(Flow::Continue)
    }

    /// Tells the client of an error and moves the transaction on.
    fn fail(&mut self, mut error: SqlError, out: &mut Output<'_>) {
        if error.sqlstate == SqlError::LOCKED && self.facts.watch.must_stop() {
            error = SqlError::cancelled(); // it has not waited any longer
        }
        // What ends the transaction must not be ended in its turn.
        let has_timed_out = self.facts.watch.finish();
        if has_timed_out && error.sqlstate == SqlError::CANCELLED {
            error.message = "canceling statement due to statement timeout".into();
        }
        error.encode(&mut out.buffer, Severity::Error);
        self.copying = None;
        match self.transaction.block {
            Block::Explicit => self.transaction.has_failed = true,
            Block::Implicit => self.roll_back(),
            Block::Idle => self.facts.settings().end_transaction(false),
        }
    }

    /// ReadyForQuery, after the settings that changed.
    fn ready(&mut self, out: &mut Output<'_>) {
        let mut settings = self.facts.settings();
        while let Some((name, value)) = settings.take_changed() {
            out.parameter_status(name, value);
        }
        drop(settings);
        encode_ready_for_query(&mut out.buffer, self.transaction.status());
    }

    fn sync(&mut self, out: &mut Output<'_>) -> Result<(), Failure> {
        self.is_skipping = false;
        let ended = match self.transaction.block {
            Block::Implicit => self.commit(),
            Block::Explicit => Ok(()),
            Block::Idle => {
                self.end_idle();
                Ok(())
            }
        };
        if let Err(error) = ended {
            self.fail(error, out);
        }
        self.ready(out);
        Ok(())
    }

    /// The end of a transaction that SQLite has committed by itself.
    fn end_idle(&mut self) {
        if self.unnamed_portal.is_some() || !self.portals.is_empty() {
            self.close_portals();
        }
        self.facts.settings().end_transaction(true);
    }

    fn commit(&mut self) -> SqlResult<()> {
        self.close_portals();
        self.savepoints.clear();
        let committed = self.transaction.commit();
        self.facts.settings().end_transaction(committed.is_ok());
        self.note_schema_change();
        committed
    }

    fn roll_back(&mut self) {
        self.close_portals();
        self.savepoints.clear();
        self.transaction.rollback();
        self.facts.settings().end_transaction(false);
        self.note_schema_change();
    }

    fn note_schema_change(&mut self) {
        if std::mem::take(&mut self.changed_schema) {
            self.common.schema_epoch.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn schema_epoch(&self) -> u64 {
        self.common.schema_epoch.load(Ordering::Acquire)
    }

    /// Closes the portals that end with their transaction.
    fn close_portals(&mut self) {
        if let Some(portal) = self.unnamed_portal.take() {
            self.spare_formats = portal.close();
        }
        if !self.portals.is_empty() {
            let (kept, ended): (HashMap<_, _>, HashMap<_, _>) =
                self.portals.drain().partition(|(_, portal)| portal.is_held);
            self.portals = kept;
            ended.into_values().for_each(|portal| drop(portal.close()));
        }
    }

    /// Closes the portals that were opened behind the savepoint at this place.
    fn close_portals_above(&mut self, place: usize) {
        if let Some(portal) = self.unnamed_portal.take_if(|portal| portal.depth > place) {
            self.spare_formats = portal.close();
        }
        let (kept, ended): (HashMap<_, _>, HashMap<_, _>) =
            self.portals.drain().partition(|(_, portal)| portal.depth <= place);
        self.portals = kept;
        ended.into_values().for_each(|portal| drop(portal.close()));
    }

    /// Whether one more portal that has a name, and takes so many bytes, may be kept.
    fn check_portals(&self, name: &[u8], bytes: usize) -> SqlResult<()> {
        if self.portals.contains_key(name) {
            let name = String::from_utf8_lossy(name);
            return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        if self.portals.len() >= PORTALS_MAX {
            return Err(SqlError::new("53000", "too many portals"));
        }
        let kept: usize = self.portals.values().map(|portal| portal.bytes).sum();
        // A single one is bounded by the length of messages.
        if kept > 0 && kept + bytes > PORTALS_BYTES_MAX {
            let mebibytes = PORTALS_BYTES_MAX >> 20;
            let message = format!("portals of a session would take more than {mebibytes} MiB");
            return Err(SqlError::new("54000", message));
        }
        Ok(())
    }

    /// A portal of a prepared statement, with no parameters bound yet.
    fn open_portal(&mut self, prepared: Rc<Prepared<'c>>) -> SqlResult<Portal<'c>> {
        let compiled = prepared.check_out(self.connection)?;
        let mut formats = std::mem::take(&mut self.spare_formats);
        formats.clear();
        let depth = self.savepoints.len();
        let bytes = prepared.bytes;
        Ok(Portal { prepared, compiled, formats, bytes, is_done: false, is_held: false, depth, asked: None })
    }
}

/// Whether a failed transaction lets this statement through.
fn ends_transaction(statement: &Statement) -> bool {
    matches!(statement, Statement::Utility(Utility::Commit | Utility::Rollback | Utility::RollbackTo(_)))
}
