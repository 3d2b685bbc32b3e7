//! What the server is asked, and when: only where a remedy could remove a trip, and only while the program waits for
//! nothing. Where nobody uses the answers, it is asked at longer and longer intervals.

use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::{SessionQuestion, elements};
use onetrip_wire::pg::Values;

use super::Session;
use crate::contract::SessionError;
use crate::facts::{Backends, Known, Stamp};
use crate::rules::Rule;
use crate::services::Said;
use crate::services::inquiries::{Asked, Heard, OwnSettings, PARTS_OF_TIME, Question, Way};
use crate::slots::Slot;

impl Session {
    /// The server is ready and owes nothing: there is time for questions.
    pub(crate) fn inquire(&mut self, now: Moment) {
        if !self.may_inquire(now) {
            return;
        }
        let way = match self.core.status() {
            TransactionStatus::Idle => Way::Between,
            TransactionStatus::Active if self.may_ask_within() => Way::Within,
            _ => return,
        };
        let stamp = match way {
            Way::Within => self.facts.transaction.begun(),
            Way::Between | Way::Alone => Stamp { at: now, epoch: self.facts.changes().epoch() },
        };
        let mut asked = Vec::new();
        self.ask_about_session(way, now, &mut asked);
        asked.extend(self.acting.inquiries.ask_about_names(&mut self.facts, now, stamp));
        if let Some((serial, text)) = self.acting.cursors.take_question() {
            asked.push(Asked { question: Question::Cursor(serial), text, parameter: None });
        }
        if !asked.is_empty() {
            self.acting.inquiries.ask_all(&mut self.core, &self.own_names, now, way, &asked);
        }
    }

    /// Asks for the session's state ahead of its first BEGIN, where it is likely to begin a transaction that reads, as that of
    /// the last session did: the program does not wait for the BEGIN, and the end is answered early only if the state is known.
    pub(super) fn inquire_before_begin(&mut self, now: Moment) {
        let is_worth_it = self.facts.is_new()
            && self.facts.lacks_state()
            && self.config.common.knowledge.begins_with_reads()
            && self.config.common.knowledge.backends() == Backends::Own
            && self.may_remedy(Remedy::Commit);
        if is_worth_it && self.core.may_send_own() && self.may_inquire(now) {
            self.facts.guess_state();
            self.inquire(now);
        }
    }

    /// Whether a question is under way that may find a pooler. What comes behind it waits: a pooler may take its end for
    /// the end of all that was sent, and give the server to somebody else, if a group that only Flush ends is behind it
    /// (PgBouncer 1.18 in transaction mode).
    pub(super) fn may_find_a_pooler(&self) -> bool {
        self.acting.inquiries.is_busy()
            && self.config.common.knowledge.backends() == Backends::Unknown
            && Rule::OneBackend.is_kept()
    }

    /// Whether answers are of use, and questions are not too many already.
    fn may_inquire(&self, now: Moment) -> bool {
        self.needs_facts() && !self.facts.is_pooled() && !self.acting.inquiries.is_busy() && !self.rests(now)
    }

    /// What is asked in a transaction of the program's tells of the session only if nothing in it may have changed that
    /// for the transaction alone, and of the catalogue only if nobody has changed that since its snapshot.
    fn may_ask_within(&self) -> bool {
        self.facts.transaction.is_seen()
            && self.facts.transaction.is_clean()
            && self.facts.transaction.isolation().is_plain()
            && self.facts.transaction.begun().epoch == self.facts.changes().epoch()
            && self.holds_snapshot()
    }

    /// Whether the program's transaction holds a snapshot between its statements. In one that has none, a question takes one
    /// for a moment, and another session that waits for older snapshots (CREATE INDEX CONCURRENTLY, DETACH PARTITION) then
    /// waits for the transaction's end (`WaitForOlderSnapshots`).
    fn holds_snapshot(&self) -> bool {
        self.facts.transaction.isolation().is_snapshot()
            || self.acting.cursors.hold_snapshot()
            || self.acting.lobs.hold_snapshot()
    }

    /// Whether questions took too long of late.
    fn rests(&self, now: Moment) -> bool {
        self.acting.inquiries.spent(now, PARTS_OF_TIME) > self.config.question_burst
    }

    /// Asks for the level of the transaction, behind the unit that was just sent: something depends on it.
    pub(crate) fn ask_for_level(&mut self, now: Moment) {
        if !self.facts.transaction.asks_for_level() || !self.core.may_send_own() || !self.needs_level() {
            return;
        }
        if let Some(count) = self.facts.transaction.takes_level() {
            self.acting.inquiries.ask_level(&mut self.core, &self.own_names, now, count);
        }
    }

    fn ask_about_session(&mut self, way: Way, now: Moment, asked: &mut Vec<Asked>) {
        let mut ask = |question, text: &str| {
            asked.push(Asked { question, text: text.to_owned(), parameter: None });
        };
        let has_lookups = self.facts.wants_lookup() || self.acting.inquiries.is_surveying();
        if self.facts.wants_state() || has_lookups && self.facts.database().is_none() {
            self.facts.state_asked();
            ask(Question::State, &SessionQuestion::State.sql());
        }
        if self.facts.wants_settings() && self.may_remedy(Remedy::Statements) {
            self.facts.settings_asked();
            self.acting.statements.watching().settings_asked(&self.facts, now);
            ask(Question::Settings, &SessionQuestion::Settings.sql());
        }
        if way == Way::Between && self.facts.names.are_wanted() && self.may_remedy(Remedy::Statements) {
            self.facts.names.ask();
            ask(Question::Names, &SessionQuestion::Names.sql());
        }
    }

