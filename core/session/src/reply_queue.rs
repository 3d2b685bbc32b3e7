//! What the server still owes, in order: the heart of the session.
//!
//! Database replies come back in order, so one queue tells for every reply which message of which unit it answers.
//! The rules are those of the manual's "Message Flow":
//!
//! - every message of the extended protocol owes one reply, Sync and Query and FunctionCall owe a ReadyForQuery;
//! - after an error in an extended group the server skips everything up to the next Sync, a Query included, and
//!   owes nothing for it; that happens here and nowhere else;
//! - while it reads COPY data the server ignores Sync and Flush, also those that were sent before the client knew;
//! - COPY messages outside a COPY are ignored and owe nothing;
//! - notices, notifications and parameter changes come at any time and answer nothing.
//!
//! Messages whose replies are not for the client have another [`Taker`]; those that a remedy adds belong to no unit.

use std::collections::VecDeque;

use onetrip_ledger::Remedy;
use onetrip_wire::pg::backend;

use crate::slots::{Lesson, Slot};

/// A message that was sent, what it is part of, and who takes the reply. It is copied for every row: it stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// What the server owes for it.
    pub expect: Expect,
    /// The unit that it belongs to.
    pub unit: u64,
    /// Which of the unit's statements it is about; of a group of questions, which question.
    pub statement: Option<u16>,
    /// Who takes the reply.
    pub taker: Taker,
    /// What may be learnt from the reply, whoever takes it.
    pub lesson: Option<Lesson>,
}

const _: () = assert!(size_of::<Due>() <= 24, "a Due is copied for every row");

/// Who takes the reply to a message. A slot is a place in the taker's own memory: so nothing that a taker keeps of its
/// messages has to stay in step with the queue, and what an error makes the server skip goes back to whom it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Taker {
    /// The client, who sent it and waits for it.
    #[default]
    Client,
    /// Nobody: it is answered from memory and not sent.
    Nobody,
    /// A remedy: it has sent the message of its own accord, or the client has, and has its answer.
    Remedy(Remedy, Slot),
    /// What several remedies need.
    Service(Service, Slot),
}

/// What several remedies need, and sends messages for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Asks the server about itself.
    Inquiries,
    /// Runs ahead, in a shield.
    Flights,
    /// Runs again what was answered from memory, so that the server has the same unnamed objects.
    Unseen,
    /// Runs for real what was answered from memory, to see that it is the same.
    Shadow,
}

/// The unit of messages that are the session's own, and of what comes unasked.
pub(crate) const NO_UNIT: u64 = u64::MAX;

/// How many takers there are.
const TAKERS: usize = Taker::Service(Service::Shadow, Slot::NONE).number() + 1;

impl Taker {
    /// Tells takers apart, whatever their slots are.
    const fn number(self) -> usize {
        match self {
            Self::Client => 0,
            Self::Nobody => 1,
            Self::Remedy(remedy, _) => 2 + remedy as usize,
            Self::Service(service, _) => 2 + Remedy::ALL.len() + service as usize,
        }
    }

    /// Whether this is that remedy or service, whatever the slot is.
    pub(crate) fn is(self, other: impl Into<Self>) -> bool {
        self.number() == other.into().number()
    }
}

/// A remedy that keeps nothing of its message.
impl From<Remedy> for Taker {
    fn from(remedy: Remedy) -> Self {
        Self::Remedy(remedy, Slot::NONE)
    }
}

/// A service that keeps nothing of its message.
impl From<Service> for Taker {
    fn from(service: Service) -> Self {
        Self::Service(service, Slot::NONE)
    }
}

impl Due {
    /// A message of the client's.
    pub fn of_client(expect: Expect, unit: u64, statement: Option<u16>) -> Self {
        Self { expect, unit, statement, taker: Taker::Client, lesson: None }
    }

    /// A message of the session's own.
    pub(crate) fn own(taker: impl Into<Taker>, expect: Expect) -> Self {
        Self { expect, unit: NO_UNIT, statement: None, taker: taker.into(), lesson: None }
    }

    /// Whether the reply is for the session, not for the client.
    pub(crate) fn is_own(&self) -> bool {
        self.taker != Taker::Client
    }
}

/// Which reply a message owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// ParseComplete.
    Parse,
    /// BindComplete.
    Bind,
    /// ParameterDescription, then RowDescription or NoData.
    DescribeStatement,
    /// RowDescription or NoData.
    DescribePortal,
    /// Rows or a COPY, then CommandComplete, EmptyQueryResponse or PortalSuspended.
    Execute,
    /// CloseComplete.
    Close,
    /// ReadyForQuery.
    Sync,
    /// Any number of results, then ReadyForQuery.
    Query,
    /// FunctionCallResponse, then ReadyForQuery.
    FunctionCall,
    /// Nothing: it marks the end of COPY data that was sent before the server asked for it.
    CopyEnd,
}

