//! The remedy `begin`: a BEGIN, SAVEPOINT or RELEASE is sent at once and answered at once.
//!
//! ```text
//!  client            session                                   server
//!    | Query BEGIN -->|                                           |
//!    |<- BEGIN, T ----| Parse Bind Execute Close Close Flush ---->|   Sent
//!    | INSERT ------->| INSERT ---------------------------------->|   Sent, followed: no second unit goes
//!    |                |<--------- 1 2 BEGIN 3 3: confirmed -------|
//!    |<---------------|<--------- the INSERT's reply -------------|
//! ```
//!
//! Where the client is slower than the path, a Sync of the session's own follows the confirmation, so that the server
//! is where a simple query leaves it. What the server says to the session is dropped here. One such statement may go
//! behind another that is not confirmed; below, BEGIN stands for all of them.

use onetrip_ledger::{Remedy, TransactionStatus};
use onetrip_wire::pg::{
    Bind, CommandComplete, ErrorResponse, Execute, HEADER_BYTES, Parse, StatementOrPortal,
    TransactionStatus as WireStatus, backend, encode_ready_for_query, frame, frontend,
};

use super::Rule;
use super::remedy::{Answer, Asked, Change, Cx, Need, Texts, Told};
use crate::contract::{SessionError, Verdict};
use crate::events::Event;
use crate::reading::grammar::{self, Control, Kind};
use crate::reading::place_of;
use crate::reply_queue::{Due, Expect, Reply};
use crate::services::{Own, Said};
use crate::session::core::Core;
use crate::slots::Slot;

/// Savepoints of one transaction that are followed.
const SAVEPOINTS_MAX: usize = 1024;
/// Bytes that are kept for later, at most.
const KEPT_BYTES_MAX: usize = 1024 * 1024;

/// A BEGIN that was answered before the server has taken it.
#[derive(Debug, Default)]
pub(crate) struct EarlyBegin {
    state: State,
    /// The statement in front, which can be answered.
    claimed: Option<Control>,
    /// What the server said unasked, for just before the next ReadyForQuery.
    until_ready: Vec<u8>,
    /// Notifications, for just before the ReadyForQuery that ends the transaction.
    until_idle: Vec<u8>,
    /// The session has been sent a notification: it listens.
    listens: bool,
    /// It may be told what the server logs of each statement (`client_min_messages`): a BEGIN would bring a notice.
    hears_log: bool,
    /// Savepoints that are surely there, the last one last; others may be between and below them, but not above.
    savepoints: Vec<Vec<u8>>,
    /// The session has prepared a statement that may end savepoints, and may run it unseen.
    may_end_unseen: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is under way.
    #[default]
    None,
    /// The server has not confirmed it.
    Sent {
        /// A unit of the client's went behind it.
        followed: bool,
    },
    /// It is confirmed, and the session's own Sync is under way.
    Ending,
}

impl EarlyBegin {
    /// Whether the client's next unit must wait (rule B7).
    pub(crate) fn holds_back(&self) -> bool {
        Rule::OneAhead.is_kept() && self.state == State::Sent { followed: true }
    }

    /// A message of the client's goes to the server.
    fn followed(&mut self) {
        if let State::Sent { followed } = &mut self.state {
            *followed = true;
        }
    }

    /// A statement goes to the server or is prepared there; `leaves_savepoints` as far as its text tells.
    fn runs(&mut self, leaves_savepoints: bool, is_prepared: bool) {
        if !leaves_savepoints {
            self.savepoints.clear();
            self.may_end_unseen |= is_prepared;
        }
    }

    fn save(&mut self, name: Vec<u8>) {
        if self.savepoints.len() == SAVEPOINTS_MAX {
            self.savepoints.clear();
        }
        self.savepoints.push(name);
    }

