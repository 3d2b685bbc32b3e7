//! What the session asks the server about itself, so that no trip of the program's is spent.
//!
//! Three ways, and none that the program can notice:
//!
//! ```text
//!  alone    SHOW transaction_isolation, Sync                             behind the unit that is to be judged by it
//!  between  BEGIN …; SET LOCAL …; question …, SET LOCAL …, Sync; ROLLBACK, Sync       outside of the program's transactions
//!  within   SAVEPOINT s; SET LOCAL …; question …, SET LOCAL …, Sync; ROLLBACK TO s; RELEASE s, Sync
//! ```
//!
//! The settings of the program's session do not reach a question: it runs at READ COMMITTED, waits for no lock, is not
//! compiled, and has a time limit. An error ends its group and leaves nothing behind. What is asked, and when, is decided
//! by the session (`session/asking.rs`).

use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_sql::purity::{self, Lookup, SessionQuestion, Survey};
use onetrip_wire::pg::{DataRow, StatementOrPortal, Values, backend, frame, frontend};

use super::own::{NO_LIMIT, put_close, put_own, put_own_statement};
use super::said::Said;
use crate::facts::{ActsAsked, Facts, Stamp};
use crate::own_names::OwnNames;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::session::core::Core;
use crate::slots::{Slot, Slots};

/// Takes no snapshot.
pub(crate) const ISOLATION_QUERY: &str = "SHOW transaction_isolation";
/// A transaction of the session's own: whatever its defaults are, it waits for no safe snapshot and writes nothing.
const OWN_BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE";
/// First of all, so that the next statement is not compiled.
const NO_JIT: &str = "SET LOCAL jit TO off";
/// Questions take one part in so many of a session's time on the server, at most, beside a burst.
pub(crate) const PARTS_OF_TIME: u32 = 20;

/// Statements of a group.
const STATEMENTS_MAX: usize = 16;

/// A survey under way.
#[derive(Debug)]
struct Surveying {
    survey: Survey,
    stamp: Stamp,
    acts_asked: ActsAsked,
    /// What is to be asked next; none while that is under way.
    next: Option<Vec<purity::Question>>,
}

/// What the server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// The isolation level of the transaction, at this count of what may have changed it.
    Level(u32),
    /// What the session's own state is.
    State,
    /// The settings that an answer to a Parse may depend on.
    Settings,
    /// Something of the catalogue.
    Lookup(Lookup),
    /// Whether SQL has made prepared statements.
    Names,
    /// Whether the cursor of this reader goes backward.
    Cursor(u64),
}

/// A question in words; its parameter is the text of an array.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) text: String,
    pub(crate) parameter: Option<String>,
}

/// How a group is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Alone,
    Between,
    Within,
}

/// Questions that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    groups: Slots<Group>,
    /// What is being looked up in the catalogue.
    surveying: Option<Box<Surveying>>,
    /// Time of the server that questions have taken, less what has been forgotten by `spent_at`.
    spent: Duration,
    spent_at: Moment,
}

/// Questions that were sent together.
#[derive(Debug)]
struct Group {
    way: Way,
    /// In the order of their statements; a statement's number is that of the message's [`Due`].
    questions: Vec<Question>,
    sent_at: Moment,
    /// What ReadyForQuery said before.
    status_before: Option<u8>,
    /// Syncs that are not answered.
    syncs: u8,
    has_failed: bool,
    /// What the session has set itself, as far as it is told.
    own: OwnSettings,
    /// Rows that have told of it.
    own_rows: u8,
}

/// What a session has set itself that matters to what is sent ahead for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnSettings {
    /// It surely has no statement_timeout.
    pub(crate) is_untimed: bool,
    /// No error ends it (`exit_on_error`).
    pub(crate) survives_errors: bool,
}

/// The number of a message that is about no question.
const FRAME: u16 = u16::MAX;
/// The number of the messages that make the settings plain.
const PLAIN: u16 = FRAME - 1;

impl Inquiries {
    /// Whether this question waits for its answer.
    pub(crate) fn is_asked(&self, is_it: impl Fn(Question) -> bool) -> bool {
        self.groups.iter().any(|group| group.questions.iter().copied().any(&is_it))
    }

    /// Whether the catalogue is being looked into.
    pub(crate) fn is_surveying(&self) -> bool {
        self.surveying.is_some()
    }

    /// Whether anything is asked but levels.
    pub(crate) fn is_busy(&self) -> bool {
        self.groups.iter().any(|group| group.way != Way::Alone)
    }

    /// Time of the server that questions have taken. Of each span of time that passes, one part in `parts` is forgotten.
    pub(crate) fn spent(&self, now: Moment, parts: u32) -> Duration {
        self.spent.saturating_sub(Duration::from_nanos(now.since(self.spent_at)) / parts)
    }
}