impl Expect {
    fn is_extended(self) -> bool {
        matches!(
            self,
            Self::Parse
                | Self::Bind
                | Self::DescribeStatement
                | Self::DescribePortal
                | Self::Execute
                | Self::Close
        )
    }

    /// Ends with ReadyForQuery.
    fn ends_ready(self) -> bool {
        matches!(self, Self::Sync | Self::Query | Self::FunctionCall)
    }
}

/// What a message from the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// A part of what this message owes; more is to come.
    Part(Due),
    /// All that this message owed: it left the queue.
    Last(Due),
    /// An error that answers this message. An extended group's message left the queue, with all up to the next Sync.
    Failed(Due),
    /// The server asks for COPY data on behalf of this message.
    CopyIn(Due),
    /// Notice, notification or parameter change: it answers nothing.
    Async,
    /// Nobody asked for it.
    Unasked,
}

impl Reply {
    /// The message that is answered.
    pub(crate) fn due(&self) -> Option<Due> {
        match self {
            Self::Part(due) | Self::Last(due) | Self::Failed(due) | Self::CopyIn(due) => Some(*due),
            Self::Async | Self::Unasked => None,
        }
    }

    /// Whether it is for the session, not for the client.
    pub(crate) fn is_own(&self) -> bool {
        self.due().is_some_and(|due| due.is_own())
    }
}

/// The queue of what the server owes.
#[derive(Debug, Default)]
pub struct ReplyQueue {
    due: VecDeque<Due>,
    /// How many of them are whose.
    owed: [usize; TAKERS],
    /// An error was answered and the Sync that ends its group has not been sent yet.
    skipping: bool,
    /// The server reads COPY data.
    copying_in: bool,
}

impl ReplyQueue {
    /// Gives back room that is not used.
    pub(crate) fn rest(&mut self) {
        if self.due.is_empty() {
            self.due = VecDeque::new();
        }
    }

    /// Messages that owe a reply.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether the server owes nothing.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Whether the server owes this taker anything.
    pub(crate) fn owes(&self, taker: impl Into<Taker>) -> bool {
        self.owed[taker.into().number()] > 0
    }

    /// Whether the server owes the client anything.
    pub(crate) fn owes_client(&self) -> bool {
        self.owes(Taker::Client)
    }

    /// Whether the server owes the client nothing, skips nothing and reads no COPY data.
    pub(crate) fn owes_session_only(&self) -> bool {
        !self.owes_client() && !self.skipping && !self.copying_in
    }

    /// The message that is answered next.
    pub fn front(&self) -> Option<Due> {
        self.due.front().copied()
    }

    /// Whether all that is owed is for one statement: by a simple query, or by an Execute and the Sync after it.
    pub(crate) fn owes_one_statement(&self) -> bool {
        let mut due = self.due.iter().map(|due| due.expect);
        matches!(
            (due.next(), due.next(), due.next()),
            (Some(Expect::Query | Expect::Execute), None, None)
                | (Some(Expect::Execute), Some(Expect::Sync), None)
        )
    }

    /// Whether the server skips what comes, up to the next Sync.
    pub(crate) fn is_skipping(&self) -> bool {
        self.skipping
    }

    /// Whether the server reads COPY data.
    pub fn is_copying_in(&self) -> bool {
        self.copying_in
    }

    /// The client sent a message. Returns whether the server will answer it: it ignores what follows an error up to
    /// Sync, and a Sync inside COPY data.
    pub fn sent(&mut self, due: Due) -> bool {
        if self.copying_in && due.expect == Expect::Sync {
            return false;
        }
        if self.skipping {
            if due.expect != Expect::Sync {
                return false;
            }
            self.skipping = false;
        }
        self.push(due);
        true
    }

    /// The client ended COPY data (CopyDone or CopyFail).
    pub fn copy_ended(&mut self) {
        if self.copying_in {
            self.copying_in = false;
        } else if !self.due.is_empty() && !self.skipping {
            let unit = self.due.back().map_or(0, |last| last.unit);
            let expect = Expect::CopyEnd;
            self.push(Due::of_client(expect, unit, None));
        }
    }

