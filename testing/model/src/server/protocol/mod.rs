//! Messages of one client, and what they are answered by.

mod shown;
mod unasked;

use std::sync::Arc;

use onetrip_wire::pg::{
    Bind, Execute, Formats, FrameHeader, HEADER_BYTES, Parse, StatementOrPortal, backend, frame, frontend,
};

use super::analysis::{analyze, describe};
use super::backend::{Backend, Output, Portal, PortalState, Prepared, Turn, World};
use super::failure::{Failure, put_warning};
use super::parser::parse;
use super::replies::{parameters, put_rows};
use super::settings::Settings;
use super::statements::{done, ends_transaction};
use super::syntax::Statement;
use super::transaction::{Block, Transaction};

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) backend: Backend,
    input: Vec<u8>,
    out: Vec<u8>,
    /// What has left the server's buffer.
    pub(crate) said: Vec<u8>,
    is_let_in: bool,
    pub(crate) has_ended: bool,
    /// Behind an error, up to the next Sync.
    skips: bool,
    /// The simple query that is being run: its statements, and how many are done.
    query: Option<(Vec<Arc<Prepared>>, usize)>,
    pub(crate) blocked: Option<Blocked>,
    /// Statements that were run; those that start and end transactions are among them.
    pub(crate) ran: u64,
    /// What the server's configuration says since the last message.
    pub(crate) configured: Option<(&'static str, &'static str)>,
    /// It is to hear of a notification.
    pub(crate) is_notified: bool,
    /// It was opened with the parameter replication.
    replicates: bool,
    /// Behind a pooler: what its transaction has begun with.
    took: Option<Settings>,
    /// Since when nothing was heard of it in a transaction, in nanoseconds.
    idle_since: Option<u64>,
}

/// A message that waits.
#[derive(Debug)]
pub(crate) struct Blocked {
    /// For these sessions.
    pub(crate) by: Vec<usize>,
    /// In nanoseconds.
    pub(crate) since: u64,
    /// Whose turn it is first.
    pub(crate) turn: u64,
}

type Handled = Result<Turn<()>, Failure>;

