//! What a statement of the client's does to what is known, and who hears of it.

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::StatementKind;

use super::Session;
use crate::events::Event;
use crate::facts::{Doubt, Isolation, UNPROVEN_MAX, Verdict};
use crate::reading::{Effect, has_no_query};
use crate::rules::Rule;
use crate::statements::{Span, Text};

impl Session {
    /// A statement of the client's goes to the server.
    pub(crate) fn runs(&mut self, now: Moment, effect: Effect, text: &Text) {
        let template = text.template;
        if self.core.taker().is(Remedy::Chatter) {
            return; // it was answered because it changes nothing
        }
        // It is known better than by its kind.
        let effect =
            if self.acting.chatter.runs(self.core.units().newest()) { Effect::Unknown } else { effect };
        self.note_obstacle(now, effect, template);
        let is_work = effect >= Effect::Read;
        if is_work && self.facts.transaction.is_seen() && self.facts.begins() {
            self.config.common.knowledge.session_begins(effect == Effect::Read);
        }
        self.doubt_what_runs(now, effect, text);
        let may_set_limit = match effect {
            Effect::Unknown => !matches!(text.kind, StatementKind::CloseCursor | StatementKind::Prepare),
            Effect::MayDefine => true,
            Effect::WritesRows => text.calls,
            Effect::Read => text.calls && !(self.facts.has_state() && self.only_reads(now, text.template)),
            _ => false,
        };
        if may_set_limit {
            self.facts.limit_may_change();
        }
        match effect {
            Effect::Begin
                if self.core.status() == TransactionStatus::Idle && self.core.has_begun_unit_alone() =>
            {
                self.tell(&Event::TransactionBegun { at: now, deferral: text.deferral });
            }
            // Only a warning (25001), but its modes count (`BeginTransactionBlock` leaves that to `SET TRANSACTION`).
            Effect::Begin => self.tell(&Event::LevelChanges { deferral: text.deferral }),
            Effect::End => {
                // It runs deferred triggers, and the queries of cursors WITH HOLD.
                if text.kind == StatementKind::Commit && !self.facts.transaction.is_clean() {
                    self.forget(false);
                }
                self.tell(&Event::EndSent { unit: self.core.units().newest() });
            }
            Effect::Nothing | Effect::Deallocates => {}
            Effect::Savepoint => self.tell(&Event::SavepointSent),
            Effect::Read => self.reads(now, template),
            Effect::Unknown | Effect::MayDefine => {
                self.facts.transaction.level_changes();
                self.forget(effect == Effect::MayDefine);
                if text.makes_cursor_code {
                    self.facts.changes().code_made();
                }
            }
            // What it runs has a snapshot, after which the level cannot change.
            Effect::WritesRows => self.forget(false),
        }
    }

    /// A statement goes to the server that may run functions of users, by name, by a trigger, or otherwise unasked: they may
    /// change the catalogue (rule S3).
    fn doubt_what_runs(&mut self, now: Moment, effect: Effect, text: &Text) {
        if !self.doubts_functions() || self.facts.changes().are_functions_plain() {
            return;
        }
        let doubt = match effect {
            Effect::WritesRows if text.calls => Doubt::Called,
            Effect::WritesRows => Doubt::Written,
            Effect::Read if self.facts.has_state() && self.only_reads(now, text.template) => return,
            Effect::Read if text.calls => Doubt::Called,
            Effect::Read => Doubt::Read,
            Effect::Unknown if has_no_query(text.kind) => return,
            Effect::Unknown
                if text.kind == StatementKind::Prepare && !self.facts.changes().may_act_unrun() =>
            {
                return;
            }
            Effect::Unknown => Doubt::Called,
            _ => return,
        };
        self.facts.doubt(doubt);
    }

    /// A statement is parsed, bound or described, and perhaps never run.
    pub(crate) fn is_read(&mut self, now: Moment, text: &Text) {
        if !self.core.is_passive {
            self.doubt_what_is_read(now, text);
            self.unrun.read(text);
        }
    }

    /// A statement is read or planned at the server, and perhaps never run. Reading a literal checks the domain that it is of, and
    /// planning runs functions that are declared IMMUTABLE: these may be a user's, too (`eval_const_expressions` of PostgreSQL).
    pub(crate) fn doubt_what_is_read(&mut self, now: Moment, text: &Text) {
        if !self.doubts_functions() || !self.facts.changes().may_act_unrun() {
            return;
        }
        match text.effect {
            Effect::MayDefine => self.doubt_functions(Doubt::Called),
            effect => {
                if effect == Effect::Read {
                    self.facts.verdict_wanted(now, text.template); // once it is proven, it leaves no doubt
                }
                self.doubt_what_runs(now, effect, text);
            }
        }
    }

    /// A unit of the client's is over: what it has read and not run may have run code of users all the same, and done what that
    /// does.
    pub(crate) fn settle_unrun(&mut self, now: Moment) {
        if self.unrun.is_empty() {
            return;
        }
        let unrun = self.unrun.take();
        let may_act = Rule::Unrun.is_kept() && self.facts.changes().may_act_unrun();
        if self.config.remedies.is_none() || !may_act {
            return;
        }
        self.facts.want_acts(now);
        for text in unrun {
            self.acting.cursors.code_runs(&self.facts);
            match text.effect {
                Effect::Read => {
                    self.facts.verdict_wanted(now, text.template); // nothing counts before it is proven
                    self.may_write(now, text.template);
                }
                _ => self.forget(false),
            }
        }
    }