    /// A row of the answer to a question; `own` is what the session has set itself.
    fn learn(
        &mut self,
        (asked_at, now): (Moment, Moment),
        question: Question,
        row: Values<'_>,
        own: OwnSettings,
    ) {
        let columns: Vec<Option<&[u8]>> = row.iter().collect();
        match (question, columns.as_slice()) {
            (Question::State, [path, Some(role), Some(is_special), Some(identity), Some(pid)]) => {
                self.learn_state(asked_at, *path, [role, is_special, identity, pid], own);
            }
            (Question::Settings, [Some(digest), Some(is_deferrable), Some(age)]) => {
                let age = std::str::from_utf8(age).ok().and_then(|age| age.parse::<u64>().ok());
                let Some(age) = age else { return self.core.count_undecoded() };
                let is_deferrable = *is_deferrable == b"on";
                let read_by = Moment(now.0.saturating_sub(age.saturating_mul(1_000)));
                if let Some(place) = self.facts.settings_told((asked_at, read_by), digest, is_deferrable) {
                    let descriptions = &self.config.common.descriptions;
                    self.acting.statements.watching().learn_asked(descriptions, &place, read_by);
                }
            }
            (Question::Level(count), [Some(level)]) => self.facts.transaction.learn_level(count, level),
            (Question::Lookup(lookup), columns) => self.acting.inquiries.learn_name(lookup, columns),
            (Question::Names, [Some(has_any)]) => self.facts.names.learn(*has_any != b"false"),
            (Question::Cursor(serial), [Some(goes_back)]) => {
                self.acting.cursors.learn_place(serial, *goes_back == b"true")
            }
            _ => self.core.count_undecoded(),
        }
    }

    fn learn_state(&mut self, at: Moment, path: Option<&[u8]>, rest: [&[u8]; 4], own: OwnSettings) {
        let [role, is_special, identity, pid] = rest;
        let served_by = self.core.backend_key().map(|key| key.process_id.to_string());
        let is_own = served_by.is_some_and(|served_by| served_by.as_bytes() == pid);
        if Rule::OneBackend.is_kept() {
            self.config.common.knowledge.backend_told(is_own);
            if !is_own {
                return self.facts.pooler_found();
            }
        }
        let schemas = path.and_then(|path| std::str::from_utf8(path).ok()).and_then(elements);
        let known = Known {
            at,
            is_plain: is_special == b"false"
                && schemas.is_some()
                && Rule::ShieldEnds.requires(own.survives_errors),
            search_path: schemas.map(Arc::from),
            role: role.to_vec(),
            identity: identity.to_vec(),
            is_untimed: own.is_untimed,
        };
        if known.is_plain && self.facts.is_state_awaited() {
            self.acting.begin.hears_no_log();
        }
        self.facts.state_told(known, &self.config.common.knowledge);
    }

    /// The server would not say.
    fn learn_nothing(&mut self, question: Question) {
        match question {
            Question::State => self.facts.state_refused(),
            Question::Lookup(_) => self.acting.inquiries.stop_survey(),
            Question::Level(count) => self.facts.transaction.level_refused(count),
            Question::Settings | Question::Names | Question::Cursor(_) => {}
        }
    }

    /// The server answers a message of a question's group.
    ///
    /// # Errors
    ///
    /// The session ends where a question has changed the state of the transaction.
    pub(crate) fn inquiry_reply(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        match self.acting.inquiries.take_reply(&self.core, slot, said) {
            Heard::Nothing => Ok(()),
            Heard::Row { asked_at, question, row, own } => {
                self.learn((asked_at, said.now), question, row, own);
                Ok(())
            }
            Heard::Unknown(question) => {
                self.learn_nothing(question);
                Ok(())
            }
            Heard::GroupEnds => self.group_ends(said.now, slot, said.body()),
        }
    }

    /// The server has answered a group in full; `status` is what it says then.
    fn group_ends(&mut self, now: Moment, slot: Slot, status: &[u8]) -> Result<(), SessionError> {
        let distance = self.facts.path.distance();
        let Some(group) = self.acting.inquiries.group_ends(now, slot, status, distance) else {
            return Ok(());
        };
        group.failed.iter().for_each(|question| self.learn_nothing(*question));
        if !group.is_taken_back && Rule::ShieldEnds.is_kept() {
            let message = "a question of onetrip's own has changed the state of the transaction";
            let hint = "Connect again; leave remedies out by --remedies none.";
            self.refuse("08006", message, Some(hint));
            return Err(SessionError::ShieldBroken);
        }
        if group.way != Way::Alone {
            self.acting.inquiries.names_answered(&mut self.facts, group.has_failed);
            self.prove(now);
            self.acting.statements.watching().learn_unplaced(
                &self.facts,
                &self.config.common.descriptions,
                now,
            );
        }
        Ok(())
    }
}