/// What to make of a reply.
#[derive(Debug)]
pub(crate) enum Heard<'a> {
    /// Nothing.
    Nothing,
    /// It is a row of the answer to a question that was asked then; `own` is what the session has set itself.
    Row { asked_at: Moment, question: Question, row: Values<'a>, own: OwnSettings },
    /// The server does not say it.
    Unknown(Question),
    /// The group is answered in full.
    GroupEnds,
}

/// A group that is answered in full.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) way: Way,
    pub(crate) has_failed: bool,
    /// What is not answered, as it has failed.
    pub(crate) failed: Vec<Question>,
    /// The server's status is as it was before.
    pub(crate) is_taken_back: bool,
}

/// How questions are put.
impl Inquiries {
    /// Asks for the level of the transaction. It takes no snapshot, and cannot wait.
    pub(crate) fn ask_level(&mut self, core: &mut Core, own_names: &OwnNames, now: Moment, count: u32) {
        let slot = self.begin_group(now, Way::Alone, vec![Question::Level(count)], 1);
        let taker = Taker::Service(Service::Inquiries, slot);
        put_own_statement(core, own_names, taker, ISOLATION_QUERY.as_bytes());
        put_inquiry_sync(core, slot);
    }

    /// Asks these questions together, in a transaction or a savepoint of the session's own.
    pub(crate) fn ask_all(
        &mut self,
        core: &mut Core,
        own_names: &OwnNames,
        now: Moment,
        way: Way,
        asked: &[Asked],
    ) {
        let savepoint = String::from_utf8_lossy(own_names.name()).into_owned();
        let (begin, ends) = match way {
            Way::Within => (
                format!("SAVEPOINT {savepoint}"),
                vec![format!("ROLLBACK TO SAVEPOINT {savepoint}"), format!("RELEASE SAVEPOINT {savepoint}")],
            ),
            Way::Between | Way::Alone => (OWN_BEGIN.to_owned(), vec!["ROLLBACK".to_owned()]),
        };
        let questions: Vec<Question> =
            asked.iter().take(STATEMENTS_MAX).map(|asked| asked.question).collect();
        let slot = self.begin_group(now, way, questions, 2);
        let put = |core: &mut Core, number, text: &str, parameter: Option<&str>| {
            put_question(core, own_names, slot, number, text, parameter);
        };
        for (number, text) in [(FRAME, &*begin), (FRAME, NO_JIT), (PLAIN, &*SessionQuestion::Plain.sql())] {
            put(core, number, text, None);
        }
        for (number, Asked { text, parameter, .. }) in (0..).zip(asked.iter().take(STATEMENTS_MAX)) {
            put(core, number, text, parameter.as_deref());
        }
        put(core, FRAME, NO_LIMIT, None);
        put_inquiry_sync(core, slot);
        for text in &ends {
            put(core, FRAME, text, None);
        }
        let portal = StatementOrPortal::Portal(own_names.name());
        put_close(core, inquiry_due(slot, FRAME, Expect::Close), portal);
        put_inquiry_sync(core, slot);
    }

    /// A group of so many Syncs is about to be put.
    fn begin_group(&mut self, now: Moment, way: Way, questions: Vec<Question>, syncs: u8) -> Slot {
        self.groups.put(Group {
            way,
            questions,
            sent_at: now,
            status_before: None,
            syncs,
            has_failed: false,
            own: OwnSettings::default(),
            own_rows: 0,
        })
    }
}

/// What the server says to them.
impl Inquiries {
    /// The server answers a message of a question's group.
    pub(crate) fn take_reply<'a>(&mut self, core: &Core, slot: Slot, said: &Said<'a>) -> Heard<'a> {
        let server_status = core.server_status();
        let Some(group) = self.groups.get_mut(slot) else { return Heard::Nothing };
        group.status_before.get_or_insert(server_status);
        let body = said.body();
        if said.is_failure() {
            group.has_failed = true;
            return Heard::Nothing;
        }
        if said.tag == backend::READY_FOR_QUERY {
            group.syncs = group.syncs.saturating_sub(1);
            return if group.syncs == 0 { Heard::GroupEnds } else { Heard::Nothing };
        }
        let number = said.reply.due().and_then(|due| due.statement).filter(|number| *number != FRAME);
        if number == Some(PLAIN) {
            if let (backend::DATA_ROW, Ok(row)) = (said.tag, DataRow::decode(body)) {
                let before = row.columns.iter().next().flatten();
                match group.own_rows {
                    0 => group.own.is_untimed = before == Some(b"0"),
                    1 => group.own.survives_errors = before == Some(b"off"),
                    _ => {}
                }
                group.own_rows = group.own_rows.saturating_add(1);
            }
            return Heard::Nothing;
        }
        // What is asked alone is numbered by nobody.
        let position = number.map_or(0, usize::from);
        let (asked_at, own) = (group.sent_at, group.own);
        let Some(question) = group.questions.get(position).copied() else { return Heard::Nothing };
        if number.is_none() && group.way != Way::Alone || said.tag != backend::DATA_ROW {
            return Heard::Nothing;
        }
        match DataRow::decode(body) {
            Ok(row) if said.is_whole => Heard::Row { asked_at, question, row: row.columns, own },
            _ => Heard::Unknown(question),
        }
    }

    /// The server has answered a group in full; `status` is what it says then, `distance` the way there and back.
    pub(crate) fn group_ends(
        &mut self,
        now: Moment,
        slot: Slot,
        status: &[u8],
        distance: Duration,
    ) -> Option<Answered> {
        let group = self.groups.take(slot)?;
        let took = Duration::from_nanos(now.since(group.sent_at)).saturating_sub(distance);
        if group.way != Way::Alone {
            let spent = self.spent(now, PARTS_OF_TIME) + took;
            (self.spent, self.spent_at) = (spent, now);
        }
        let is_taken_back = status == [group.status_before.unwrap_or_default()];
        let Group { way, has_failed, questions, .. } = group;
        let failed = if has_failed { questions } else { Vec::new() };
        Some(Answered { way, has_failed, failed, is_taken_back })
    }
}

