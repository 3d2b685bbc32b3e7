//! Every remedy, once: the order in which they are asked for an answer, and the one loop that tells all what happens.
//!
//! Asked by their text, behind one trait (`Texts`): `begin`, `commit`, `chatter`. Asked by name, each at its place in
//! `Session::answer`, as they look into more than a text: `lobs`, `loops`, `cursors`, `statements`.
//!
//! ```text
//!  a message of the client's                              a message of the server's
//!    is_held_back   behind a BEGIN that was answered        pass_reply   by its taker: the client, a remedy, a service
//!    is_fenced      behind others' transactions (commit)      client_reply   who waits for it hears it
//!    answer         the first that knows it                   own_reply      it is a remedy's own
//!    restore_places cursors, before it is forwarded           pass_unasked   it answers nothing
//!    tell           what it does: events                    hand_back    what an error has the server skip
//!    follow         questions and flights behind it
//! ```

use onetrip_ledger::{Moment, Remedy as Name, TransactionStatus};
use onetrip_loops::Guess;
use onetrip_wire::pg::{ErrorResponse, FrameHeader, HEADER_BYTES, backend, frontend};

use super::{Acting, Session};
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::remedies::proposes::{Calls, Proposes};
use crate::remedies::remedy::{Answer, Asked, Change, Cx, Need, Remedy, Texts, Told};
use crate::reply_queue::{Due, Expect, Reply, Service, Taker};
use crate::services::Arrived;
use crate::services::{Own, Said};
use crate::slots::Slot;

/// How many know their texts.
const TEXTS: usize = if cfg!(test) { 4 } else { 3 };