impl Connection {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            backend: Backend::new(number),
            input: Vec::new(),
            out: Vec::new(),
            said: Vec::new(),
            is_let_in: false,
            has_ended: false,
            skips: false,
            query: None,
            blocked: None,
            ran: 0,
            configured: None,
            is_notified: false,
            replicates: false,
            took: None,
            idle_since: None,
        }
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Whether the last thing asked for was not a Sync or a simple query.
    pub(crate) fn is_idle(&self) -> bool {
        self.input.is_empty() && self.blocked.is_none()
    }

    /// Takes messages until there is none, or one that waits.
    pub(crate) fn advance(&mut self, world: &mut World) {
        if !self.is_let_in {
            self.let_in(world);
        }
        while !self.has_ended && self.is_let_in {
            let Some(Ok(header)) = FrameHeader::peek(&self.input, u32::MAX) else { return };
            let length = header.frame_len();
            if self.input.len() < length {
                return;
            }
            let message: Vec<u8> = self.input[..length].to_vec();
            if let Some((name, value)) = self.configured.take() {
                self.backend.settings.configure(name, value, world.now);
            }
            self.idle_since = None;
            self.hear_notification();
            if let Some(shared) = world.faults.shared.as_ref().filter(|_| self.backend.transaction.is_none())
            {
                self.backend.settings.go_on_as(shared);
                self.took = Some(shared.clone());
            }
            let was = self.blocked.take();
            match self.handle(world, header.tag, &message[HEADER_BYTES..]) {
                Ok(Turn::Done(())) => {}
                Ok(Turn::Blocked(by)) => {
                    let (since, turn) =
                        was.map_or_else(|| (world.now, world.turn()), |was| (was.since, was.turn));
                    self.blocked = Some(Blocked { by, since, turn });
                    return;
                }
                Err(failure) => self.fail(world, header.tag, &failure),
            }
            self.input.drain(..length);
        }
    }

    /// The message that waits fails.
    pub(crate) fn fail_blocked(&mut self, world: &mut World, failure: &Failure) {
        self.blocked = None;
        let Some(Ok(header)) = FrameHeader::peek(&self.input, u32::MAX) else { return };
        let message: Vec<u8> = self.input.drain(..header.frame_len()).collect();
        self.leave_waiting(header.tag, &message[HEADER_BYTES..]);
        self.fail(world, header.tag, failure);
    }

    fn let_in(&mut self, world: &World) {
        let Some(length) = self.input.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize)
        else {
            return;
        };
        if self.input.len() < length {
            return;
        }
        let startup: Vec<u8> = self.input.drain(..length).collect();
        const REPLICATION: &[u8] = b"replication\0database\0";
        self.replicates = startup.windows(REPLICATION.len()).any(|word| word == REPLICATION);
        self.is_let_in = true;
        self.backend.stands_by = world.faults.stands_by;
        frame(&mut self.out, backend::AUTHENTICATION, |out| out.extend_from_slice(&[0; 4]));
        for (name, value) in [
            ("in_hot_standby", if world.faults.stands_by { "on" } else { "off" }),
            ("client_encoding", "UTF8"),
            ("server_encoding", "UTF8"),
            ("standard_conforming_strings", "on"),
            ("integer_datetimes", "on"),
            ("server_version", "15.0"),
        ] {
            self.put_parameter(name, value);
        }
        let number = self.backend.number as u32;
        frame(&mut self.out, backend::BACKEND_KEY_DATA, |out| {
            out.extend_from_slice(&number.to_be_bytes());
            out.extend_from_slice(b"keys");
        });
        self.get_ready(world.now);
    }

    fn put_parameter(&mut self, name: &str, value: &str) {
        frame(&mut self.out, backend::PARAMETER_STATUS, |out| {
            out.extend_from_slice(&[name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        });
    }

    fn get_ready(&mut self, now: u64) {
        self.idle_since = self.backend.is_in_block().then_some(now);
        for (name, value) in self.backend.settings.changes() {
            self.put_parameter(name, &value);
        }
        let status = self.backend.status();
        frame(&mut self.out, backend::READY_FOR_QUERY, |out| out.push(status));
        self.said.append(&mut self.out);
    }

    fn fail(&mut self, world: &mut World, tag: u8, failure: &Failure) {
        failure.encode(&mut self.out);
        self.backend.fail(world);
        self.query = None;
        if matches!(tag, frontend::QUERY | frontend::SYNC) {
            self.share_settings(world);
            self.get_ready(world.now);
        } else {
            self.skips = true;
            // What is left of the group is skipped, a Flush as well; errors are flushed by themselves.
            self.said.append(&mut self.out);
        }
    }

    fn handle(&mut self, world: &mut World, tag: u8, body: &[u8]) -> Handled {
        if self.skips && !matches!(tag, frontend::SYNC | frontend::TERMINATE) {
            return Ok(Turn::Done(()));
        }
        let is_extended = matches!(
            tag,
            frontend::PARSE | frontend::BIND | frontend::EXECUTE | frontend::DESCRIBE | frontend::CLOSE
        );
        if self.replicates && is_extended {
            let text = "extended query protocol not supported in a replication connection";
            return Err(Failure::new("08P01", text));
        }
        let broken = |_| Failure::new("08P01", "invalid message format");
        match tag {
            frontend::QUERY => return self.query(world, &body[..body.len().saturating_sub(1)]),
            frontend::PARSE => return self.parse(world, Parse::decode(body).map_err(broken)?),
            frontend::BIND => return self.bind(world, &Bind::decode(body).map_err(broken)?),
            frontend::EXECUTE => return self.execute(world, &Execute::decode(body).map_err(broken)?),
            frontend::DESCRIBE => {
                self.describe(StatementOrPortal::decode(body).map_err(broken)?, world.is_wide)?
            }
            frontend::CLOSE => {
                match StatementOrPortal::decode(body).map_err(broken)? {
                    StatementOrPortal::Statement(name) => drop(self.backend.prepared.remove(name)),
                    StatementOrPortal::Portal(name) => drop(self.backend.portals.remove(name)),
                }
                self.put(backend::CLOSE_COMPLETE);
            }
            frontend::SYNC => {
                self.skips = false;
                if !self.backend.is_in_block() {
                    self.backend.commit(world)?;
                }
                self.share_settings(world);
                self.get_ready(world.now);
            }
            frontend::FLUSH => self.said.append(&mut self.out),
            frontend::TERMINATE => {
                self.backend.roll_back(world);
                world.advisory.retain(|_, holder| *holder != self.backend.number);
                self.has_ended = true;
            }
            _ => return Err(Failure::unknown("this message")),
        }
        Ok(Turn::Done(()))
    }

    fn put(&mut self, tag: u8) {
        frame(&mut self.out, tag, |_| ());
    }

    fn parse(&mut self, world: &mut World, message: Parse<'_>) -> Handled {
        if message.statement.is_empty() {
            self.backend.prepared.remove(message.statement);
        }
        self.backend.transaction();
        let mut statements = self.read(message.text)?;
        if statements.len() > 1 {
            let text = "cannot insert multiple commands into a prepared statement";
            return Err(Failure::new("42601", text));
        }
        let statement = statements.pop();
        if let Some(statement) = &statement {
            if self.backend.has_failed() && !ends_transaction(Some(statement)) {
                return Err(Failure::aborted());
            }
            done!(self.backend.lock_for(world, statement));
        }
        let declared: Vec<u32> = message.parameter_oids().collect();
        let analyzed = match &statement {
            Some(statement) => analyze(statement, &declared, world.is_wide)?,
            None => Default::default(),
        };
        if !message.statement.is_empty() && self.backend.prepared.contains_key(message.statement) {
            let name = String::from_utf8_lossy(message.statement);
            return Err(Failure::new("42P05", format!("prepared statement \"{name}\" already exists")));
        }
        let prepared = Arc::new(Prepared { statement, analyzed });
        self.backend.prepared.insert(message.statement.to_vec(), prepared);
        self.put(backend::PARSE_COMPLETE);
        Ok(Turn::Done(()))
    }

    /// The statements of a text. In a transaction that has failed, names are not looked up.
    fn read(&self, text: &[u8]) -> Result<Vec<Statement>, Failure> {
        let is_syntax = |failure: &Failure| failure.sqlstate == "42601";
        parse(&String::from_utf8_lossy(text)).map_err(|failure| match self.backend.has_failed() {
            true if !is_syntax(&failure) => Failure::aborted(),
            _ => failure,
        })
    }

    fn bind(&mut self, world: &mut World, bind: &Bind<'_>) -> Handled {
        let prepared = self.statement(bind.statement)?;
        self.backend.transaction();
        prepared.is_as_parsed(world.is_wide)?;
        let kinds = prepared.analyzed.parameters.clone();
        if kinds.len() != bind.parameters.len() {
            let (given, wanted) = (bind.parameters.len(), kinds.len());
            let text =
                format!("bind message supplies {given} parameters, but the statement requires {wanted}");
            return Err(Failure::new("08P01", text));
        }
        if self.backend.has_failed() && (!ends_transaction(prepared.statement.as_ref()) || !kinds.is_empty())
        {
            return Err(Failure::aborted());
        }
        if !bind.portal.is_empty() && self.backend.portals.contains_key(bind.portal) {
            let name = String::from_utf8_lossy(bind.portal);
            return Err(Failure::new("42P03", format!("cursor \"{name}\" already exists")));
        }
        self.backend.portals.remove(bind.portal);
        let parameters = parameters(bind, &kinds)?;
        if let Some(statement) = &prepared.statement {
            done!(self.backend.lock_for(world, statement));
        }
        let state = match &prepared.statement {
            Some(Statement::Select(select)) if !select.acts() => {
                let mut output = done!(self.backend.select(world, select, &parameters, &kinds));
                output.columns = prepared.analyzed.columns.as_deref().map(Arc::from);
                PortalState::Rows { output, at: 0, at_end: false }
            }
            _ => PortalState::Ready,
        };
        // It is refused when it starts, and the portal is there by then.
        let refused = match &prepared.statement {
            Some(Statement::Select(select)) if select.locks => {
                self.backend.refuse_read_only("SELECT FOR UPDATE").err()
            }
            _ => None,
        };
        let formats = bind.result_formats.codes().to_vec();
        let depth = self.backend.depth();
        let (holds, is_held, goes_back) = (false, false, false);
        let portal = Portal { prepared, parameters, formats, state, depth, holds, is_held, goes_back };
        self.backend.portals.insert(bind.portal.to_vec(), portal);
        if let Some(failure) = refused {
            return Err(failure);
        }
        self.put(backend::BIND_COMPLETE);
        Ok(Turn::Done(()))
    }

    fn statement(&self, name: &[u8]) -> Result<Arc<Prepared>, Failure> {
        let missing = || {
            let shown = String::from_utf8_lossy(name);
            let text = match name {
                b"" => "unnamed prepared statement does not exist".to_owned(),
                _ => format!("prepared statement \"{shown}\" does not exist"),
            };
            Failure::new("26000", text)
        };
        self.backend.prepared.get(name).cloned().ok_or_else(missing)
    }

    fn describe(&mut self, what: StatementOrPortal<'_>, is_wide: bool) -> Result<(), Failure> {
        let has_failed = self.backend.has_failed();
        match what {
            StatementOrPortal::Statement(name) => {
                let prepared = self.statement(name)?;
                self.backend.transaction();
                prepared.is_as_parsed(is_wide)?;
                if has_failed && prepared.analyzed.columns.is_some() {
                    return Err(Failure::aborted());
                }
                frame(&mut self.out, backend::PARAMETER_DESCRIPTION, |out| {
                    let kinds = &prepared.analyzed.parameters;
                    out.extend_from_slice(&(kinds.len() as u16).to_be_bytes());
                    kinds.iter().for_each(|kind| out.extend_from_slice(&kind.oid().to_be_bytes()));
                });
                describe(prepared.analyzed.columns.as_deref(), Formats::default(), &mut self.out);
            }
            StatementOrPortal::Portal(name) => {
                self.backend.transaction();
                let portal = self.backend.portals.get(name).ok_or_else(|| no_portal(name))?;
                let fetched = fetched(&self.backend, &portal.prepared);
                let columns = fetched.as_ref().unwrap_or(&portal.prepared);
                if has_failed && columns.analyzed.columns.is_some() {
                    return Err(Failure::aborted());
                }
                describe(
                    columns.analyzed.columns.as_deref(),
                    Formats::of_codes(&portal.formats),
                    &mut self.out,
                );
            }
        }
        Ok(())
    }

    fn execute(&mut self, world: &mut World, execute: &Execute<'_>) -> Handled {
        let portal = self.backend.portals.get(execute.portal).ok_or_else(|| no_portal(execute.portal))?;
        let prepared = Arc::clone(&portal.prepared);
        let is_released = matches!(portal.state, PortalState::Released);
        if prepared.statement.is_none() {
            self.put(backend::EMPTY_QUERY_RESPONSE);
            return Ok(Turn::Done(()));
        }
        self.backend.transaction();
        if self.backend.has_failed() && (is_released || !ends_transaction(prepared.statement.as_ref())) {
            return Err(Failure::aborted());
        }
        let savepoint = self.backend.transaction.as_ref().and_then(Transaction::innermost);
        let Some(portal) = self.backend.portals.get_mut(execute.portal) else { return Ok(Turn::Done(())) };
        match &portal.state {
            // A piece is behind the first one.
            PortalState::Rows { at: 1.., .. } => {
                if let Err(failure) = world.faults.admits_piece(savepoint) {
                    portal.state = PortalState::Failed;
                    return Err(failure);
                }
            }
            PortalState::Rows { .. } => {}
            PortalState::Ready => {
                let parameters = portal.parameters.clone();
                let output = match self.backend.run(world, &prepared, &parameters) {
                    Ok(Turn::Done(output)) => output,
                    Ok(Turn::Blocked(by)) => return Ok(Turn::Blocked(by)),
                    // In a transaction that had failed before, it keeps its statement.
                    Err(failure) if self.backend.has_failed() => {
                        let portal = self.backend.portals.get_mut(execute.portal);
                        portal.into_iter().for_each(|portal| portal.state = PortalState::Failed);
                        return Err(failure);
                    }
                    Err(failure) => return Err(failure),
                };
                if output.columns.is_none() {
                    if let Some(portal) = self.backend.portals.get_mut(execute.portal) {
                        portal.state = PortalState::Done;
                    }
                    self.ran += 1;
                    self.put_end(&output, 0);
                    return Ok(Turn::Done(()));
                }
                if let Some(portal) = self.backend.portals.get_mut(execute.portal) {
                    portal.state = PortalState::Rows { output, at: 0, at_end: false };
                }
            }
            PortalState::Done | PortalState::Failed | PortalState::Released => {
                let name = String::from_utf8_lossy(execute.portal);
                return Err(Failure::new("55000", format!("portal \"{name}\" cannot be run")));
            }
        }
        self.ran += 1;
        self.put_rows(execute)?;
        Ok(Turn::Done(()))
    }

    /// The next rows of a portal.
    fn put_rows(&mut self, execute: &Execute<'_>) -> Result<(), Failure> {
        let zone = self.backend.settings.zone_hours();
        let Some(portal) = self.backend.portals.get_mut(execute.portal) else { return Ok(()) };
        let PortalState::Rows { output, at, at_end } = &mut portal.state else { return Ok(()) };
        let limit = execute.row_limit.map_or(usize::MAX, |limit| limit.get() as usize);
        let count = limit.min(output.rows.len() - *at);
        put_rows(&mut self.out, &output.clone(), *at..*at + count, &portal.formats, zone);
        *at += count;
        let table = portal.prepared.statement.as_ref().and_then(Statement::read_from);
        if let (Some(table), Some(transaction)) = (table, &mut self.backend.transaction) {
            transaction.fetched(table, *at);
        }
        if count == limit {
            self.put(backend::PORTAL_SUSPENDED);
            return Ok(());
        }
        if let Some(failure) = output.failure.clone() {
            portal.state = PortalState::Failed;
            return Err(failure);
        }
        *at_end = true;
        let output = Output { tag: output.tag.clone(), warning: output.warning, ..Output::default() };
        self.put_end(&output, count);
        Ok(())
    }

    fn put_end(&mut self, output: &Output, count: usize) {
        if let Some(warning) = output.warning {
            put_warning(warning, &mut self.out);
        }
        let tag = match output.tag.as_str() {
            counted @ ("SELECT" | "FETCH") => format!("{counted} {count}"),
            fixed => fixed.to_owned(),
        };
        frame(&mut self.out, backend::COMMAND_COMPLETE, |out| {
            out.extend_from_slice(&[tag.as_bytes(), b"\0"].concat());
        });
    }

    fn query(&mut self, world: &mut World, text: &[u8]) -> Handled {
        if self.query.is_none() {
            self.backend.prepared.remove(&b""[..]);
            let statements = self.read(text)?;
            if statements.is_empty() {
                self.put(backend::EMPTY_QUERY_RESPONSE);
                self.get_ready(world.now);
                return Ok(Turn::Done(()));
            }
            // Names were resolved when the text was read; types are found out statement by statement.
            let prepare =
                |statement| Arc::new(Prepared { statement: Some(statement), analyzed: Default::default() });
            self.query = Some((statements.into_iter().map(prepare).collect(), 0));
        }
        while let Some((statements, at)) = &self.query {
            let Some(prepared) = statements.get(*at).cloned() else { break };
            let (is_one, is_last) = (statements.len() == 1, at + 1 == statements.len());
            done!(self.query_statement(world, &prepared, is_one, is_last));
            self.query.as_mut().into_iter().for_each(|(_, at)| *at += 1);
        }
        self.query = None;
        self.share_settings(world);
        self.get_ready(world.now);
        Ok(Turn::Done(()))
    }

    fn query_statement(
        &mut self,
        world: &mut World,
        prepared: &Prepared,
        is_one: bool,
        is_last: bool,
    ) -> Handled {
        let Some(statement) = &prepared.statement else { return Ok(Turn::Done(())) };
        if self.backend.has_failed() && !ends_transaction(Some(statement)) {
            return Err(Failure::aborted());
        }
        let transaction = self.backend.transaction();
        if transaction.block == Block::Single && !is_one {
            transaction.block = Block::Implicit;
        }
        let analyzed = analyze(statement, &[], world.is_wide)?;
        let columns = match fetched(&self.backend, prepared) {
            Some(cursor) => cursor.analyzed.columns.clone(),
            None => analyzed.columns.clone(),
        };
        self.backend.portals.remove(&b""[..]);
        let prepared = Prepared { statement: Some(statement.clone()), analyzed };
        let output = match self.backend.run(world, &prepared, &[]) {
            Ok(Turn::Done(output)) => output,
            Ok(Turn::Blocked(by)) => return Ok(Turn::Blocked(by)),
            Err(failure) => {
                self.leave_failed(prepared);
                return Err(failure);
            }
        };
        self.ran += 1;
        let (count, zone) = (output.rows.len(), self.backend.settings.zone_hours());
        let table = prepared.statement.as_ref().and_then(Statement::read_from);
        if let (Some(table), Some(transaction)) = (table, &mut self.backend.transaction) {
            transaction.fetched(table, count);
        }
        if let Some(columns) = &columns {
            describe(Some(columns), Formats::default(), &mut self.out);
            let output = Output { columns: Some(columns.as_slice().into()), ..output.clone() };
            put_rows(&mut self.out, &output, 0..count, &[], zone);
        }
        if let Some(failure) = output.failure {
            self.leave_failed(prepared);
            return Err(failure);
        }
        if is_last && !self.backend.is_in_block() {
            self.backend.commit(world)?;
        }
        self.put_end(&output, count);
        Ok(Turn::Done(()))
    }

    /// A simple query that fails when it is run, not before, leaves its portal.
    fn leave_failed(&mut self, prepared: Prepared) {
        // What depends on no row, and does nothing, fails when it is planned.
        let is_run = |statement: &Statement| !matches!(statement, Statement::Select(select) if select.table.is_none() && !select.acts());
        if !self.backend.is_in_block() || !prepared.statement.as_ref().is_some_and(is_run) {
            return;
        }
        let portal = Portal {
            prepared: Arc::new(prepared),
            parameters: Vec::new(),
            formats: Vec::new(),
            state: PortalState::Failed,
            depth: self.backend.depth(),
            holds: false,
            is_held: false,
            goes_back: false,
        };
        self.backend.portals.insert(Vec::new(), portal);
    }
}

/// What a FETCH gives rows of.
fn fetched(backend: &Backend, prepared: &Prepared) -> Option<Arc<Prepared>> {
    match &prepared.statement {
        Some(Statement::Fetch { name, is_move: false, .. }) => {
            backend.portals.get(name.as_bytes()).map(|portal| Arc::clone(&portal.prepared))
        }
        _ => None,
    }
}

fn no_portal(name: &[u8]) -> Failure {
    Failure::new("34000", format!("portal \"{}\" does not exist", String::from_utf8_lossy(name)))
}
