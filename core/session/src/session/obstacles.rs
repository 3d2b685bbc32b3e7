//! What kept remedies from a unit that went to the server: the report says it of every pattern that is left.

use onetrip_ledger::{Moment, Obstacle, Remedy, TransactionStatus};

use super::Session;
use crate::facts::Isolation;
use crate::facts::Verdict;
use crate::reading::Effect;

impl Session {
    /// A statement of the client's goes to the server: notes why its unit was not answered.
    pub(crate) fn note_obstacle(&mut self, now: Moment, effect: Effect, template: u32) {
        let remedy = match effect {
            Effect::Read => Remedy::Loops,
            Effect::End => Remedy::Commit,
            _ => return,
        };
        if !self.config.remedies.has(remedy) {
            return;
        }
        let obstacle = match effect {
            _ if !self.may_remedy(remedy) => Obstacle::Near,
            _ if self.facts.is_pooled() => Obstacle::Pooler,
            Effect::Read => self.obstacle_of_read(now, template),
            _ => self.obstacle_of_end(),
        };
        let unit = self.core.units().newest();
        if let Some(exchange) = self.core.exchange_mut(unit) {
            exchange.obstacle = Some(obstacle);
        }
    }

    fn obstacle_of_read(&mut self, now: Moment, template: u32) -> Obstacle {
        if self.core.status() == TransactionStatus::Idle && !self.facts.transaction.is_seen() {
            return Obstacle::NoTransaction;
        }
        // A text is not looked into for the report alone, unless it may be one of a pattern.
        let verdict = match self.is_past_proof() && !self.facts.comes_again(template) {
            true => Verdict::Open,
            false => self.verdict(now, template),
        };
        let isolation = self.facts.transaction.isolation();
        match isolation {
            Isolation::ReadCommitted => return Obstacle::ReadCommitted,
            Isolation::Serializable => return Obstacle::Serializable,
            Isolation::Unknown | Isolation::RepeatableRead | Isolation::Safe => {}
        }
        let impure = if verdict == Verdict::Reads { None } else { self.facts.impure(template) };
        if let Some(because) = impure {
            if self.facts.tells_impure(template) {
                self.core.stream().impure(template, &because.to_string());
            }
            return Obstacle::Impure;
        }
        // The level is not asked for where the text tells that a statement may do more than read.
        if isolation == Isolation::Unknown {
            return Obstacle::LevelUnknown;
        }
        match verdict {
            _ if !self.facts.is_known() => Obstacle::StateUnknown,
            Verdict::Open => Obstacle::StateUnknown,
            Verdict::MayAct => Obstacle::Impure,
            Verdict::Reads => Obstacle::Unforeseen,
        }
    }

    fn obstacle_of_end(&self) -> Obstacle {
        match self.facts.transaction.isolation() {
            _ if self.facts.transaction.is_seen() && !self.facts.transaction.is_clean() => Obstacle::Wrote,
            Isolation::Serializable => Obstacle::Serializable,
            Isolation::Unknown => Obstacle::LevelUnknown,
            _ if !self.facts.is_known() => Obstacle::StateUnknown,
            _ => Obstacle::Unforeseen,
        }
    }
}