    /// A text that sets a parameter, or the options that a session begins with: whether what the server logs is told.
    fn see_messages_setting(&mut self, text: &[u8]) {
        const NAME: &[u8] = b"client_min_messages";
        let Some(place) = place_of(text, NAME) else { return };
        let value = text[place + NAME.len()..].to_ascii_lowercase();
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"to").or(value.strip_prefix(b"=")).unwrap_or(value).trim_ascii();
        let is_quiet = |level: &str| value.strip_prefix(b"'").unwrap_or(value).starts_with(level.as_bytes());
        self.hears_log |=
            Rule::Asynchronous.is_kept() && !["notice", "warning", "error"].into_iter().any(is_quiet);
    }

    /// The server says that it tells the session nothing of its log.
    pub(crate) fn hears_no_log(&mut self) {
        self.hears_log = false;
    }
}

impl super::remedy::Remedy for EarlyBegin {
    #[inline(always)] // see `tell`
    fn on_event(&mut self, _: &mut Cx<'_>, event: &Event<'_>) {
        match *event {
            Event::Opened(parameters) => {
                for &(name, value) in parameters {
                    match name {
                        b"options" => self.see_messages_setting(value),
                        name if name.eq_ignore_ascii_case(b"client_min_messages") => {
                            self.see_messages_setting(&[name, b"=", value].concat());
                        }
                        _ => {}
                    }
                }
            }
            Event::SetRead(text) => self.see_messages_setting(text),
            Event::Followed => self.followed(),
            Event::StatementSent { leaves_savepoints, is_prepared } => {
                self.runs(leaves_savepoints, is_prepared);
            }
            Event::UnitReady { status: TransactionStatus::Failed, .. } | Event::TransactionOver => {
                self.savepoints.clear();
            }
            Event::UnitReady { .. }
            | Event::PathMeasured(_)
            | Event::ParameterReported { .. }
            | Event::UnknownReported
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::TransactionBegun { .. }
            | Event::LevelChanges { .. }
            | Event::StateChanges { .. }
            | Event::DescriptorsDoubted
            | Event::EndSent { .. }
            | Event::UnitFailed { .. }
            | Event::PortalLeaves { .. }
            | Event::UnnamedPortalEnds
            | Event::UnnamedPortalMade
            | Event::UnnamedStatementMade { .. }
            | Event::UnnamedStatementGone
            | Event::CameUnasked { .. }
            | Event::Disproved => {}
        }
    }

    /// The server answers the messages that carry a BEGIN.
    fn own_reply(&mut self, cx: &mut Cx<'_>, _: Slot, said: &Said<'_>) -> Result<Own, SessionError> {
        let due = match said.reply {
            Reply::Failed(_) => return self.fails(cx, said),
            Reply::Part(due) | Reply::Last(due) | Reply::CopyIn(due) => due,
            Reply::Async | Reply::Unasked => return Ok(Own::PassedOn),
        };
        let is_begun = match said.tag {
            backend::COMMAND_COMPLETE => {
                CommandComplete::decode(said.body()).is_ok_and(|complete| grammar::is_tag(complete.tag))
            }
            backend::READY_FOR_QUERY => said.body() == b"T",
            _ => true,
        };
        if !is_begun && Rule::Failure.is_kept() {
            return Err(refused(cx, "the server did not begin it"));
        }
        let own_left = cx.core.queue().owes(Remedy::Begin);
        match (due.expect, self.state) {
            (Expect::Close, State::Sent { followed: false }) if said.is_last() && !own_left => {
                frame(cx.core.server_outbox(), frontend::SYNC, |_| ());
                cx.core.owe_own(Due::own(Remedy::Begin, Expect::Sync));
                self.state = State::Ending;
            }
            (Expect::Close | Expect::Sync | Expect::Query, _) if said.is_last() && !own_left => {
                self.state = State::None;
            }
            _ => {}
        }
        Ok(Own::Dropped)
    }

    /// The BEGIN itself has failed, and that ends the session.
    fn own_skipped(&mut self, _: Slot) {}
}

impl EarlyBegin {
    /// The server ends the session, or will not begin the transaction after all (rule B8).
    fn fails(&mut self, cx: &mut Cx<'_>, said: &Said<'_>) -> Result<Own, SessionError> {
        self.state = State::None;
        if !Rule::Failure.is_kept() {
            return Ok(Own::Dropped);
        }
        let error = ErrorResponse::decode(said.body()).ok();
        let text = error.map(|error| String::from_utf8_lossy(error.message()));
        Err(refused(cx, text.as_deref().unwrap_or("an error that cannot be read")))
    }
}

