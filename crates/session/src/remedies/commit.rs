//! The remedy `commit`: the end of a transaction that only read is answered at once and sent along.
//!
//! ```text
//!  client            session                       server
//!    | Query COMMIT ->| Query COMMIT ------------->|   AccessShare locks are still held
//!    |<- COMMIT, I ---|                            |   fence: strong locks of other sessions wait
//!    | Query BEGIN -->| ...                        |
//!    |                |<------------- COMMIT, I ---|   dropped; the fence goes down
//! ```

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_wire::pg::{
    Bind, CommandComplete, HEADER_BYTES, Parse, TransactionStatus as WireStatus, backend, frame, frontend,
};

use super::arrived::Arrived;
use super::transaction::Effect;
use super::{Rule, grammar};
use crate::reply_queue::{Owner, Reply};
use crate::session::{Session, SessionError, Verdict};

impl Session {
    /// Answers the unit in `input` if it ends a transaction that only read.
    pub(crate) fn answer_commit(&mut self, now: Moment, input: &[u8]) -> Option<Verdict> {
        if !self.may_remedy(Remedy::Commit) || self.status != TransactionStatus::Active {
            return None;
        }
        let unit = Arrived::peek(input)?;
        let tag = self.read_only_text(unit, grammar::end)?;
        if !self.is_quiet() || !self.has_only_read(now, Rule::OnlyReads) {
            return None;
        }
        if self.transaction.is_level_asked() {
            return Some(Verdict::Hold);
        }
        if !self.has_plain_level() {
            return None;
        }
        self.facts.used();
        self.begin.is_followed();
        let number = self.units.oldest();
        self.book_unit(now, unit, Owner::Commit);
        let (mut described, mut ended) = (Vec::new(), Vec::new());
        frame(&mut described, backend::NO_DATA, |_| ());
        CommandComplete { tag }.encode(&mut ended);
        let reply_at = self.to_client.len();
        self.put_answer(unit, &described, &ended, WireStatus::Idle);
        let reply = self.to_client.len() - reply_at;
        self.units.answered_by(number, Remedy::Commit);
        self.units.bytes_sent(unit.len());
        self.units.bytes_received(number, reply, now);
        self.status = TransactionStatus::Idle;
        self.transaction_over();
        self.portals.clear();
        self.book_answered(now);
        if Rule::Fence.is_kept() {
            self.config.common.fence.raise(self.fence_member);
        }
        Some(Verdict::Forward(unit.len()))
    }

    /// Whether the transaction's end cannot fail for what others did (rule C1).
    fn has_plain_level(&self) -> bool {
        !Rule::Level.is_kept() || self.transaction.is_seen && self.transaction.isolation.is_plain()
    }

    /// The server ends a transaction whose end was answered.
    pub(crate) fn commit_reply(
        &mut self,
        tag: u8,
        reply: Reply,
        message: &[u8],
    ) -> Result<Verdict, SessionError> {
        let body = &message[HEADER_BYTES..];
        let is_good = match tag {
            backend::ERROR_RESPONSE => false,
            backend::COMMAND_COMPLETE => {
                CommandComplete::decode(body).is_ok_and(|complete| grammar::is_end_tag(complete.tag))
            }
            backend::READY_FOR_QUERY => body == b"I",
            _ => true,
        };
        if !is_good && Rule::EndFails.is_kept() {
            let message =
                "a transaction that only read, and whose end onetrip had answered, did not end well";
            let hint =
                "Nothing was written in it. Connect again; leave the remedy out by --remedies exact,-commit.";
            self.refuse("08006", message, Some(hint));
            return Err(SessionError::CommitRefused);
        }
        if tag == backend::READY_FOR_QUERY && matches!(reply, Reply::Last(_)) {
            self.config.common.fence.lower(self.fence_member);
        }
        Ok(Verdict::Replace(message.len()))
    }

    /// Whether what comes next might meet locks of a transaction that was answered before it ended (rule C3).
    pub(crate) fn is_fenced(&mut self, now: Moment, input: &[u8]) -> bool {
        self.config.remedies.has(Remedy::Commit)
            && Rule::Fence.is_kept()
            && !self.units.is_open()
            && self.config.common.fence.is_up_for(self.fence_member)
            && !self.takes_weak_locks(now, input)
    }

    /// Whether the unit in `input` surely takes no lock that a reader's lock conflicts with.
    fn takes_weak_locks(&mut self, now: Moment, input: &[u8]) -> bool {
        let Some(unit) = Arrived::peek(input) else { return false };
        unit.messages().all(|(tag, body)| {
            let text = match tag {
                frontend::QUERY => body.strip_suffix(b"\0"),
                frontend::PARSE => Parse::decode(body).ok().map(|parse| parse.text),
                frontend::BIND => {
                    let Ok(bind) = Bind::decode(body) else { return false };
                    let Some(prepared) = self.prepared.get(bind.statement) else { return false };
                    let text = prepared.text.clone();
                    return self.is_weak(now, text.effect, text.template);
                }
                _ => return true,
            };
            let Some(text) = text.map(<[u8]>::to_vec) else { return false };
            let (effect, template) = self.effect_of(&text);
            self.is_weak(now, effect, template)
        })
    }

    fn is_weak(&mut self, now: Moment, effect: Effect, template: u32) -> bool {
        match effect {
            Effect::Begin | Effect::End | Effect::Nothing | Effect::Savepoint => true,
            Effect::Deallocates | Effect::WritesRows => true,
            Effect::Read => self.only_reads(now, template),
            Effect::Unknown | Effect::MayDefine => false,
        }
    }
}
