//! Messages of a client that has been let in: each is booked on its unit, asked about, and forwarded or replaced.

use onetrip_ledger::{Moment, Statement, Steps, UnitKind};
use onetrip_sql::purity::is_harmless_parameter_type;
use onetrip_wire::Reader;
use onetrip_wire::pg::{
    Bind, Execute, Format, FrameHeader, HEADER_BYTES, Parse, StatementOrPortal, frontend,
};

use super::core::Core;
use super::{PARAMETERS_MAX, SMALL_LENGTH_MAX, Session};
use crate::contract::{INSPECT_BYTES_MAX, LENGTH_MAX, SOURCE_BYTES_MAX, SessionError, Verdict};
use crate::events::Event;
use crate::facts::Doubt;
use crate::reading::Effect;
use crate::remedies::cursors::Place;
use crate::remedies::statement_refused;
use crate::reply_queue::{Due, Expect, Taker};
use crate::services::Arrived;
use crate::statements::{PREPARED_BYTES_MAX, Parsed, Portal, Prepared, ResultFormats, Text};

/// Prepared statements whose texts are kept.
const SOURCES_MAX: usize = 4096;

impl Session {
    /// A message of a client that has been let in: booked, and forwarded as it came.
    pub(crate) fn handle_request(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        if self.core.is_passive {
            return self.pass_all(
                input,
                |session, input| session.watch_request(now, input),
                Self::goes_on_up,
            );
        }
        let Some(header) = self.client_frame(input, LENGTH_MAX)? else { return Ok(Verdict::Wait) };
        if self.acting.cursors.is_delivering() {
            return self.deliver_rest(now, header, input);
        }
        if self.is_held_back() {
            return Ok(Verdict::Hold);
        }
        let length = header.frame_len();
        if self.waits_for_more(header, input) {
            return Ok(Verdict::Wait);
        }
        let available = input.len().min(length);
        if self.is_fenced(now, input) {
            return Ok(Verdict::Hold);
        }
        if let Some(verdict) = self.answer(now, header, input)? {
            return Ok(verdict);
        }
        let place = self.restore_places(header, input)?;
        if place == Place::Wait {
            return Ok(Verdict::Hold);
        }
        self.tell(&Event::Followed);
        if !self.core.units.is_open() {
            self.core.begins_unit_alone =
                self.core.queue.owes_session_only() && self.core.units.unanswered() == 0;
        }
        let (body, is_whole) = self.inspected(header, input);
        if self.acting.statements.needs_broken(&self.core, header.tag, body) {
            return Err(statement_refused(&mut self.core));
        }
        self.book_request(now, header.tag, body, is_whole);
        self.request_passes(now, length, available);
        if place == Place::Restored {
            // Behind what restores it.
            self.core.to_server.extend_from_slice(&input[..available]);
        }
        self.follow(now, header.tag);
        Ok(if place == Place::Restored { Verdict::Replace(available) } else { Verdict::Forward(available) })
    }

    /// A message of a client where all remedies are off.
    fn watch_request(&mut self, now: Moment, input: &[u8]) -> Result<Verdict, SessionError> {
        let Some(header) = self.client_frame(input, LENGTH_MAX)? else { return Ok(Verdict::Wait) };
        if self.waits_for_more(header, input) {
            return Ok(Verdict::Wait);
        }
        let length = header.frame_len();
        let available = input.len().min(length);
        let (body, is_whole) = self.inspected(header, input);
        self.book_request(now, header.tag, body, is_whole);
        self.request_passes(now, length, available);
        Ok(Verdict::Forward(available))
    }

    /// Whether the next message of the same unit may pass at once.
    fn goes_on_up(&self, rest: &[u8]) -> bool {
        self.core.client_passing == 0
            && self.core.units.is_open()
            && matches!(FrameHeader::peek(rest, SMALL_LENGTH_MAX), Some(Ok(_)))
    }

