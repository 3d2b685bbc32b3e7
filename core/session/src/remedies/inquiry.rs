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
//! by `asking`.

use std::time::Duration;

use onetrip_ledger::Moment;
use onetrip_sql::purity::{self, Lookup, SessionQuestion, Survey};
use onetrip_wire::pg::{DataRow, Values, backend, frame, frontend};

use super::Rule;
use crate::contract::SessionError;
use crate::facts::{ActsAsked, Stamp};
use crate::remedies::Session;
use crate::reply_queue::{Due, Expect, Service, Taker};
use crate::services::Said;
use crate::services::{NO_LIMIT, put_closes, put_own};
use crate::slots::{Slot, Slots};

/// Takes no snapshot.
pub(super) const ISOLATION_QUERY: &str = "SHOW transaction_isolation";
/// A transaction of the session's own: whatever its defaults are, it waits for no safe snapshot and writes nothing.
const OWN_BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ ONLY, NOT DEFERRABLE";
/// First of all, so that the next statement is not compiled.
const NO_JIT: &str = "SET LOCAL jit TO off";
/// Questions take one part in so many of a session's time on the server, at most, beside a burst.
pub(super) const PARTS_OF_TIME: u32 = 20;

/// Statements of a group.
const STATEMENTS_MAX: usize = 16;

/// A survey under way.
#[derive(Debug)]
pub(super) struct Surveying {
    pub(super) survey: Survey,
    pub(super) stamp: Stamp,
    pub(super) acts_asked: ActsAsked,
    /// What is to be asked next; none while that is under way.
    pub(super) next: Option<Vec<purity::Question>>,
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
    pub(super) question: Question,
    pub(super) text: String,
    pub(super) parameter: Option<String>,
}

/// How a group is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Alone,
    Between,
    Within,
}

/// Questions that are not answered.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    groups: Slots<Group>,
    /// What is being looked up in the catalogue.
    pub(super) surveying: Option<Surveying>,
    /// What groups took on the server of late, as far as is known, and up to when that is counted.
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
    /// Whether the session has no statement_timeout, once that is told.
    is_untimed: Option<bool>,
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

    /// Whether anything is asked but levels.
    pub(super) fn is_busy(&self) -> bool {
        self.groups.iter().any(|group| group.way != Way::Alone)
    }

    /// What questions took on the server of late: it is forgotten at one part in `parts` of the time that passes.
    pub(super) fn spent(&self, now: Moment, parts: u32) -> Duration {
        self.spent.saturating_sub(Duration::from_nanos(now.since(self.spent_at)) / parts)
    }
}

impl Session {
    /// Asks for the level of the transaction. It takes no snapshot, and cannot wait.
    pub(super) fn ask_level(&mut self, now: Moment, count: u32) {
        let slot = self.begin_group(now, Way::Alone, vec![Question::Level(count)], 1);
        let taker = Taker::Service(Service::Inquiries, slot);
        self.cx().put_own_statement(taker, ISOLATION_QUERY.as_bytes());
        self.put_inquiry_sync(slot);
    }

    /// Asks these questions together, in a transaction or a savepoint of the session's own.
    pub(super) fn ask_all(&mut self, now: Moment, way: Way, asked: Vec<Asked>) {
        let savepoint = String::from_utf8_lossy(self.own_names.name()).into_owned();
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
        for (number, text) in [(FRAME, &*begin), (FRAME, NO_JIT), (PLAIN, &*SessionQuestion::Plain.sql())] {
            self.put_question(slot, number, text, None);
        }
        for (number, Asked { text, parameter, .. }) in (0..).zip(asked.iter().take(STATEMENTS_MAX)) {
            self.put_question(slot, number, text, parameter.as_deref());
        }
        self.put_question(slot, FRAME, NO_LIMIT, None);
        self.put_inquiry_sync(slot);
        for text in &ends {
            self.put_question(slot, FRAME, text, None);
        }
        put_closes(&mut self.core, &self.own_names, inquiry_due(slot, FRAME, Expect::Close));
        self.put_inquiry_sync(slot);
    }

