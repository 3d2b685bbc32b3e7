//! What is learned from the server's replies to the Parse and Describe messages of all clients, and which names a session's
//! statements have.

use std::sync::Arc;

use onetrip_ledger::{Moment, Remedy};
use onetrip_wire::pg::{Parse, backend};

use crate::config::SessionConfig;
use crate::facts::common::{Asked, Description, Descriptions, Said};
use crate::facts::{Facts, Place, Stamp};
use crate::reply_queue::{Due, Expect, Reply, Taker};
use crate::session::core::Core;
use crate::slots::{Lesson, Slots};

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
    pub(crate) fn ignore(&mut self) {
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

    /// The server is asked for the settings: what it has said before was said there. Where a read may have been more than one,
    /// that is not sure before it is proven.
    pub(crate) fn settings_asked(&mut self, facts: &Facts, now: Moment) {
        self.placing.clear();
        self.drop_doubtful(facts, now);
        if facts.are_reads_proven() {
            self.placing.append(&mut self.unplaced);
        }
    }

    /// What was said before the server was asked was said here, unless it may have been before the server has read its
    /// configuration, which was by this moment.
    pub(crate) fn learn_asked(&mut self, descriptions: &Descriptions, place: &Place, read_by: Moment) {
        for (asked, said) in self.placing.drain(..).filter(|(asked, _)| asked.is_since(read_by)) {
            descriptions.said(place, &asked, said);
        }
    }

    /// The server has answered what it was asked. If it is known where the session is, what was said since this last may have
    /// changed was said there.
    pub(crate) fn learn_unplaced(&mut self, facts: &Facts, descriptions: &Descriptions, now: Moment) {
        let Some(place) = facts.place(now) else { return };
        self.drop_doubtful(facts, now);
        for (asked, said) in self.unplaced.drain(..) {
            descriptions.said(place, &asked, said);
        }
    }

    /// Keeps what was surely said where the session is now.
    fn drop_doubtful(&mut self, facts: &Facts, now: Moment) {
        self.unplaced.retain(|(asked, _)| is_of_now(facts, asked) && asked.is_recent(now));
    }
}

/// Whether the server surely reads a text as it did for the sessions that asked.
pub(crate) fn is_read_as_told(facts: &Facts) -> bool {
    facts.settings.are_plain() && !facts.transaction.may_define()
}

/// Whether nothing was sent or has ended, since this Parse was sent, that may have changed the catalogue or where names are
/// resolved. A setting may have been made for one transaction alone, and it ends with a failure.
fn is_of_now(facts: &Facts, asked: &Asked) -> bool {
    asked.is_of(facts.changes().epoch(), facts.generation())
}

impl Watching {
    /// A Parse of the client's is about to be sent: whether the server accepts it will be known, if the remedy `is_on`.
    pub(crate) fn sees_parse(
        &mut self,
        (core, facts): (&Core, &Facts),
        is_on: bool,
        now: Moment,
        unit: u64,
        parse: Parse<'_>,
    ) {
        self.parsed = None;
        self.next = None;
        if !is_on || !is_sent_as_it_is(core.taker()) || !is_read_as_told(facts) {
            return;
        }
        let stamp = Stamp { at: now, epoch: facts.changes().epoch() };
        let asked = Asked::new(parse.text, parse.parameter_oids(), stamp, facts.generation());
        if let Some(asked) = asked {
            let asked = Arc::new(asked);
            self.next = Some(Arc::clone(&asked));
            self.parsed = Some((unit, parse.statement.to_vec(), asked));
        }
    }

    /// A Describe of a statement is about to be sent.
    pub(crate) fn sees_describe(&mut self, core: &Core, unit: u64, name: &[u8]) {
        if !is_sent_as_it_is(core.taker()) {
            return;
        }
        let parsed = self.parsed.as_ref().filter(|(parsed_in, parsed, _)| {
            *parsed_in == unit && parsed == name // the types are those that it gets today
        });
        self.next = parsed.map(|(_, _, asked)| Arc::clone(asked));
    }

    /// What the server says; `dropped` will not be answered. Returns the Parse that it accepts, or whose statement it
    /// describes.
    pub(crate) fn hears(
        &mut self,
        (core, facts): (&Core, &mut Facts),
        tag: u8,
        reply: Reply,
        body: Option<&[u8]>,
        dropped: &[Due],
    ) -> Option<Arc<Asked>> {
        let next = core.queue().front().and_then(|front| front.lesson);
        match reply {
            Reply::Async if tag == backend::NOTICE_RESPONSE => self.forget_next(next),
            Reply::Part(due) if due.lesson.is_some() && tag == backend::PARAMETER_DESCRIPTION => {
                self.parameters.clear();
                match body {
                    Some(body) => self.parameters.extend_from_slice(body),
                    None => self.drop_lesson(due.lesson),
                }
            }
            Reply::Last(due) => return self.take(due.lesson),
            Reply::Failed(due) => {
                self.take(due.lesson);
                for due in dropped {
                    self.skipped(due);
                    facts.names.skipped(due);
                }
            }
            _ => {}
        }
        None
    }

    /// The server has accepted a Parse, or described its statement, and what was sent before it is proven.
    pub(crate) fn learn(
        &mut self,
        (facts, config): (&Facts, &SessionConfig),
        now: Moment,
        tag: u8,
        asked: &Arc<Asked>,
        body: Option<&[u8]>,
    ) {
        if !is_read_as_told(facts) || !is_of_now(facts, asked) {
            return;
        }
        let said = match tag {
            backend::PARSE_COMPLETE => Said::Accepted,
            backend::ROW_DESCRIPTION if body.is_none() => return,
            tag => {
                let row = body.filter(|_| tag == backend::ROW_DESCRIPTION).map(Box::from);
                Said::Described(Description { parameters: Box::from(self.parameters.as_slice()), row })
            }
        };
        match facts.place(now) {
            Some(place) => config.common.descriptions.said(place, asked, said),
            None if self.unplaced.len() < UNPLACED_MAX => self.unplaced.push((Arc::clone(asked), said)),
            None => {}
        }
    }
}