    /// A message came from the server; `dropped` gets the messages that it will not answer any more.
    pub fn received(&mut self, tag: u8, dropped: impl FnMut(Due)) -> Reply {
        use Expect::{Bind, Close, DescribePortal, DescribeStatement, Execute, FunctionCall, Parse, Query};
        if matches!(
            tag,
            backend::NOTICE_RESPONSE | backend::NOTIFICATION_RESPONSE | backend::PARAMETER_STATUS
        ) {
            return Reply::Async;
        }
        let Some(front) = self.front() else {
            if tag == backend::READY_FOR_QUERY {
                // It answers a Sync that was taken for part of COPY data: the server had failed before it got there.
                self.skipping = false;
            }
            return Reply::Unasked;
        };
        let part = Reply::Part(front);
        match (tag, front.expect) {
            (backend::ERROR_RESPONSE, _) => self.failed(front, dropped),
            (backend::READY_FOR_QUERY, expect) if expect.ends_ready() => self.last(front),
            (backend::PARSE_COMPLETE, Parse)
            | (backend::BIND_COMPLETE, Bind)
            | (backend::CLOSE_COMPLETE, Close)
            | (backend::ROW_DESCRIPTION | backend::NO_DATA, DescribeStatement | DescribePortal)
            | (
                backend::COMMAND_COMPLETE | backend::EMPTY_QUERY_RESPONSE | backend::PORTAL_SUSPENDED,
                Execute,
            ) => self.last(front),
            (backend::PARAMETER_DESCRIPTION, DescribeStatement)
            | (backend::FUNCTION_CALL_RESPONSE, FunctionCall)
            | (backend::ROW_DESCRIPTION | backend::COMMAND_COMPLETE | backend::EMPTY_QUERY_RESPONSE, Query) => {
                part
            }
            (backend::COPY_IN_RESPONSE | backend::COPY_BOTH_RESPONSE, Query | Execute) => {
                self.copy_in_began(dropped);
                Reply::CopyIn(front)
            }
            (
                backend::DATA_ROW | backend::COPY_OUT_RESPONSE | backend::COPY_DATA | backend::COPY_DONE,
                Query | Execute,
            ) => part,
            _ => Reply::Unasked,
        }
    }

    /// Books what the message at the front still owes on another unit, and on a statement of that one.
    pub(crate) fn move_front(&mut self, unit: u64, statement: Option<u16>) {
        if let Some(front) = self.due.front_mut() {
            front.unit = unit;
            front.statement = statement;
        }
    }

    /// What the server owes this unit is another taker's from now on; how many messages that is.
    pub(crate) fn hand_over(&mut self, unit: u64, taker: Taker) -> usize {
        let Self { due, owed, .. } = self;
        let mut count = 0;
        for due in due.iter_mut().filter(|due| due.unit == unit && due.taker != taker) {
            owed[due.taker.number()] -= 1;
            owed[taker.number()] += 1;
            due.taker = taker;
            count += 1;
        }
        count
    }

    fn push(&mut self, due: Due) {
        self.owed[due.taker.number()] += 1;
        self.due.push_back(due);
    }

    fn pop(&mut self) {
        if let Some(due) = self.due.pop_front() {
            self.owed[due.taker.number()] -= 1;
        }
    }

    fn last(&mut self, front: Due) -> Reply {
        self.pop();
        if front.expect.ends_ready() || front.expect == Expect::Execute {
            self.copying_in = false;
        }
        while self.due.front().is_some_and(|next| next.expect == Expect::CopyEnd) {
            self.pop();
        }
        Reply::Last(front)
    }

    fn failed(&mut self, front: Due, mut dropped: impl FnMut(Due)) -> Reply {
        self.copying_in = false;
        if front.expect.is_extended() {
            self.pop();
            while let Some(next) = self.due.front().filter(|next| next.expect != Expect::Sync).copied() {
                self.pop();
                if next.expect != Expect::CopyEnd {
                    dropped(next);
                }
            }
            self.skipping = self.due.is_empty();
        }
        Reply::Failed(front)
    }

    /// The server went over to reading COPY data: it has ignored, or will ignore, the Syncs sent up to its end.
    fn copy_in_began(&mut self, mut dropped: impl FnMut(Due)) {
        let end = self.due.iter().position(|due| due.expect == Expect::CopyEnd);
        let ignored_until = end.unwrap_or(self.due.len());
        let mut position = 0;
        let owed = &mut self.owed;
        self.due.retain(|due| {
            let ignored = (1..ignored_until).contains(&position) && due.expect == Expect::Sync;
            let kept = !ignored && Some(position) != end;
            position += 1;
            if ignored {
                dropped(*due);
            }
            owed[due.taker.number()] -= usize::from(!kept);
            kept
        });
        self.copying_in = end.is_none();
    }
}
