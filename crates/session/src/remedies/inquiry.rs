//! What the session asks the server about itself, behind or ahead of the client's units, so that no trip is spent.
//!
//! Questions about the catalogue go out between transactions only (rule K2); the one about the transaction that runs is
//! a SHOW, which takes no snapshot.

use std::collections::VecDeque;

use onetrip_wire::pg::{DataRow, backend, frame, frontend};

use super::Rule;
use super::facts::ISOLATION_QUERY;
use crate::reply_queue::{Due, Expect, Owner, Reply};
use crate::session::{Session, SessionError, Verdict};

/// What the server is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    /// The isolation level of the transaction.
    Isolation,
    /// What the session's own state is.
    State,
    /// What users have added to the database.
    Catalogue,
    /// Whether SQL has made prepared statements.
    Names,
    /// Whether a cursor that was declared goes backward.
    Cursor,
}

/// Questions that are not answered, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    /// With whether a Sync of its own ends it.
    asked: VecDeque<(Question, bool)>,
    /// Name of the statement and the portal of the session's own; no program can guess it.
    name: Vec<u8>,
    /// Name of a statement that is never there.
    nowhere: Vec<u8>,
}

impl Inquiries {
    pub(crate) fn new(private: [u8; 8]) -> Self {
        let private = if Rule::Secret.is_kept() { u64::from_be_bytes(private) } else { 0 };
        let name = format!("onetrip_{private:016x}").into_bytes();
        let nowhere = [&name[..], b"_none"].concat();
        Self { asked: VecDeque::new(), name, nowhere }
    }

    /// Name of a statement that is never there.
    pub(super) fn nowhere(&self) -> &[u8] {
        &self.nowhere
    }

    /// What the session's own objects are called; others add to it.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether this question waits for its answer.
    pub(crate) fn is_asked(&self, question: Question) -> bool {
        self.asked.iter().any(|(asked, _)| *asked == question)
    }
}

impl Session {
    /// Asks in an extended group; `ends` adds its Sync.
    pub(crate) fn ask(&mut self, question: Question, text: &str, ends: bool) {
        self.put_own_statement(Owner::Inquiry, text.as_bytes());
        if ends {
            frame(&mut self.to_server, frontend::SYNC, |_| ());
            self.queue.sent(Due::own(Owner::Inquiry, Expect::Sync));
        }
        self.inquiries.asked.push_back((question, ends));
    }

    /// The server answers a question of the session's; a message that is not whole is of no use.
    pub(crate) fn inquiry_reply(&mut self, tag: u8, reply: Reply, body: &[u8], is_whole: bool) {
        let Some((question, _)) = self.inquiries.asked.front().copied() else { return };
        match tag {
            backend::DATA_ROW => match DataRow::decode(body) {
                Ok(row) if is_whole => self.learn(question, row.columns),
                _ => self.learn_nothing(question),
            },
            backend::COMMAND_COMPLETE if matches!(reply, Reply::Last(_)) => {
                self.inquiries.asked.pop_front();
                self.learned_all(question);
            }
            _ => {}
        }
    }

    /// The server would not answer.
    pub(crate) fn inquiry_failed(&mut self, message: &[u8]) -> Result<Verdict, SessionError> {
        match self.inquiries.asked.pop_front() {
            // It is part of the group that carries a BEGIN.
            Some((_, false)) => self.begin_failed(message),
            Some((question, true)) => {
                self.learn_nothing(question);
                Ok(Verdict::Replace(message.len()))
            }
            None => Ok(Verdict::Replace(message.len())),
        }
    }

    /// Asks for the level of the transaction that the unit just sent has begun.
    pub(crate) fn ask_for_level(&mut self) {
        if !self.transaction.wants_level || !self.may_send_own() || !self.needs_level() {
            return;
        }
        self.transaction.wants_level = false;
        self.ask(Question::Isolation, ISOLATION_QUERY, true);
    }
}