impl Session {
    /// Tells everyone what has happened: what is known changes first, as remedies look at it. The order of the remedies
    /// does not matter here, for none sees another.
    ///
    /// Each message is an event or several, and most hear of few: inlined, with the event known, those who ignore it cost
    /// nothing.
    #[inline(always)]
    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let Self { core, config, facts, own_names, acting, .. } = self;
        facts.on_event(core, &config.common, event);
        if core.is_passive {
            return; // it has no remedies
        }
        let Acting { begin, shadow, unseen, flights, loops, chatter, statements, cursors, lobs, .. } =
            &mut **acting;
        unseen.on_event(event);
        flights.on_event(config, facts, event);
        let mut cx = Cx { core, facts, config, own_names, shadow, flights };
        lobs.on_event(&mut cx, event);
        statements.on_event(&mut cx, event);
        begin.on_event(&mut cx, event);
        self.commit.on_event(&mut cx, event);
        chatter.on_event(&mut cx, event);
        loops.on_event(&mut cx, event);
        cursors.on_event(&mut cx, event);
        #[cfg(test)]
        self.example.on_event(&mut cx, event);
    }

    /// What becomes of a message of the server, which has been booked as `reply`. `message` is cut short where it is
    /// longer than what is looked into.
    ///
    /// # Errors
    ///
    /// The session ends where one cannot go on as its program believes.
    pub(crate) fn pass_reply(
        &mut self,
        now: Moment,
        tag: u8,
        message: &[u8],
        length: usize,
        reply: Reply,
    ) -> Result<Verdict, SessionError> {
        let is_whole = message.len() == length;
        if tag == backend::ERROR_RESPONSE
            && ErrorResponse::decode(&message[HEADER_BYTES..]).is_ok_and(|error| error.is_fatal())
        {
            // The server's own words, whoever they answer; nothing is answered in its place behind them.
            self.core.ends();
            return Ok(Verdict::Forward(message.len()));
        }
        if self.core.is_passive {
            return Ok(Verdict::Forward(message.len()));
        }
        let said = Said { now, tag, reply, message, is_whole };
        let dropped = Verdict::Replace(message.len());
        match reply.due() {
            Some(due) => match due.taker {
                Taker::Client => self.client_reply(due, &said),
                Taker::Nobody => Ok(Verdict::Forward(message.len())),
                Taker::Remedy(remedy, slot) => self.own_reply(remedy, slot, &said),
                Taker::Service(Service::Inquiries, slot) => self.inquiry_reply(slot, &said).map(|()| dropped),
                Taker::Service(Service::Flights, slot) => self.flight_reply(slot, &said).map(|()| dropped),
                Taker::Service(Service::Shadow, slot) => {
                    self.acting.shadow.check_reply(&mut self.core, &self.config, slot, &said)?;
                    self.tell_disproved();
                    Ok(dropped)
                }
                Taker::Service(Service::Unseen, _) if said.is_failure() => {
                    Ok(Verdict::Forward(message.len()))
                }
                Taker::Service(Service::Unseen, _) => Ok(dropped),
            },
            None if reply == Reply::Async => self.pass_unasked(&said),
            None => Ok(Verdict::Forward(message.len())),
        }
    }

    /// Tells all where an answer from memory was wrong.
    fn tell_disproved(&mut self) {
        if self.acting.shadow.takes_news() {
            self.tell(&Event::Disproved);
        }
    }

    /// The server answers a message of the client's: the reply is the client's, and those hear it who wait for it. Each looks
    /// at the unit first; their order does not matter.
    fn client_reply(&mut self, due: Due, said: &Said<'_>) -> Result<Verdict, SessionError> {
        self.acting.lobs.client_reply(&mut self.core, due, said)?;
        self.watched_reply(due, said);
        self.acting.chatter.client_reply(due, said);
        if said.tag == backend::READY_FOR_QUERY {
            return Ok(self.acting.begin.pass_kept(&mut self.core, said.message));
        }
        Ok(Verdict::Forward(said.message.len()))
    }

    /// The server says something that answers nothing. What belongs to the session's own is not for the client.
    fn pass_unasked(&mut self, said: &Said<'_>) -> Result<Verdict, SessionError> {
        self.tell(&Event::CameUnasked { is_parameter: said.tag == backend::PARAMETER_STATUS });
        let taker = self.core.queue().front().map(|due| due.taker);
        let is_own = matches!(taker, Some(Taker::Service(..) | Taker::Remedy(Name::Lobs, _)));
        if is_own && said.tag == backend::NOTICE_RESPONSE {
            // It is about the question, and nobody's; however long it is: a plan takes more than is looked into.
            return Ok(Verdict::Replace(said.message.len()));
        }
        if !said.is_whole {
            return Ok(Verdict::Forward(said.message.len()));
        }
        self.acting.begin.hears_unasked(said);
        if said.tag == backend::PARAMETER_STATUS && taker.is_some_and(|taker| taker != Taker::Client) {
            return self.acting.begin.keep_parameter(&mut self.core, said);
        }
        if said.tag == backend::NOTICE_RESPONSE
            && self.acting.cursors.keep_notice(&mut self.core, &self.config, said.message)?
        {
            return Ok(Verdict::Replace(said.message.len()));
        }
        self.acting.begin.keep_for_later(&mut self.core, said)
    }

    /// Whether the next message of the client's has to wait for the server.
    pub(crate) fn is_held_back(&self) -> bool {
        (self.acting.begin.holds_back() || self.may_find_a_pooler()) && !self.core.units().is_open()
    }

    /// The client's unit fails with this error; `ready` is what comes behind it.
    fn fail_unit(&mut self, now: Moment, unit: u64, error: &[u8], ready: &[u8]) {
        let due = Due::of_client(Expect::Sync, unit, Some(0));
        self.book_failure(now, due, &error[HEADER_BYTES..]);
        self.book_part(due, backend::READY_FOR_QUERY, &ready[HEADER_BYTES..], true);
        self.core.bytes_received(unit, error.len() + ready.len(), now);
        self.core.client_outbox().extend_from_slice(error);
        if let Verdict::Forward(_) = self.acting.begin.pass_kept(&mut self.core, ready) {
            self.core.client_outbox().extend_from_slice(ready);
        }
        self.core.settled(unit);
        self.book_answered(now);
    }

    /// The server answers a message whose taker is a remedy.
    ///
    /// # Errors
    ///
    /// The session ends: the client, which has its answer, cannot be told otherwise.
    fn own_reply(&mut self, remedy: Name, slot: Slot, said: &Said<'_>) -> Result<Verdict, SessionError> {
        let (remedy, mut cx) = self.of_name(remedy);
        let own = remedy.own_reply(&mut cx, slot, said)?;
        self.tell_disproved();
        let length = said.message.len();
        Ok(match own {
            Own::Dropped => Verdict::Replace(length),
            Own::PassedOn => Verdict::Forward(length),
            Own::Fails { unit, error } => {
                self.fail_unit(said.now, unit, &error, said.message);
                Verdict::Replace(length)
            }
        })
    }

    /// An error made the server skip these: what remedies keep of them comes back, from the last one on, so that rows are
    /// given back in order.
    pub(crate) fn hand_back(&mut self, skipped: &[Due]) {
        for due in skipped.iter().rev() {
            if let Taker::Remedy(remedy, slot) = due.taker {
                self.of_name(remedy).0.own_skipped(slot);
            }
        }
    }

    /// A message of the client's goes to the server: what follows it. The level is asked for first, outside of a flight's
    /// shield; not behind a Flush, which leaves its group open.
    pub(crate) fn follow(&mut self, now: Moment, tag: u8) {
        if tag != frontend::FLUSH {
            self.ask_for_level(now);
        }
        self.unit_sent(now);
    }

    /// The remedy whose guess this is, and all else.
    pub(crate) fn proposer_of(&mut self, guess: &Guess<'_>) -> Option<(&mut dyn Proposes, Cx<'_>)> {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { shadow, flights, loops, lobs, .. } = &mut **acting;
        let remedy: &mut dyn Proposes = match flights.proposer_of(guess)? {
            Name::Lobs => lobs,
            _ => loops,
        };
        Some((remedy, Cx { core, facts, config, own_names, shadow, flights }))
    }

    /// The remedy that sends calls of its own with the flights, and all else.
    pub(crate) fn caller(&mut self) -> (&mut dyn Calls, Cx<'_>) {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { shadow, flights, lobs, .. } = &mut **acting;
        (lobs, Cx { core, facts, config, own_names, shadow, flights })
    }

    /// A unit of the client's has gone to the server: whether calls are to go behind it.
    pub(crate) fn plan_calls(&mut self, now: Moment) -> bool {
        if let Some(need) = self.acting.lobs.claims_calls() {
            self.look_at(now, need);
            let (remedy, mut cx) = self.caller();
            remedy.plan_calls(&mut cx, now);
        }
        self.has_calls()
    }

    /// Whether calls are to go with the next flight.
    pub(crate) fn has_calls(&self) -> bool {
        self.acting.lobs.has_calls()
    }

    /// A unit goes to the server that runs the statement of this Parse, which was answered before.
    pub(super) fn runs_behind(&mut self, now: Moment, unit: Arrived<'_>, parse: &[u8]) {
        self.watch_behind(now, unit, parse);
    }

    /// Remedies that know their texts, and all else.
    #[inline(always)] // a place is known where it is asked for
    fn by_text(&mut self, place: usize) -> Option<(&mut dyn Texts, Cx<'_>)> {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { begin, shadow, flights, chatter, .. } = &mut **acting;
        let cx = Cx { core, facts, config, own_names, shadow, flights };
        let remedy: &mut dyn Texts = match place {
            0 => begin,
            1 => &mut self.commit,
            2 => chatter,
            #[cfg(test)]
            3 => &mut self.example,
            _ => return None,
        };
        Some((remedy, cx))
    }

    /// The answer of the remedy at this place, which has claimed the unit.
    fn ask(&mut self, place: usize, asked: &Asked<'_>, need: Need) -> Option<Verdict> {
        self.look_at(asked.now, need);
        let (remedy, mut cx) = self.by_text(place)?;
        match remedy.answer(&mut cx, asked) {
            Answer::NotKnown => None,
            Answer::Hold => Some(Verdict::Hold),
            Answer::Told(told) => self.book_told_unit(asked, &told),
        }
    }

    /// Looks at what the answer of a remedy depends on.
    pub(crate) fn look_at(&mut self, now: Moment, need: Need) {
        match need {
            Need::Nothing => {}
            Need::Proof => self.prove(now),
            Need::State => self.inquire_before_begin(now),
        }
    }

    /// Books a unit that was answered before the server has done so.
    fn book_told_unit(&mut self, asked: &Asked<'_>, told: &Told) -> Option<Verdict> {
        let now = asked.now;
        let (number, length) = match told.taker {
            Some(taker) => {
                let unit = asked.unit()?;
                self.tell(&Event::Followed);
                let number = self.core.units().oldest(); // the next one: nothing is under way
                self.book_unit(now, unit, taker);
                (number, unit.len())
            }
            None => {
                let length = asked.header.frame_len();
                let text = asked.input.get(HEADER_BYTES..length)?.strip_suffix(b"\0")?;
                self.tell(&Event::UnnamedStatementGone);
                let (number, ..) = self.open_query(now, text);
                self.core.close_unit();
                (number, length)
            }
        };
        self.core.answered_by(number, told.by);
        self.core.bytes_sent(length);
        self.core.bytes_received(number, told.reply, now);
        match told.change {
            Change::None => {}
            Change::Begins { .. } => self.core.set_status(TransactionStatus::Active),
            Change::Ends => {
                self.core.set_status(TransactionStatus::Idle);
                self.tell(&Event::TransactionOver);
                self.core.clear_portals();
            }
        }
        self.book_answered(now);
        if let Change::Begins { deferral } = told.change {
            self.tell(&Event::TransactionBegun { at: now, deferral });
        }
        Some(if told.taker.is_some() { Verdict::Forward(length) } else { Verdict::Replace(length) })
    }

    /// The remedy of this name, and all else.
    fn of_name(&mut self, name: Name) -> (&mut dyn Remedy, Cx<'_>) {
        let Self { core, config, facts, own_names, acting, .. } = self;
        let Acting { begin, shadow, flights, loops, chatter, statements, cursors, lobs, .. } = &mut **acting;
        let cx = Cx { core, facts, config, own_names, shadow, flights };
        let remedy: &mut dyn Remedy = match name {
            Name::Begin => begin,
            Name::Commit => &mut self.commit,
            Name::Chatter => chatter,
            Name::Statements => statements,
            Name::Cursors => cursors,
            Name::Lobs => lobs,
            Name::Loops | Name::Repeats => loops,
        };
        (remedy, cx)
    }

    /// What a remedy makes of the message at the front of `input`: the first that answers it, or has it wait, is the one.
    ///
    /// # Errors
    ///
    /// The session ends where one cannot go on as its program believes.
    pub(crate) fn answer(
        &mut self,
        now: Moment,
        header: FrameHeader,
        input: &[u8],
    ) -> Result<Option<Verdict>, SessionError> {
        if self.core.units().is_open() {
            // Only rows are asked for amid a unit.
            return self.read_cursor(now, header, input);
        }
        // First, as it also puts descriptors to their places before anything goes to the server that could tell.
        if let Some(verdict) = self.answer_lob(now, header, input) {
            return Ok(Some(verdict));
        }
        // Before all that answer: behind a statement that was told, and is not confirmed, only its Bind goes (rule S6).
        if let Some(verdict) = self.behind_told(now, input)? {
            return Ok(Some(verdict));
        }
        // They know their texts, and no text is known to two of them: their order does not matter.
        let asked = Asked { now, header, input, is_quiet: self.is_quiet() };
        for place in 0..TEXTS {
            let Some((remedy, mut cx)) = self.by_text(place) else { break };
            let Some(need) = remedy.claims(&mut cx, &asked) else { continue };
            if let Some(verdict) = self.ask(place, &asked, need) {
                return Ok(Some(verdict));
            }
        }
        // `loops` is behind them, as it looks into any statement. The unnamed objects come last of these: what was answered
        // needs none of them.
        let answered = self
            .answer_loops(now, header, input)
            .or_else(|| self.acting.unseen.show(&mut self.core, &self.own_names, header.tag, input));
        if answered.is_some() {
            return Ok(answered);
        }
        // A Parse is no request for rows: the order of these two does not matter.
        let read = self.read_cursor(now, header, input)?;
        Ok(read.or_else(|| self.answer_prepare(now, input)))
    }
}
