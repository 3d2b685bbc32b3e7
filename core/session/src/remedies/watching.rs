//! What is learned from the server's replies to the Parse and Describe messages of all clients, and which names a session's
//! statements have.

use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy};
use onetrip_wire::pg::{Parse, backend};

use super::Rule;
use crate::facts::Place;
use crate::facts::Stamp;
use crate::facts::common::{Asked, Description, Descriptions, Said};
use crate::reading::Effect;
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Reply, Taker};
use crate::slots::{Lesson, Slots};
use crate::statements::{Prepared, Text};

/// Statements of which it is not yet known where they were described.
const UNPLACED_MAX: usize = 32;

/// What a session learns about its statements.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    /// What may be learned of the Parses and the Describes of statements that the server owes a reply; nothing any more
    /// where nothing is inside.
    watched: Slots<Option<Arc<Asked>>>,
    /// What the next of them may teach.
    next: Option<Arc<Asked>>,
    /// The last Parse: its unit, its name, and what it may teach.
    parsed: Option<(u64, Vec<u8>, Arc<Asked>)>,
    /// The parameters that the statement being described has.
    parameters: Vec<u8>,
    /// What the server has said while it was not known where, and nothing was sent since that may have changed that.
    unplaced: Vec<(Arc<Asked>, Said)>,
    /// The same, for which the server is asked.
    placing: Vec<(Arc<Asked>, Said)>,
}

/// Where the reply to this is watched.
fn is_watched(due: &Due) -> bool {
    matches!(due.expect, Expect::Parse | Expect::DescribeStatement) && is_sent_as_it_is(due.taker)
}

/// Whether what is booked goes to the server for its reply to be learned from.
fn is_sent_as_it_is(taker: Taker) -> bool {
    matches!(taker, Taker::Client | Taker::Remedy(Remedy::Statements, _))
}

impl Watching {
    /// What the reply to a message that is sent may teach.
    pub(crate) fn lesson_of(&mut self, due: &Due) -> Option<Lesson> {
        let asked = if is_watched(due) { self.next.take() } else { None };
        let slot = self.watched.put(Some(asked?));
        let lesson = Lesson::try_from(slot).ok();
        if lesson.is_none() {
            self.watched.take(slot);
        }
        lesson
    }

    /// The lesson of a message whose reply has come, or never will.
    fn take(&mut self, lesson: Option<Lesson>) -> Option<Arc<Asked>> {
        self.watched.take(lesson?.into()).flatten()
    }

    /// Nothing is learned of this one.
    fn drop_lesson(&mut self, lesson: Option<Lesson>) {
        if let Some(watched) = lesson.and_then(|lesson| self.watched.get_mut(lesson.into())) {
            *watched = None;
        }
    }

    /// Nothing is learned of what was sent.
    pub(super) fn ignore(&mut self) {
        self.parsed = None;
        self.watched.iter_mut().for_each(|watched| *watched = None);
    }

    /// Nothing is learned of the statement whose reply is next, and has this lesson: that holds more than would be told.
    fn forget_next(&mut self, lesson: Option<Lesson>) {
        let noisy = lesson.and_then(|lesson| self.watched.get(lesson.into()).cloned().flatten());
        let Some(noisy) = noisy else { return };
        for watched in self.watched.iter_mut() {
            *watched = watched.take().filter(|one| !Arc::ptr_eq(one, &noisy));
        }
    }

    /// The server skips a message.
    pub(crate) fn skipped(&mut self, due: &Due) {
        self.next = None;
        self.take(due.lesson);
    }

    /// Something is sent that may change where statements are parsed.
    pub(super) fn place_changes(&mut self) {
        self.unplaced.clear();
    }

    /// The server is asked for the settings.
    pub(super) fn settings_asked(&mut self) {
        self.placing = std::mem::take(&mut self.unplaced);
    }

    /// What was said before the server was asked was said here.
    pub(super) fn learn_asked(&mut self, descriptions: &Descriptions, place: &Place) {
        for (asked, said) in self.placing.drain(..) {
            descriptions.said(place, &asked, said);
        }
    }
}

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
        self.statements.watching.parsed = None;
        self.statements.watching.next = None;
        if !self.may_remedy(Remedy::Statements)
            || !is_sent_as_it_is(self.core.taker())
            || !self.facts.settings.are_plain()
            || self.facts.transaction.may_define()
        {
            return;
        }
        let stamp = Stamp { at: now, epoch: self.facts.changes().epoch() };
        if let Some(asked) = Asked::new(parse.text, parse.parameter_oids(), stamp) {
            let asked = Arc::new(asked);
            self.statements.watching.next = Some(Arc::clone(&asked));
            self.statements.watching.parsed = Some((unit, parse.statement.to_vec(), asked));
        }
    }

    /// A Describe of a statement is about to be sent.
    pub(crate) fn watch_describe(&mut self, unit: u64, name: &[u8]) {
        if !is_sent_as_it_is(self.core.taker()) {
            return;
        }
        let parsed = self.statements.watching.parsed.as_ref().filter(|(parsed_in, parsed, _)| {
            *parsed_in == unit && parsed == name // the types are those that it gets today
        });
        self.statements.watching.next = parsed.map(|(_, _, asked)| Arc::clone(asked));
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
        let next = self.core.queue().front().and_then(|front| front.lesson);
        let watching = &mut self.statements.watching;
        match reply {
            Reply::Async if tag == backend::NOTICE_RESPONSE => watching.forget_next(next),
            Reply::Part(due) if due.lesson.is_some() && tag == backend::PARAMETER_DESCRIPTION => {
                watching.parameters.clear();
                match body {
                    Some(body) => watching.parameters.extend_from_slice(body),
                    None => watching.drop_lesson(due.lesson),
                }
            }
            Reply::Last(due) => {
                if let Some(asked) = watching.take(due.lesson) {
                    self.learn_statement(now, tag, &asked, body);
                }
            }
            Reply::Failed(due) => {
                watching.take(due.lesson);
                for due in dropped {
                    watching.skipped(due);
                    self.facts.names.skipped(due);
                }
            }
            _ => {}
        }
    }

    /// The server has accepted a Parse, or described its statement.
    fn learn_statement(&mut self, now: Moment, tag: u8, asked: &Arc<Asked>, body: Option<&[u8]>) {
        self.prove(now);
        if !self.is_read_as_told() || asked.epoch() != self.facts.changes().epoch() {
            return;
        }
        let said = match tag {
            backend::PARSE_COMPLETE => Said::Accepted,
            backend::ROW_DESCRIPTION if body.is_none() => return,
            tag => {
                let row = body.filter(|_| tag == backend::ROW_DESCRIPTION).map(Box::from);
                Said::Described(Description {
                    parameters: Box::from(self.statements.watching.parameters.as_slice()),
                    row,
                })
            }
        };
        match self.facts.place(now) {
            Some(place) => self.config.common.descriptions.said(place, asked, said),
            None if self.statements.watching.unplaced.len() < UNPLACED_MAX => {
                self.statements.watching.unplaced.push((Arc::clone(asked), said));
            }
            None => {}
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
