//! Whether what the client sends might meet locks of a transaction that was answered before it ended.

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::StatementKind;
use onetrip_wire::pg::{Bind, Execute, Parse, frontend};

use super::Session;
use crate::reading::Effect;
use crate::rules::Rule;
use crate::services::Arrived;
use crate::statements::Text;

/// Locks that a statement may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Locks {
    /// None with which a reader's lock conflicts.
    Weak,
    /// The same, unless a function of a user takes others.
    OfTriggers,
    Strong,
}

impl Session {
    /// Whether what comes next might meet locks of a transaction that was answered before it ended (rule C3).
    pub(crate) fn is_fenced(&mut self, now: Moment, input: &[u8]) -> bool {
        if !self.config.remedies.has(Remedy::Commit)
            || !Rule::Fence.is_kept()
            || self.core.units().is_open()
            || self.config.common.fence.is_down()
        {
            self.commit.passes();
            return false;
        }
        let is_fenced = self.is_fence_up(false)
            && match self.locks_of(now, input) {
                Locks::Weak => false,
                Locks::OfTriggers => self.is_fence_up(true),
                Locks::Strong => true,
            };
        if !is_fenced {
            self.commit.passes();
        }
        is_fenced
    }

    fn is_fence_up(&mut self, writes: bool) -> bool {
        self.commit.is_fenced(&self.config.common, self.facts.database_name(), writes)
    }

    /// The locks that the unit in `input` may take.
    fn locks_of(&mut self, now: Moment, input: &[u8]) -> Locks {
        let Some(unit) = Arrived::peek(input) else { return Locks::Strong };
        let (mut parsed, mut bound): (Vec<&[u8]>, Vec<&[u8]>) = Default::default();
        let mut locks = Locks::Weak;
        for (tag, body) in unit.messages() {
            locks = locks.max(match tag {
                frontend::QUERY => self.locks_of_bytes(now, body.strip_suffix(b"\0")),
                frontend::PARSE => {
                    let Ok(parse) = Parse::decode(body) else { return Locks::Strong };
                    parsed.push(parse.statement);
                    self.locks_of_bytes(now, Some(parse.text))
                }
                frontend::BIND => {
                    let Ok(bind) = Bind::decode(body) else { return Locks::Strong };
                    bound.push(bind.portal);
                    let prepared = self.core.prepared(bind.statement).map(|prepared| prepared.text.clone());
                    match prepared {
                        // It was looked at with its Parse.
                        _ if parsed.contains(&bind.statement) => Locks::Weak,
                        Some(text) => self.locks_of_text(now, &text),
                        None => Locks::Strong,
                    }
                }
                frontend::EXECUTE => match Execute::decode(body) {
                    Ok(execute) if bound.contains(&execute.portal) => Locks::Weak,
                    Ok(execute) => {
                        let portal = self.core.portal(execute.portal).map(|portal| portal.text.clone());
                        portal.map_or(Locks::Strong, |text| self.locks_of_text(now, &text))
                    }
                    Err(_) => Locks::Strong,
                },
                // It ends the transaction of what a Flush has left open.
                frontend::SYNC
                    if self.core.is_in_group() && self.core.status() == TransactionStatus::Idle =>
                {
                    Locks::OfTriggers
                }
                _ => Locks::Weak,
            });
        }
        locks
    }

    fn locks_of_bytes(&mut self, now: Moment, text: Option<&[u8]>) -> Locks {
        let Some(text) = text.map(<[u8]>::to_vec) else { return Locks::Strong };
        let text = self.read_text(&text, false);
        self.locks_of_text(now, &text)
    }

    fn locks_of_text(&mut self, now: Moment, text: &Text) -> Locks {
        match (text.effect, text.kind) {
            // Deferred triggers run, and cursors WITH HOLD are stored.
            (Effect::End, StatementKind::Commit) => {
                let only_read = self.facts.transaction.is_clean() && self.has_only_read(now, Rule::OnlyReads);
                if only_read { Locks::Weak } else { Locks::OfTriggers }
            }
            (Effect::Begin | Effect::End | Effect::Nothing | Effect::Savepoint, _) => Locks::Weak,
            (Effect::Deallocates, _) => Locks::Weak,
            (Effect::WritesRows, _) => Locks::OfTriggers,
            (Effect::Read, _) if self.only_reads(now, text.template) => Locks::Weak,
            // A setting locks nothing, but SET CONSTRAINTS runs deferred triggers.
            (Effect::Unknown, StatementKind::Set) => Locks::OfTriggers,
            (Effect::Unknown, StatementKind::Reset) => Locks::Weak,
            (Effect::Read | Effect::Unknown | Effect::MayDefine, _) => Locks::Strong,
        }
    }
}
