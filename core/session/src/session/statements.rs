//! How `statements` is asked: which Parse is answered, what goes behind it, and what is learned of all.

use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::is_harmless_parameter_type;
use onetrip_wire::pg::{
    Bind, ParameterDescription, Parse, TransactionStatus as WireStatus, backend, encode_ready_for_query,
    frame, frontend,
};

use super::Session;
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::facts::Verdict as Proof;
use crate::facts::common::{Description, key};
use crate::reading::{Effect, place_of};
use crate::remedies::statement_refused;
use crate::remedies::statements::{Behind, Prepare, Sent, bound, parse_with};
use crate::remedies::watching::is_read_as_told;
use crate::reply_queue::{Due, Expect, Reply, Taker};
use crate::rules::Rule;
use crate::services::Arrived;
use crate::services::inquiries::Question;
use crate::statements::{Prepared, Text};

impl Session {
    /// What becomes of a unit behind a statement that was told and is not confirmed (rules S2 and S6).
    pub(crate) fn behind_told(&mut self, now: Moment, input: &[u8]) -> Result<Option<Verdict>, SessionError> {
        match self.acting.statements.behind(input) {
            Behind::Free => return Ok(None),
            Behind::Hold => return Ok(Some(Verdict::Hold)),
            Behind::Runs(unit) => return Ok(Some(self.send_behind(now, unit))),
            Behind::Broken => {}
        }
        let unit = Arrived::peek(input);
        if let Some((unit, name)) = unit.and_then(|unit| Some((unit, bound(unit)?))) {
            if let Some(verdict) = self.run_broken(now, unit, name) {
                return Ok(Some(verdict));
            }
        }
        if self.acting.statements.is_ahead_failed() && input.first() != Some(&frontend::TERMINATE) {
            return Err(statement_refused(&mut self.core));
        }
        Ok(None)
    }

    /// Answers the unit in `input` if it prepares a statement that is known.
    pub(crate) fn answer_prepare(&mut self, now: Moment, input: &[u8]) -> Option<Verdict> {
        let is_alive = matches!(self.core.status(), TransactionStatus::Idle | TransactionStatus::Active);
        if !self.may_remedy(Remedy::Statements) || !is_alive || !self.is_quiet() {
            return None;
        }
        let unit = Arrived::peek_flushed(input)?;
        let prepare = Prepare::read(unit)?;
        let Parse { statement: name, text, .. } = prepare.parse;
        let key = key(text, prepare.parse.parameter_oids())?;
        self.prove(now);
        let common = Arc::clone(&self.config.common);
        let is_known_somewhere = common.descriptions.has_somewhere(self.facts.database_name(), &key);
        if self.is_awaited() && is_known_somewhere {
            return Some(Verdict::Hold); // it is on its way, and so the Bind's reply is not later than without
        }
        self.facts.renew_settings(now);
        let Some(place) = self.facts.place(now).cloned() else {
            self.miss_place(now, text, is_known_somewhere);
            return None;
        };
        if !self.facts.is_free(&self.core, name) && Rule::FreeName.is_kept() {
            return None;
        }
        if self.facts.may_wait_for_snapshot() && Rule::NoWait.is_kept() {
            return None;
        }
        let entry = common.descriptions.get(&place, &key)?;
        let epoch = self.facts.changes().epoch();
        let is_fresh =
            if prepare.describes { entry.is_described(now, epoch) } else { entry.is_accepted(now, epoch) };
        let is_sure = is_fresh && is_read_as_told(&self.facts);
        if !is_sure && Rule::SameKey.is_kept() {
            return None;
        }
        let description = prepare.describes.then(|| entry.description().cloned()).flatten();
        if prepare.describes && description.is_none() {
            return None;
        }
        let reads = description.as_ref().is_none_or(|told| self.reads_with(now, text, told));
        let writes = description.as_ref().is_some_and(|told| self.only_writes(text, told));
        if !reads && !writes && Rule::MayShare.is_kept() {
            return None;
        }
        self.facts.want_acts(now);
        if self.facts.changes().acts(now).is_none() && Rule::SameKey.is_kept() {
            return None;
        }
        let types = description.as_deref().filter(|_| Rule::PinnedTypes.is_kept());
        let (parse, is_pinned) = parse_with(prepare.parse, types);
        self.facts.used();
        self.acting.statements.tells(Sent::new(name, (place, key), parse, description.clone(), reads));
        Some(self.tell_prepared(now, unit, is_pinned, description.as_deref()))
    }