    /// A statement that reads, if the catalogue says so too, is at the server.
    fn may_write(&mut self, now: Moment, template: u32) {
        self.facts.read(template);
        let is_proven = !self.flushes_unproven() || self.only_reads(now, template);
        self.tell(&Event::ReadSent { is_proven });
        if self.acting.lobs.has_open() && !self.surely_reads(now, template) {
            self.tell(&Event::DescriptorsDoubted);
        }
    }

    /// A function of a user may run that changes the catalogue.
    pub(crate) fn doubt_functions(&mut self, doubt: Doubt) {
        if self.doubts_functions() {
            self.facts.doubt(doubt);
        }
    }

    /// Whether it matters what functions of users do.
    fn doubts_functions(&self) -> bool {
        !self.config.remedies.is_none() && Rule::SameKey.is_kept()
    }

    /// A statement that reads, if the catalogue says so too, runs at the server.
    pub(crate) fn reads(&mut self, now: Moment, template: u32) {
        self.facts.read(template);
        self.want_facts(now, template);
        self.may_write(now, template);
    }

    /// Whether a read may be answered by what was read before, ahead of the program or by itself.
    pub(crate) fn may_answer_reads(&self) -> bool {
        [Remedy::Loops, Remedy::Repeats, Remedy::Lobs].into_iter().any(|one| self.may_remedy(one))
    }

    /// Whether what was read ahead goes when a statement is sent that is not proven to only read.
    fn flushes_unproven(&self) -> bool {
        self.may_answer_reads() && Rule::Pure.is_kept()
    }

    /// Where a text is parsed that is sent now; none where what it means may change at any time.
    pub(crate) fn span(&self) -> Option<Span> {
        let transaction = &self.facts.transaction;
        let (isolation, begun_at) = (transaction.isolation(), transaction.begun().at);
        let is_one = transaction.is_seen() && (isolation.is_snapshot() || isolation == Isolation::Unknown);
        is_one.then(|| Span {
            begun_at,
            generation: self.facts.generation(),
            epoch: self.facts.changes().epoch(),
        })
    }

    /// Something that is not known to only read goes to the server.
    pub(crate) fn forget(&mut self, may_define: bool) {
        self.state_changes(may_define, true);
    }

    fn state_changes(&mut self, may_define: bool, is_sent: bool) {
        let unit = self.core.units().newest();
        let keeps_prepared = self.acting.chatter.leaves_prepared(unit);
        self.tell(&Event::StateChanges { unit, is_sent, may_define, keeps_prepared });
    }

    /// A statement that may only read goes to the server, inside a transaction: its level, its proof and the session's
    /// state may be worth knowing (rules P1 and C1).
    fn want_facts(&mut self, now: Moment, template: u32) {
        let is_inside =
            self.facts.transaction.is_seen() && self.facts.transaction.is_clean() && self.needs_level();
        if !is_inside || self.facts.is_pooled() || self.facts.needs_of(template).is_none() {
            return;
        }
        self.facts.transaction.want_level();
        if self.facts.transaction.misses_state() {
            self.facts.miss_state();
        }
        self.facts.verdict_wanted(now, template);
    }

    /// Whether everything that was sent since the session's state was last known has only read, unless `rule` does without.
    pub(crate) fn has_only_read(&mut self, now: Moment, rule: Rule) -> bool {
        self.prove(now);
        !rule.is_kept() || self.facts.is_known()
    }

    /// Whether a remedy is on that depends on what statements do.
    pub(crate) fn needs_facts(&self) -> bool {
        self.needs_level() || self.may_remedy(Remedy::Statements) || self.may_remedy(Remedy::Chatter)
    }

    /// Whether a remedy is on that depends on the level of transactions.
    pub(crate) fn needs_level(&self) -> bool {
        [Remedy::Commit, Remedy::Loops, Remedy::Cursors, Remedy::Repeats, Remedy::Lobs]
            .into_iter()
            .any(|one| self.may_remedy(one))
    }

    /// Whether statements of this template are proven to do nothing but read the snapshot, as this session writes them. Where
    /// the session's state is not known, nothing is, and the text is not looked into.
    pub(crate) fn only_reads(&mut self, now: Moment, template: u32) -> bool {
        self.facts.has_state() && self.verdict(now, template) == Verdict::Reads
    }

    /// The same, now that all that was sent before is known to only read, and the session has no temporary objects that names
    /// could mean.
    pub(crate) fn surely_reads(&mut self, now: Moment, template: u32) -> bool {
        self.prove(now);
        self.facts.is_known() && self.only_reads(now, template)
    }

    /// Whether no statement of the client's transaction will be proven to only read before its end: the session's state is
    /// not known, and in a transaction that has done more than read it is not asked for ([`Self::inquire`]).
    pub(crate) fn is_past_proof(&self) -> bool {
        let is_inside = self.core.status() == TransactionStatus::Active;
        let is_unknown = self.facts.lacks_state() || self.facts.is_pooled();
        is_inside && is_unknown && !self.facts.transaction.is_clean()
    }

    /// The same, or whether that is still open.
    pub(crate) fn verdict(&mut self, now: Moment, template: u32) -> Verdict {
        self.facts.verdict(now, template)
    }

    /// Proves that what was sent only reads, or takes the session's state for unknown. What is still open stays unproven.
    pub(crate) fn prove(&mut self, now: Moment) {
        let mut unproven = self.facts.take_unproven();
        let mut may_act = unproven.len() > UNPROVEN_MAX;
        unproven.retain(|template| match self.verdict(now, *template) {
            Verdict::Reads => false,
            Verdict::Open => true,
            Verdict::MayAct => {
                may_act = true;
                false
            }
        });
        if may_act {
            self.state_changes(false, false);
        } else {
            self.facts.put_unproven(unproven);
        }
    }
}