impl Texts for EarlyBegin {
    /// A BEGIN, SAVEPOINT or RELEASE that can be answered.
    fn claims(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Option<Need> {
        if asked.header.tag != frontend::QUERY || !cx.may_remedy(Remedy::Begin) {
            return None;
        }
        let length = asked.header.frame_len();
        let is_alone = Rule::Alone.requires(asked.input.len() == length);
        let text = asked.input.get(HEADER_BYTES..length)?.strip_suffix(b"\0")?;
        let control = grammar::control(text)?;
        if !is_alone || !self.is_in_place(cx.core, asked, &control.kind) || self.is_refused(cx, &control.kind)
        {
            return None;
        }
        let is_begin = matches!(control.kind, Kind::Begin { .. });
        self.claimed = Some(control);
        Some(if is_begin { Need::State } else { Need::Nothing })
    }

    fn answer(&mut self, cx: &mut Cx<'_>, asked: &Asked<'_>) -> Answer {
        let text = asked.input.get(HEADER_BYTES..asked.header.frame_len());
        let text = text.and_then(|text| text.strip_suffix(b"\0"));
        let (Some(text), Some(control)) = (text, self.claimed.take()) else { return Answer::NotKnown };
        self.send(cx.core, text);
        let reply_at = cx.core.client_outbox().len();
        CommandComplete { tag: control.tag }.encode(cx.core.client_outbox());
        encode_ready_for_query(cx.core.client_outbox(), WireStatus::Active);
        let reply = cx.core.client_outbox().len() - reply_at;
        let change = match control.kind {
            Kind::Begin { deferral, .. } => Change::Begins { deferral },
            Kind::Savepoint(name) => {
                self.save(name);
                Change::None
            }
            Kind::Release(_) => {
                self.savepoints.pop();
                Change::None
            }
        };
        Answer::Told(Told { by: Remedy::Begin, reply, taker: None, change })
    }
}

impl EarlyBegin {
    /// In the right place of a transaction, with nothing of the client's under way (rule B2).
    fn is_in_place(&self, core: &Core, asked: &Asked<'_>, kind: &Kind) -> bool {
        let place = match kind {
            Kind::Begin { .. } => TransactionStatus::Idle,
            Kind::Savepoint(_) | Kind::Release(_) => TransactionStatus::Active,
        };
        let is_sure = core.status() == place && asked.is_quiet;
        is_sure || !Rule::Quiet.is_kept() && !core.is_server_passing() && !self.is_followed_by_client()
    }

    /// Whether the server may refuse this, or would say more than the answer (rules B4, B5 and B10).
    fn is_refused(&self, cx: &Cx<'_>, kind: &Kind) -> bool {
        if self.hears_log {
            return true;
        }
        match kind {
            Kind::Begin { needs_primary, .. } => {
                let by_standby =
                    Rule::Standby.is_kept() && *needs_primary && cx.facts.path.standby() != Some(false);
                by_standby || self.listens
            }
            Kind::Savepoint(_) => false,
            Kind::Release(name) => {
                let is_there = self.savepoints.last() == Some(name) && !self.may_end_unseen;
                !Rule::Savepoint.requires(is_there)
            }
        }
    }

    /// Sends it so that nothing behind it runs if it fails (rule B6).
    fn send(&mut self, core: &mut Core, text: &[u8]) {
        self.state = State::Sent { followed: false };
        let out = core.server_outbox();
        let expected: &[Expect] = if Rule::Frame.is_kept() {
            Parse::untyped(b"", text).encode(out);
            Bind::without_parameters(b"", b"").encode(out);
            Execute { portal: b"", row_limit: None }.encode(out);
            StatementOrPortal::Portal(b"").encode(frontend::CLOSE, out);
            StatementOrPortal::Statement(b"").encode(frontend::CLOSE, out);
            frame(out, frontend::FLUSH, |_| ());
            &[Expect::Parse, Expect::Bind, Expect::Execute, Expect::Close, Expect::Close]
        } else {
            frame(out, frontend::QUERY, |out| {
                out.extend_from_slice(text);
                out.push(0);
            });
            &[Expect::Query]
        };
        for expect in expected {
            core.owe_own(Due::own(Remedy::Begin, *expect));
        }
    }