    /// A Parse could be answered if the session's state and settings were known, and what was read since proven. Behind a
    /// read they still are when the next Parse comes; behind anything else they have to be asked for again at once.
    fn miss_place(&mut self, now: Moment, text: &[u8], is_known_somewhere: bool) {
        let (effect, _) = self.effect_of(text);
        self.facts.miss_settings(is_known_somewhere && effect != Effect::Read);
        if is_known_somewhere {
            self.facts.want_proofs(now);
            self.facts.want_acts(now);
        }
    }

    /// Whether the server is about to say what is not known.
    fn is_awaited(&self) -> bool {
        let is_asked = |wanted: Question| self.acting.inquiries.is_asked(|asked| asked == wanted);
        self.facts.is_state_awaited() && is_asked(Question::State)
            || self.facts.is_known() && (is_asked(Question::Names) || is_asked(Question::Settings))
    }

    /// Whether the statement does nothing but read, with parameters of these types (rule S1).
    fn reads_with(&mut self, now: Moment, text: &[u8], told: &Description) -> bool {
        let types = ParameterDescription::decode(&told.parameters);
        let is_harmless = types.is_ok_and(|types| types.oids().all(is_harmless_parameter_type));
        let (effect, template) = self.effect_of(text);
        if !is_harmless || effect != Effect::Read {
            return false;
        }
        self.facts.verdict_wanted(now, template) == Proof::Reads
    }

    /// Whether the statement is an INSERT, UPDATE, DELETE or MERGE that returns no rows, whatever its tables are (rule S1).
    fn only_writes(&mut self, text: &[u8], told: &Description) -> bool {
        let (effect, _) = self.effect_of(text);
        told.row.is_none() && effect == Effect::WritesRows && place_of(text, b"returning").is_none()
    }

    /// Sends the unit on and tells the client what the server will say to it.
    fn tell_prepared(
        &mut self,
        now: Moment,
        unit: Arrived<'_>,
        is_pinned: bool,
        description: Option<&Description>,
    ) -> Verdict {
        let ends_with_sync = unit.messages().any(|(tag, _)| tag == frontend::SYNC);
        if is_pinned {
            self.acting.statements.put_parse(&mut self.core);
        }
        self.core.set_taker(Remedy::Statements);
        for (tag, body) in unit.messages() {
            if is_pinned && tag != frontend::PARSE {
                frame(self.core.server_outbox(), tag, |out| out.extend_from_slice(body));
            }
            self.book_request(now, tag, body, true);
            if is_pinned {
                // What is said about other types teaches nothing about the client's text.
                self.acting.statements.watching().ignore();
            }
        }
        self.core.set_taker(Taker::Client);
        let number = self.core.units().newest();
        let status = match self.core.status() {
            TransactionStatus::Active => WireStatus::Active,
            _ => WireStatus::Idle,
        };
        let reply_at = self.core.client_outbox().len();
        let out = self.core.client_outbox();
        frame(out, backend::PARSE_COMPLETE, |_| ());
        if let Some(told) = description {
            frame(out, backend::PARAMETER_DESCRIPTION, |out| out.extend_from_slice(&told.parameters));
            match &told.row {
                Some(row) => frame(out, backend::ROW_DESCRIPTION, |out| out.extend_from_slice(row)),
                None => frame(out, backend::NO_DATA, |_| ()),
            }
        }
        if ends_with_sync {
            encode_ready_for_query(out, status);
        }
        let reply = self.core.client_outbox().len() - reply_at;
        self.acting.statements.booked_as(number, ends_with_sync.then_some(status.letter()));
        self.book_told(number, description);
        self.core.answered_by(number, Remedy::Statements);
        self.core.bytes_sent(unit.len());
        self.core.bytes_received(number, reply, now);
        self.book_answered(now);
        if is_pinned { Verdict::Replace(unit.len()) } else { Verdict::Forward(unit.len()) }
    }

    /// Books what the client was told about its statement.
    fn book_told(&mut self, unit: u64, description: Option<&Description>) {
        let Some(told) = description else { return };
        let due = Due::of_client(Expect::DescribeStatement, unit, Some(0));
        self.book_part(due, backend::PARAMETER_DESCRIPTION, &told.parameters, true);
        if let Some(row) = &told.row {
            self.book_part(due, backend::ROW_DESCRIPTION, row, true);
        }
    }

    /// Sends the unit that runs the statement.
    fn send_behind(&mut self, now: Moment, unit: Arrived<'_>) -> Verdict {
        self.tell(&Event::Followed);
        if let Some(parse) = self.acting.statements.parse_sent() {
            self.runs_behind(now, unit, &parse);
        }
        self.book_unit(now, unit, Taker::Client);
        self.acting.statements.has_behind(self.core.units().newest());
        self.core.bytes_sent(unit.len());
        self.ask_for_level(now);
        Verdict::Forward(unit.len())
    }
}