/// What is being looked up in the catalogue.
impl Inquiries {
    /// What is to be asked next about names, where somebody wants to know.
    pub(crate) fn ask_about_names(
        &mut self,
        facts: &mut Facts,
        now: Moment,
        stamp: Stamp,
    ) -> impl Iterator<Item = Asked> {
        let is_over = |surveying: &Surveying| {
            let Stamp { epoch, .. } = surveying.stamp;
            !surveying.stamp.is_fresh(now, stamp.epoch) || epoch != stamp.epoch
        };
        if self.surveying.as_deref().is_some_and(is_over) {
            self.surveying = None;
        }
        if self.surveying.is_none() && facts.wants_lookup() {
            let mut survey = Survey::new(facts.take_wanted());
            let next = Some(survey.questions());
            let acts_asked = facts.changes().acts_asked(stamp.at);
            self.surveying = Some(Box::new(Surveying { survey, stamp, acts_asked, next }));
        }
        let next = self.surveying.as_mut().and_then(|surveying| surveying.next.take()).unwrap_or_default();
        next.into_iter().map(|purity::Question { lookup, parameter }| Asked {
            question: Question::Lookup(lookup),
            text: lookup.sql().to_owned(),
            parameter,
        })
    }

    /// A row of an answer about names.
    pub(crate) fn learn_name(&mut self, lookup: Lookup, columns: &[Option<&[u8]>]) {
        let Some(surveying) = &mut self.surveying else { return };
        if surveying.survey.row(lookup, columns).is_err() {
            self.surveying = None;
        }
    }

    /// The server would not say it.
    pub(crate) fn stop_survey(&mut self) {
        self.surveying = None;
    }

    /// All that was asked is answered: it is known from now on, or leads to more questions.
    pub(crate) fn names_answered(&mut self, facts: &mut Facts, has_failed: bool) {
        if let Some(mut surveying) = self.surveying.take_if(|one| one.next.is_none() && !has_failed) {
            if let Some(acts) = surveying.survey.take_acts() {
                facts.changes().acts_told(surveying.acts_asked, acts);
            }
            // An answer may lead to more questions.
            let questions = surveying.survey.questions();
            if questions.is_empty() {
                if let (Ok(findings), Some(database)) = (surveying.survey.finish(), facts.database()) {
                    database.catalogue().absorb(findings, surveying.stamp);
                }
            } else {
                surveying.next = Some(questions);
                self.surveying = Some(surveying);
            }
        }
    }
}

/// One statement of a group, by the session's private name.
fn put_question(
    core: &mut Core,
    own_names: &OwnNames,
    slot: Slot,
    number: u16,
    text: &str,
    parameter: Option<&str>,
) {
    let values = parameter.map(|parameter| {
        let length = (parameter.len() as u32).to_be_bytes();
        [&[0, 1][..], &length, parameter.as_bytes()].concat()
    });
    let parameters = values.as_deref().map(|values| Values::decode(values).unwrap_or_default());
    let due = inquiry_due(slot, number, Expect::Execute);
    put_own(core, own_names, due, text.as_bytes(), parameters.unwrap_or_default());
}

fn put_inquiry_sync(core: &mut Core, slot: Slot) {
    frame(core.server_outbox(), frontend::SYNC, |_| ());
    core.owe_own(inquiry_due(slot, FRAME, Expect::Sync));
}

/// A message of a group, about the question of this number.
fn inquiry_due(slot: Slot, number: u16, expect: Expect) -> Due {
    Due { statement: Some(number), ..Due::own(Taker::Service(Service::Inquiries, slot), expect) }
}