    /// Whether a unit of the client's is behind one that is not confirmed.
    pub(crate) fn is_followed_by_client(&self) -> bool {
        self.state == State::Sent { followed: true }
    }
}

fn refused(cx: &mut Cx<'_>, why: &str) -> SessionError {
    let message = format!("a BEGIN that onetrip had answered failed on the server: {why}");
    let hint = "Nothing after it was run. Connect again; leave the remedy out by --remedies exact,-begin.";
    cx.core.refuse("08006", &message, Some(hint));
    SessionError::BeginRefused
}

/// What the server says unasked.
impl EarlyBegin {
    /// The server says this unasked.
    pub(crate) fn hears_unasked(&mut self, said: &Said<'_>) {
        if !Rule::Asynchronous.is_kept() {
            return;
        }
        if said.tag == backend::NOTICE_RESPONSE {
            let severity = ErrorResponse::decode(said.body()).ok().and_then(|notice| notice.field(b'V'));
            self.hears_log |= severity.is_some_and(|said| said == b"LOG" || said.starts_with(b"DEBUG"));
        }
        self.listens |= said.tag == backend::NOTIFICATION_RESPONSE;
    }

    /// What the server says unasked before it takes the BEGIN would come later if it had taken it (rule B4).
    ///
    /// # Errors
    ///
    /// The session ends where it is too much.
    pub(crate) fn keep_for_later(
        &mut self,
        core: &mut Core,
        said: &Said<'_>,
    ) -> Result<Verdict, SessionError> {
        let length = said.message.len();
        if self.state == State::None || !Rule::Asynchronous.is_kept() {
            return Ok(Verdict::Forward(length));
        }
        if said.tag == backend::NOTICE_RESPONSE && is_last_word(said.message) {
            core.client_outbox().append(&mut self.until_ready);
            core.client_outbox().extend_from_slice(said.message);
            return Ok(Verdict::Replace(length));
        }
        let is_notification = said.tag == backend::NOTIFICATION_RESPONSE;
        let kept = if is_notification { &mut self.until_idle } else { &mut self.until_ready };
        if kept.len() + length > KEPT_BYTES_MAX {
            core.refuse("53000", "too many notifications came while a transaction began", None);
            return Err(SessionError::TooMuchKept);
        }
        kept.extend_from_slice(said.message);
        Ok(Verdict::Replace(length))
    }

    /// A parameter that changed while the server answers what the program does not wait for is the program's to know with
    /// its next answer: the server reports parameters just ahead of ReadyForQuery (`ReportChangedGUCOptions`).
    ///
    /// # Errors
    ///
    /// The session ends where there are too many.
    pub(crate) fn keep_parameter(
        &mut self,
        core: &mut Core,
        said: &Said<'_>,
    ) -> Result<Verdict, SessionError> {
        if self.until_ready.len() + said.message.len() > KEPT_BYTES_MAX {
            core.refuse("53000", "too many parameters changed while the client was idle", None);
            return Err(SessionError::TooMuchKept);
        }
        self.until_ready.extend_from_slice(said.message);
        Ok(Verdict::Replace(said.message.len()))
    }

    /// Lets what was kept go ahead of the client's ReadyForQuery.
    pub(crate) fn pass_kept(&mut self, core: &mut Core, ready: &[u8]) -> Verdict {
        let Self { until_ready, until_idle, .. } = self;
        let is_idle = core.status() == TransactionStatus::Idle;
        if until_ready.is_empty() && (until_idle.is_empty() || !is_idle) {
            return Verdict::Forward(ready.len());
        }
        core.client_outbox().append(until_ready);
        if is_idle {
            core.client_outbox().append(until_idle);
        }
        core.client_outbox().extend_from_slice(ready);
        Verdict::Replace(ready.len())
    }
}

/// Whether the server ends the session behind this notice: it says so when another of its processes has crashed (57P02).
fn is_last_word(notice: &[u8]) -> bool {
    let code = ErrorResponse::decode(&notice[HEADER_BYTES..]).ok().and_then(|notice| notice.field(b'C'));
    code.is_some_and(|code| code.starts_with(b"57P"))
}