    /// Whether more of the message at the front has to come before it is booked.
    fn waits_for_more(&self, header: FrameHeader, input: &[u8]) -> bool {
        let inspected = header.frame_len().min(INSPECT_BYTES_MAX);
        input.len() < inspected && is_inspected(header.tag) && !self.core.is_cut
    }

    /// What is looked into of the body of the message at the front, and whether that is all of it. It is no more than this, also
    /// where more has come: what is booked must not depend on the pieces it came in.
    fn inspected<'i>(&self, header: FrameHeader, input: &'i [u8]) -> (&'i [u8], bool) {
        let length = header.frame_len();
        let available = input.len().min(length);
        let is_whole = length <= INSPECT_BYTES_MAX && !(self.core.is_cut && available < length);
        (&input[HEADER_BYTES..available.min(INSPECT_BYTES_MAX)], is_whole)
    }

    /// So many bytes of a message that was booked go to the server.
    fn request_passes(&mut self, now: Moment, length: usize, available: usize) {
        self.core.units.bytes_sent(available);
        self.book_answered(now);
        self.core.client_passing = length - available;
    }

    /// Books a whole unit; `taker` takes the replies.
    pub(crate) fn book_unit(&mut self, now: Moment, unit: Arrived<'_>, taker: impl Into<Taker>) {
        self.core.taker = taker.into();
        for (tag, body) in unit.messages() {
            self.book_request(now, tag, body, true);
        }
        self.core.taker = Taker::Client;
    }

    pub(crate) fn book_request(&mut self, now: Moment, tag: u8, body: &[u8], is_whole: bool) {
        match tag {
            frontend::SYNC => self.core.in_group = false,
            frontend::PARSE
            | frontend::BIND
            | frontend::DESCRIBE
            | frontend::EXECUTE
            | frontend::CLOSE
            | frontend::FLUSH => self.core.in_group = true,
            _ => {}
        }
        match tag {
            frontend::QUERY => self.query(now, body),
            frontend::PARSE => self.parse(now, body, is_whole),
            frontend::BIND => self.bind(now, body, is_whole),
            frontend::DESCRIBE => self.describe(now, body),
            frontend::EXECUTE => self.execute(now, body),
            frontend::CLOSE => self.close_statement(now, body),
            frontend::SYNC => self.sync(now),
            frontend::FLUSH => self.flush(now),
            frontend::FUNCTION_CALL => {
                self.settle_unrun(now);
                if !self.core.is_passive && !self.acting.lobs.call_sent(&self.core) {
                    self.doubt_functions(Doubt::Called);
                    self.acting.cursors.code_runs(&self.facts);
                    self.forget(false);
                }
                self.function_call(now, body, is_whole);
            }
            frontend::COPY_DATA if self.core.queue.is_copying_in() => {
                self.core.units.open(now, UnitKind::CopyIn);
            }
            frontend::COPY_DONE | frontend::COPY_FAIL => self.copy_end(now),
            frontend::TERMINATE => self.client_left(now),
            _ => {}
        }
    }

    fn query(&mut self, now: Moment, body: &[u8]) {
        self.settle_unrun(now);
        let text = Reader::new(body).c_str();
        let is_whole = text.is_ok();
        self.tell(&Event::UnnamedStatementGone);
        let (unit, statement, mut text) = self.open_query(now, text.unwrap_or(body));
        if !is_whole {
            (text.effect, text.makes_cursor_code) = (Effect::MayDefine, true);
        }
        let leaves_savepoints = text.leaves_savepoints;
        self.tell(&Event::StatementSent { leaves_savepoints, is_prepared: false });
        self.deallocates(unit, &text);
        if !self.core.is_passive {
            text.effect = self.runs_beside_cursors(now, unit, &text, &[]);
            self.runs(now, text.effect, &text);
            self.acting.lobs.tells_prefetch(&self.core, unit, statement, &text);
        }
        self.owe(unit, Expect::Query, statement);
        self.core.units.close(None);
    }

    /// Books a simple query: its unit, not closed, its statement, and what its text tells. Whoever answers it is not yet
    /// told.
    pub(crate) fn open_query(&mut self, now: Moment, text: &[u8]) -> (u64, Option<u16>, Text) {
        let unit = self.core.units.open(now, UnitKind::Query);
        let text = self.read_text(text, false);
        if let Some(scope) = text.sets_scope {
            self.core.scopes.will_set(unit, scope);
        }
        let statement = self.add_statement(unit, &text, Steps::EXECUTE);
        self.core.units.add_parameters(unit, statement, &mut self.core.parameters);
        // A simple query ends the unnamed statement and portal.
        self.core.prepared.remove(b"");
        self.core.portals.remove(b"");
        self.tell(&Event::UnnamedPortalEnds);
        (unit, statement, text)
    }

    fn parse(&mut self, now: Moment, body: &[u8], is_whole: bool) {
        let unit = self.core.units.open(now, UnitKind::Group);
        let (name, text, parse) = match Parse::decode(body) {
            Ok(parse) => (parse.statement, parse.text, Some(parse)),
            Err(_) if !is_whole => {
                let mut reader = Reader::new(body);
                let name = reader.c_str();
                if name.is_err() && self.core.is_cut {
                    self.core.prepared.clear(); // any of them may be another now
                }
                // The text may be whole, and what comes behind it not.
                let text = reader.rest().split(|byte| *byte == 0).next().unwrap_or_default();
                (name.unwrap_or_default(), text, None)
            }
            Err(_) => return self.undecoded_request(unit, Expect::Parse),
        };
        if !name.is_empty() && !self.core.named_seen {
            self.core.named_seen = true;
            self.core.stream.statement_name(name);
            self.facts.names.used();
        }
        let is_kept = text.len() <= SOURCE_BYTES_MAX
            && self.core.prepared.len() < SOURCES_MAX
            && self.core.prepared.fits(text.len() + PREPARED_BYTES_MAX)
            && self.needs_facts();
        let source = is_kept.then(|| Box::from(text));
        let mut text = self.read_text(text, true);
        match parse {
            // A text that is not whole.
            None => (text.effect, text.makes_cursor_code) = (Effect::MayDefine, true),
            Some(parse) if parse.parameter_oids().all(is_harmless_parameter_type) => {}
            Some(_) => {
                text.effect = text.effect.max(Effect::Unknown);
                text.has_harmless_types = false;
            }
        }
        if !self.core.is_passive {
            self.acting.cursors.prepares(name, &text);
            if let Some(parse) = parse {
                self.watch_parse(now, unit, parse);
            }
            self.is_read(now, &text);
        }
        let types = parse.into_iter().flat_map(|parse| parse.parameter_oids());
        let leaves_savepoints = text.leaves_savepoints;
        self.tell(&Event::StatementSent { leaves_savepoints, is_prepared: true });
        let statement = self.add_statement(unit, &text, Steps::PREPARE);
        self.core.last_serial += 1;
        let serial = self.core.last_serial;
        let parsed = self.needs_facts().then(|| {
            Box::new(Parsed { source, span: self.span(), at: self.facts.changes().mark(), found: None })
        });
        let literals = self.core.parameters.hashes();
        let set = |prepared: &mut Prepared| {
            prepared.set(serial, text, types, literals);
            prepared.parsed = parsed;
            prepared.seen(unit);
        };
        self.core.prepared.change(name, set, Prepared::extra_bytes);
        if name.is_empty() && self.core.taker != Taker::Nobody {
            let parse = if is_whole && self.is_in_snapshot() { body } else { b"" };
            self.tell(&Event::UnnamedStatementMade { parse });
        }
        self.owe(unit, Expect::Parse, statement);
    }

    fn bind(&mut self, now: Moment, body: &[u8], is_whole: bool) {
        let unit = self.core.units.open(now, UnitKind::Group);
        let bind = match Bind::decode(body) {
            Ok(bind) => bind,
            Err(_) if !is_whole => return self.bind_unseen(unit, body),
            Err(_) => return self.undecoded_request(unit, Expect::Bind),
        };
        let Some(prepared) = self.core.prepared.get_mut(bind.statement) else {
            self.core.portals.remove(bind.portal);
            self.tell(&Event::PortalLeaves { name: bind.portal, unit });
            self.doubt_functions(Doubt::Called);
            self.unrun.read_unseen();
            // If there is such a statement, its Execute is counted as not told apart.
            let statement = Statement { steps: Steps::BIND, ..Statement::default() };
            let statement = self.core.units.add_statement(unit, statement);
            return self.owe(unit, Expect::Bind, statement);
        };
        prepared.seen(unit);
        let (mut text, serial, types) = (prepared.text.clone(), prepared.serial, prepared.types.clone());
        if bind.portal.is_empty() && self.core.taker != Taker::Nobody {
            self.tell(&Event::UnnamedPortalMade);
        }
        if text.effect == Effect::Read && !self.is_as_parsed(now, bind.statement) {
            text.effect = Effect::Unknown;
        }
        self.is_read(now, &text);
        let statement = self.reuse_or_add(unit, &text, Steps::BIND);
        self.read_parameters(&bind, text.template);
        self.core.units.add_parameters(unit, statement, &mut self.core.parameters);
        let formats = ResultFormats::new(bind.result_formats.codes());
        self.tell(&Event::PortalLeaves { name: bind.portal, unit });
        let booked = statement.map(|slot| (unit, slot));
        self.core.portals.put(bind.portal, Portal { text, serial, types, booked, formats }, 0);
        self.owe(unit, Expect::Bind, statement);
    }

    /// Hashes the values that a Bind gives, and those in the text of its statement.
    fn read_parameters(&mut self, bind: &Bind<'_>, template: u32) {
        let Self { core: Core { prepared, learned, values, parameters, .. }, config, .. } = self;
        parameters.clear();
        let Some(prepared) = prepared.get(bind.statement) else { return };
        let learned = learned.get(template as usize);
        for (position, value) in bind.parameters.iter().enumerate().take(PARAMETERS_MAX) {
            let fixed = prepared.types.get(position).copied().filter(|oid| *oid != 0);
            let told = || learned.and_then(|learned| learned.types.get(position).copied());
            let oid = fixed.or_else(told).unwrap_or(0);
            let format = bind.parameter_formats.of(position);
            let shown = if format == Format::Text { value.unwrap_or(b"NULL") } else { b"(binary)" };
            parameters.push(values.parameter(value, oid, format), shown, config.keep_values);
        }
        for hash in &prepared.literals {
            parameters.push(*hash, b"(in the text)", config.keep_values);
        }
    }

    /// A Bind so long that its parameters pass by unseen.
    fn bind_unseen(&mut self, unit: u64, body: &[u8]) {
        let mut reader = Reader::new(body);
        let portal = reader.c_str().unwrap_or_default();
        let name = reader.c_str();
        let is_named = name.is_ok() || !self.core.is_cut;
        let known = self.core.prepared.get(name.unwrap_or_default()).filter(|_| is_named);
        let prepared = known.cloned().unwrap_or_default();
        self.tell(&Event::PortalLeaves { name: portal, unit });
        self.doubt_functions(Doubt::Called);
        self.unrun.read_unseen();
        let statement = self.reuse_or_add(unit, &prepared.text, Steps::BIND);
        let booked = statement.map(|slot| (unit, slot));
        // Its formats are not seen, so that nothing can be said of its result.
        self.core.portals.put(portal, Portal { text: prepared.text, booked, ..Portal::default() }, 0);
        self.owe(unit, Expect::Bind, statement);
    }

    fn describe(&mut self, now: Moment, body: &[u8]) {
        let unit = self.core.units.open(now, UnitKind::Group);
        let (found, expect) = match StatementOrPortal::decode(body) {
            Ok(StatementOrPortal::Statement(name)) => {
                if !self.core.is_passive {
                    self.acting.statements.watching().sees_describe(&self.core, unit, name);
                }
                let found =
                    self.core.prepared.get(name).map(|prepared| (prepared.text.clone(), prepared.serial));
                (found, Expect::DescribeStatement)
            }
            Ok(StatementOrPortal::Portal(name)) => {
                let found = self.core.portals.get(name).map(|portal| (portal.text.clone(), portal.serial));
                (found, Expect::DescribePortal)
            }
            Err(_) => return self.undecoded_request(unit, Expect::DescribePortal),
        };
        let (text, serial) = found.unwrap_or_default();
        if expect == Expect::DescribeStatement {
            // It is read anew if its tables have changed (`RevalidateCachedQuery`).
            self.is_read(now, &text);
        }
        let statement = self.reuse_or_add(unit, &text, Steps::DESCRIBE);
        if let Some(run) = statement.and_then(|slot| self.core.units.run_mut(unit, slot)) {
            run.serial = serial;
        }
        self.owe(unit, expect, statement);
    }

    fn execute(&mut self, now: Moment, body: &[u8]) {
        let unit = self.core.units.open(now, UnitKind::Group);
        let Ok(execute) = Execute::decode(body) else { return self.undecoded_request(unit, Expect::Execute) };
        let (text, formats, booked, types) = match self.core.portals.get_mut(execute.portal) {
            Some(portal) => (portal.text.clone(), portal.formats, portal.booked.take(), portal.types.clone()),
            None => Default::default(),
        };
        // The first run of a portal belongs to its Bind; a later one fetches more of the same result.
        let booked = booked.filter(|(booked, _)| *booked == unit);
        let statement = match booked {
            Some((_, slot)) => Some(slot),
            None => self.add_statement(unit, &text, Steps::default()),
        };
        self.deallocates(unit, &text);
        if !self.core.is_passive {
            self.unrun.run(&text);
            let effect = self.runs_beside_cursors(now, unit, &text, &types);
            self.executes_natively(now, unit, execute.portal, execute.row_limit);
            self.runs(now, effect, &text);
            self.acting.lobs.tells_prefetch(&self.core, unit, statement, &text);
        }
        if let Some(scope) = text.sets_scope {
            self.core.scopes.will_set(unit, scope);
        }
        if let Some(found) = statement.and_then(|slot| self.statement_mut(unit, slot)) {
            found.steps |= Steps::EXECUTE;
            if let Some(limit) = execute.row_limit {
                found.row_limit = limit.get();
            }
        }
        if let Some(run) = statement.and_then(|slot| self.core.units.run_mut(unit, slot)) {
            run.formats = formats;
        }
        self.owe(unit, Expect::Execute, statement);
    }

    fn close_statement(&mut self, now: Moment, body: &[u8]) {
        let unit = self.core.units.open(now, UnitKind::Group);
        match StatementOrPortal::decode(body) {
            Ok(StatementOrPortal::Statement(name)) => {
                let text =
                    self.core.prepared.get(name).map(|prepared| prepared.text.clone()).unwrap_or_default();
                let statement = self.add_statement(unit, &text, Steps::CLOSE);
                self.core.prepared.remove(name);
                self.owe(unit, Expect::Close, statement);
            }
            Ok(StatementOrPortal::Portal(name)) => {
                self.core.portals.remove(name);
                self.tell(&Event::PortalLeaves { name, unit });
                self.owe(unit, Expect::Close, None);
            }
            Err(_) => self.undecoded_request(unit, Expect::Close),
        }
    }

    fn sync(&mut self, now: Moment) {
        let unit = self.core.units.open(now, UnitKind::Group);
        if self.core.queue.is_copying_in() {
            return; // the server ignores it, and the unit goes on
        }
        self.settle_unrun(now);
        self.owe(unit, Expect::Sync, None);
        self.core.units.close(None);
    }

    fn flush(&mut self, now: Moment) {
        self.settle_unrun(now);
        if self.core.units.is_open() && !self.core.queue.is_copying_in() {
            self.core.units.close(Some(UnitKind::FlushedGroup));
        }
    }

    fn copy_end(&mut self, now: Moment) {
        if !self.core.queue.is_copying_in() {
            return self.core.queue.copy_ended();
        }
        self.core.units.open(now, UnitKind::CopyIn);
        self.core.queue.copy_ended();
        // COPY by a simple query is answered now; in an extended group the client's Sync ends the unit.
        if self.core.queue.front().is_some_and(|front| front.expect == Expect::Query) {
            self.core.units.close(None);
        }
    }

    /// Owes a reply for a message, unless the server skips it after an error.
    pub(crate) fn owe(&mut self, unit: u64, expect: Expect, statement: Option<u16>) {
        if self.core.taker == Taker::Nobody {
            return;
        }
        let mut due = Due { taker: self.core.taker, ..Due::of_client(expect, unit, statement) };
        let is_watched = !self.core.is_passive;
        if is_watched {
            due.lesson = self.acting.statements.watching().lesson_of(&due);
        }
        if !self.core.queue.sent(due) {
            if is_watched {
                self.acting.statements.watching().skipped(&due);
            }
            self.facts.names.skipped(&due);
            self.mark_skipped(due);
            return;
        }
        if !due.is_own() {
            self.core.units.owes(unit);
        }
    }

    pub(crate) fn undecoded_request(&mut self, unit: u64, expect: Expect) {
        self.core.undecoded += 1;
        self.owe(unit, expect, None);
    }

    /// Adds a statement to a unit; `None` where the unit has more than can be told apart.
    pub(crate) fn add_statement(&mut self, unit: u64, text: &Text, steps: Steps) -> Option<u16> {
        let Core { names, prepared, portals, .. } = &self.core;
        let may_be_left_out = names.leaves_out_templates() || prepared.leaves_out() || portals.leaves_out();
        let is_left_out = names.leaves_out_results() || text.template == 0 && may_be_left_out;
        if let Some(exchange) = self.core.units.exchange_mut(unit) {
            if text.scope != 0 {
                exchange.scope = text.scope;
            }
            if text.request != 0 {
                exchange.request = text.request;
            }
            exchange.cut.untold += u64::from(is_left_out);
        }
        let statement =
            Statement { template: text.template, steps, row_limit: text.row_limit, ..Statement::default() };
        self.core.units.add_statement(unit, statement)
    }

    /// The unit's last statement, if it is this one on its way from Parse to Execute; else a new one.
    fn reuse_or_add(&mut self, unit: u64, text: &Text, steps: Steps) -> Option<u16> {
        if let Some(exchange) = self.core.units.exchange_mut(unit) {
            let slot = exchange.statements.len().checked_sub(1);
            if let Some(last) = exchange.statements.last_mut() {
                let is_over = last.steps.has(Steps::EXECUTE) || last.steps.has(Steps::CLOSE);
                let binds_again = last.steps.has(Steps::BIND) && steps == Steps::BIND;
                if last.template == text.template && !is_over && !binds_again {
                    last.steps |= steps;
                    return slot.and_then(|slot| u16::try_from(slot).ok());
                }
            }
        }
        self.add_statement(unit, text, steps)
    }

    /// A statement of a live unit.
    pub(crate) fn statement_mut(&mut self, unit: u64, slot: u16) -> Option<&mut Statement> {
        self.core.statement_mut(unit, slot)
    }
}

/// Whether a message's body is looked into, and so worth waiting for.
fn is_inspected(tag: u8) -> bool {
    matches!(
        tag,
        frontend::QUERY
            | frontend::PARSE
            | frontend::BIND
            | frontend::DESCRIBE
            | frontend::EXECUTE
            | frontend::CLOSE
            | frontend::FUNCTION_CALL
    )
}
