//! What the server is asked, and when: only where a remedy could remove a trip, only while the program waits for
//! nothing, and less and less often where nobody uses the answers.

use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::purity::{self, Lookup, SessionQuestion, Survey, elements};
use onetrip_wire::pg::Values;

use super::Rule;
use super::inquiry::{Asked, PARTS_OF_TIME, Question, Surveying, Way};
use crate::facts::Known;
use crate::facts::{Backends, Stamp};
use crate::remedies::Session;

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
        self.ask_about_session(way, &mut asked);
        self.ask_about_names(now, stamp, &mut asked);
        if let Some((serial, text)) = self.cursors.take_question() {
            asked.push(Asked { question: Question::Cursor(serial), text, parameter: None });
        }
        if !asked.is_empty() {
            self.ask_all(now, way, asked);
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
        self.inquiries.is_busy()
            && self.config.common.knowledge.backends() == Backends::Unknown
            && Rule::OneBackend.is_kept()
    }

    /// Whether answers are of use, and questions are not too many already.
    fn may_inquire(&self, now: Moment) -> bool {
        self.needs_facts() && !self.facts.is_pooled() && !self.inquiries.is_busy() && !self.rests(now)
    }

    /// What is asked in a transaction of the program's tells of the session only if nothing in it may have changed that
    /// for the transaction alone, and of the catalogue only if nobody has changed that since its snapshot.
    fn may_ask_within(&self) -> bool {
        self.facts.transaction.is_seen()
            && self.facts.transaction.is_clean()
            && self.facts.transaction.isolation().is_plain()
            && self.facts.transaction.begun().epoch == self.facts.changes().epoch()
    }

    /// Whether questions took too long of late.
    fn rests(&self, now: Moment) -> bool {
        self.inquiries.spent(now, PARTS_OF_TIME) > self.config.question_burst
    }

    /// Asks for the level of the transaction, behind the unit that was just sent: something depends on it.
    pub(crate) fn ask_for_level(&mut self, now: Moment) {
        if !self.core.may_send_own() || !self.needs_level() {
            return;
        }
        if let Some(count) = self.facts.transaction.takes_level() {
            self.ask_level(now, count);
        }
    }

    fn ask_about_session(&mut self, way: Way, asked: &mut Vec<Asked>) {
        let mut ask = |question, text: &str| {
            asked.push(Asked { question, text: text.to_owned(), parameter: None });
        };
        let has_lookups = self.facts.wants_lookup() || self.inquiries.surveying.is_some();
        if self.facts.wants_state() || has_lookups && self.facts.database().is_none() {
            self.facts.state_asked();
            ask(Question::State, &SessionQuestion::State.sql());
        }
        if self.facts.wants_settings() && self.may_remedy(Remedy::Statements) {
            self.statements.watching.settings_asked();
            ask(Question::Settings, &SessionQuestion::Settings.sql());
        }
        if way == Way::Between && self.facts.names.are_wanted() && self.may_remedy(Remedy::Statements) {
            self.facts.names.ask();
            ask(Question::Names, &SessionQuestion::Names.sql());
        }
    }

    fn ask_about_names(&mut self, now: Moment, stamp: Stamp, asked: &mut Vec<Asked>) {
        let is_over = |surveying: &Surveying| {
            let Stamp { epoch, .. } = surveying.stamp;
            !surveying.stamp.is_fresh(now, stamp.epoch) || epoch != stamp.epoch
        };
        if self.inquiries.surveying.as_ref().is_some_and(is_over) {
            self.inquiries.surveying = None;
        }
        if self.inquiries.surveying.is_none() && self.facts.wants_lookup() {
            let mut survey = Survey::new(self.facts.take_wanted());
            let next = Some(survey.questions());
            let acts_asked = self.facts.changes().acts_asked(stamp.at);
            self.inquiries.surveying = Some(Surveying { survey, stamp, acts_asked, next });
        }
        let next =
            self.inquiries.surveying.as_mut().and_then(|surveying| surveying.next.take()).unwrap_or_default();
        asked.extend(next.into_iter().map(|purity::Question { lookup, parameter }| Asked {
            question: Question::Lookup(lookup),
            text: lookup.sql().to_owned(),
            parameter,
        }));
    }

    /// A row of the answer to a question; `is_untimed` if the session surely has no statement_timeout.
    pub(super) fn learn(&mut self, asked_at: Moment, question: Question, row: Values<'_>, is_untimed: bool) {
        let columns: Vec<Option<&[u8]>> = row.iter().collect();
        match (question, columns.as_slice()) {
            (Question::State, [path, Some(role), Some(is_special), Some(identity), Some(pid)]) => {
                self.learn_state(asked_at, *path, [role, is_special, identity, pid], is_untimed);
            }
            (Question::Settings, [Some(digest)]) => {
                if let Some(place) = self.facts.settings_told(digest) {
                    self.statements.watching.learn_asked(&self.config.common.descriptions, &place);
                }
            }
            (Question::Level(count), [Some(level)]) => self.facts.transaction.learn_level(count, level),
            (Question::Lookup(lookup), columns) => self.learn_name(lookup, columns),
            (Question::Names, [Some(has_any)]) => self.facts.names.learn(*has_any != b"false"),
            (Question::Cursor(serial), [Some(goes_back)]) => {
                self.cursors.learn_place(serial, *goes_back == b"true")
            }
            _ => self.core.count_undecoded(),
        }
    }

    fn learn_state(&mut self, at: Moment, path: Option<&[u8]>, rest: [&[u8]; 4], is_untimed: bool) {
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
            is_plain: is_special == b"false" && schemas.is_some(),
            search_path: schemas.map(Arc::from),
            role: role.to_vec(),
            identity: identity.to_vec(),
            is_untimed,
        };
        if known.is_plain && self.facts.is_state_awaited() {
            self.begin.hears_no_log();
        }
        self.facts.state_told(known, &self.config.common.knowledge);
    }

    fn learn_name(&mut self, lookup: Lookup, columns: &[Option<&[u8]>]) {
        let Some(surveying) = &mut self.inquiries.surveying else { return };
        if surveying.survey.row(lookup, columns).is_err() {
            self.inquiries.surveying = None;
        }
    }

    /// The server would not say.
    pub(super) fn learn_nothing(&mut self, question: Question) {
        match question {
            Question::State => self.facts.state_refused(),
            Question::Lookup(_) => self.inquiries.surveying = None,
            Question::Level(count) => self.facts.transaction.level_refused(count),
            Question::Settings | Question::Names | Question::Cursor(_) => {}
        }
    }

    /// All questions of a group are answered.
    pub(super) fn group_answered(&mut self, now: Moment, way: Way, has_failed: bool) {
        if way == Way::Alone {
            return;
        }
        if let Some(mut surveying) = self.inquiries.surveying.take_if(|one| one.next.is_none() && !has_failed)
        {
            if let Some(acts) = surveying.survey.take_acts() {
                self.facts.changes().acts_told(surveying.acts_asked, acts);
            }
            // An answer may lead to more questions.
            let questions = surveying.survey.questions();
            if questions.is_empty() {
                if let (Ok(findings), Some(database)) = (surveying.survey.finish(), self.facts.database()) {
                    database.catalogue().absorb(findings, surveying.stamp);
                }
            } else {
                surveying.next = Some(questions);
                self.inquiries.surveying = Some(surveying);
            }
        }
        self.prove(now);
    }
}