    /// A group of so many Syncs is about to be put.
    fn begin_group(&mut self, now: Moment, way: Way, questions: Vec<Question>, syncs: u8) -> Slot {
        self.inquiries.groups.put(Group {
            way,
            questions,
            sent_at: now,
            status_before: None,
            syncs,
            has_failed: false,
            is_untimed: None,
        })
    }

    /// One statement of a group, by the session's private name.
    fn put_question(&mut self, slot: Slot, number: u16, text: &str, parameter: Option<&str>) {
        let values = parameter.map(|parameter| {
            let length = (parameter.len() as u32).to_be_bytes();
            [&[0, 1][..], &length, parameter.as_bytes()].concat()
        });
        let parameters = values.as_deref().map(|values| Values::decode(values).unwrap_or_default());
        let due = inquiry_due(slot, number, Expect::Execute);
        put_own(&mut self.core, &self.own_names, due, text.as_bytes(), parameters.unwrap_or_default());
    }

    fn put_inquiry_sync(&mut self, slot: Slot) {
        frame(self.core.server_outbox(), frontend::SYNC, |_| ());
        self.core.owe_own(inquiry_due(slot, FRAME, Expect::Sync));
    }

    /// The server answers a message of a question's group.
    pub(crate) fn inquiry_reply(&mut self, slot: Slot, said: &Said<'_>) -> Result<(), SessionError> {
        let server_status = self.core.server_status();
        let Some(group) = self.inquiries.groups.get_mut(slot) else { return Ok(()) };
        group.status_before.get_or_insert(server_status);
        let body = said.body();
        if said.is_failure() {
            group.has_failed = true;
            return Ok(());
        }
        if said.tag == backend::READY_FOR_QUERY {
            group.syncs = group.syncs.saturating_sub(1);
            if group.syncs == 0 {
                return self.group_ends(said.now, slot, body);
            }
            return Ok(());
        }
        let number = said.reply.due().and_then(|due| due.statement).filter(|number| *number != FRAME);
        if number == Some(PLAIN) {
            if let (backend::DATA_ROW, Ok(row)) = (said.tag, DataRow::decode(body)) {
                let limit = row.columns.iter().next().flatten();
                group.is_untimed.get_or_insert(limit == Some(b"0"));
            }
            return Ok(());
        }
        // What is asked alone is numbered by nobody.
        let position = number.map_or(0, usize::from);
        let (sent_at, is_untimed) = (group.sent_at, group.is_untimed == Some(true));
        let Some(question) = group.questions.get(position).copied() else { return Ok(()) };
        if number.is_none() && group.way != Way::Alone {
            return Ok(());
        }
        if said.tag == backend::DATA_ROW {
            match DataRow::decode(body) {
                Ok(row) if said.is_whole => self.learn(sent_at, question, row.columns, is_untimed),
                _ => self.learn_nothing(question),
            }
        }
        Ok(())
    }

    /// The server has answered a group in full; `status` is what it says then.
    fn group_ends(&mut self, now: Moment, slot: Slot, status: &[u8]) -> Result<(), SessionError> {
        let Some(group) = self.inquiries.groups.take(slot) else { return Ok(()) };
        let took = Duration::from_nanos(now.since(group.sent_at)).saturating_sub(self.facts.path.distance());
        if group.way != Way::Alone {
            let spent = self.inquiries.spent(now, PARTS_OF_TIME) + took;
            (self.inquiries.spent, self.inquiries.spent_at) = (spent, now);
        }
        if group.has_failed {
            group.questions.iter().for_each(|question| self.learn_nothing(*question));
        }
        let was = group.status_before.unwrap_or_default();
        if status != [was] && Rule::ShieldEnds.is_kept() {
            let message = "a question of onetrip's own has changed the state of the transaction";
            let hint = "Connect again; leave remedies out by --remedies none.";
            self.refuse("08006", message, Some(hint));
            return Err(SessionError::ShieldBroken);
        }
        self.group_answered(now, group.way, group.has_failed);
        Ok(())
    }
}

/// A message of a group, about the question of this number.
fn inquiry_due(slot: Slot, number: u16, expect: Expect) -> Due {
    Due { statement: Some(number), ..Due::own(Taker::Service(Service::Inquiries, slot), expect) }
}