/// Statements that were told, and are not there.
impl Session {
    /// Sends a unit that runs a statement which was told and is not there, or is another: it is made again ahead of the
    /// unit, as a server does whose tables have changed back.
    fn run_broken(&mut self, now: Moment, unit: Arrived<'_>, name: &[u8]) -> Option<Verdict> {
        let broken = self.acting.statements.broken(&self.core, name)?;
        if self.acting.statements.is_ahead_failed() {
            return Some(self.refuse_unit(now, unit, broken.into_error()));
        }
        if self.core.queue().owes_client() {
            return Some(Verdict::Hold);
        }
        if !self.core.queue().owes_session_only() {
            return None;
        }
        self.tell(&Event::Followed);
        self.acting.statements.make_again(&mut self.core, name, &broken);
        for (tag, body) in unit.messages() {
            frame(self.core.server_outbox(), tag, |out| out.extend_from_slice(body));
            self.book_request(now, tag, body, true);
        }
        self.core.bytes_sent(unit.len());
        self.acting.statements.runs_again(name, *broken, self.core.units().newest());
        Some(Verdict::Replace(unit.len()))
    }

    /// Sends a unit that runs a statement which is not there so that it fails, and its transaction with it.
    fn refuse_unit(&mut self, now: Moment, unit: Arrived<'_>, error: Vec<u8>) -> Verdict {
        self.tell(&Event::Followed);
        self.core.set_taker(Remedy::Statements);
        for (tag, body) in unit.messages() {
            match Bind::decode(body) {
                Ok(bind) if tag == frontend::BIND => {
                    Bind { statement: self.own_names.nowhere(), ..bind }.encode(self.core.server_outbox());
                }
                _ => frame(self.core.server_outbox(), tag, |out| out.extend_from_slice(body)),
            }
            self.book_request(now, tag, body, true);
        }
        self.core.set_taker(Taker::Client);
        let number = self.core.units().newest();
        self.core.owes(number);
        self.core.bytes_sent(unit.len());
        self.acting.statements.refuses(number, error);
        Verdict::Replace(unit.len())
    }
}

/// What is learned of all statements.
impl Session {
    /// A statement of the client's goes to the server: one that takes prepared statements away leaves everything else as
    /// it is (rule S7).
    pub(crate) fn deallocates(&mut self, unit: u64, text: &Text) {
        if text.effect != Effect::Deallocates {
            return;
        }
        self.facts.names.deallocate_sent();
        if !Rule::Deallocated.is_kept() {
            return;
        }
        let Some(name) = &text.deallocates else { return self.facts.doubt_prepared(unit) };
        if let Some(prepared) = self.core.prepared_mut(name) {
            prepared.doubt();
        }
        self.facts.names.leaves(unit, Arc::clone(name));
    }

    /// The server has taken prepared statements away on behalf of this unit.
    pub(crate) fn deallocated(&mut self, unit: u64, tag: &[u8]) {
        let is_left = |prepared: &Prepared| prepared.seen_in().is_some_and(|seen| seen > unit);
        if matches!(tag, b"DISCARD ALL" | b"DEALLOCATE ALL") {
            self.core.retain_prepared(is_left);
            return self.facts.names.cleared();
        }
        let Some(name) = self.facts.names.left(unit) else { return };
        if !self.core.prepared(&name).is_some_and(is_left) {
            self.core.forget_prepared(&name);
        }
    }

    /// A Parse of the client's is about to be sent: whether the server accepts it will be known.
    pub(crate) fn watch_parse(&mut self, now: Moment, unit: u64, parse: Parse<'_>) {
        let is_on = self.may_remedy(Remedy::Statements);
        self.acting.statements.watching().sees_parse((&self.core, &self.facts), is_on, now, unit, parse);
    }

    /// Learns from what the server says; `dropped` will not be answered.
    pub(crate) fn see_reply(
        &mut self,
        now: Moment,
        tag: u8,
        reply: Reply,
        body: Option<&[u8]>,
        dropped: &[Due],
    ) {
        let heard = (&self.core, &mut self.facts);
        if let Some(asked) = self.acting.statements.watching().hears(heard, tag, reply, body, dropped) {
            self.prove(now);
            self.acting.statements.watching().learn((&self.facts, &self.config), now, tag, &asked, body);
        }
    }

    /// The server refused to run a plan: what is known here is of no use.
    pub(crate) fn forget_statements(&self, now: Moment) {
        match self.facts.place(now) {
            Some(place) => self.config.common.descriptions.forget_all(place),
            None => self.config.common.descriptions.forget_database(self.facts.database_name()),
        }
    }
}
