//! What the client's transaction has done so far, as far as remedies depend on it.

use onetrip_ledger::{Moment, Remedy, TransactionStatus};
use onetrip_sql::StatementKind;

use super::Rule;
use super::changes::{Doubt, Doubts};
use super::facts::Verdict;
use crate::session::Session;
use crate::statements::{Span, Text};

/// The level of a transaction, as the server says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Isolation {
    /// The server has not been asked.
    #[default]
    Unknown,
    /// READ UNCOMMITTED is the same in PostgreSQL.
    ReadCommitted,
    RepeatableRead,
    Serializable,
    /// SERIALIZABLE, and its BEGIN has READ ONLY and DEFERRABLE: once the snapshot is taken, it is one in which no reader can
    /// fail or make others fail, and the server keeps no record of what is read (`GetSafeSnapshot` of PostgreSQL).
    Safe,
}

impl Isolation {
    /// Whether all reads see one snapshot, and it does not matter to others what is read.
    pub(crate) fn is_snapshot(self) -> bool {
        matches!(self, Self::RepeatableRead | Self::Safe)
    }

    /// Whether a transaction that only read can surely be ended.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::ReadCommitted || self.is_snapshot()
    }

    /// What SHOW transaction_isolation prints.
    pub(crate) fn of(shown: &[u8]) -> Self {
        match shown {
            b"read committed" | b"read uncommitted" => Self::ReadCommitted,
            b"repeatable read" => Self::RepeatableRead,
            b"serializable" => Self::Serializable,
            _ => Self::Unknown,
        }
    }
}

/// What a statement does to its session and transaction, as far as its text tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Effect {
    /// Begins a transaction.
    Begin,
    /// Ends one.
    End,
    /// Nothing that outlives it, or is for the session alone: SHOW, an empty text, SET of `onetrip.lob_prefetch`.
    Nothing,
    /// Divides the transaction.
    Savepoint,
    /// Takes prepared statements away, and does nothing else (rule S7).
    Deallocates,
    /// Reads, if the catalogue says so too.
    Read,
    /// Writes rows; triggers may do more to the session, and are not taken to change the catalogue.
    WritesRows,
    /// Changes the session, not the catalogue.
    Unknown,
    /// Anything: it may change the catalogue.
    #[default]
    MayDefine,
}

impl Effect {
    pub(crate) fn of(kind: StatementKind) -> Self {
        use StatementKind as S;
        match kind {
            S::Begin => Self::Begin,
            S::Commit | S::Rollback => Self::End,
            S::Show | S::Empty => Self::Nothing,
            S::Savepoint | S::Release | S::RollbackTo => Self::Savepoint,
            S::Select | S::Values | S::With => Self::Read,
            S::Insert | S::Update | S::Delete | S::Merge => Self::WritesRows,
            S::Set | S::Reset | S::Declare | S::Fetch | S::Move | S::CloseCursor | S::Copy | S::Prepare => {
                Self::Unknown
            }
            S::Deallocate => Self::Deallocates,
            S::Discard | S::Listen | S::Notify | S::Unlisten => Self::Unknown,
            // What a Parse says of a table that is locked is for the server to say.
            S::Lock => Self::MayDefine,
            _ => Self::MayDefine,
        }
    }
}

/// The client's transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// It was begun by a BEGIN that was seen.
    pub(crate) is_seen: bool,
    pub(crate) isolation: Isolation,
    /// When it began, and the epoch of the catalogue then: its snapshot is not older.
    pub(crate) begun_at: Moment,
    pub(crate) epoch: u64,
    /// Nothing was sent in it but its BEGIN, statements that may only read, and savepoints.
    pub(crate) is_clean: bool,
    /// It was noted that its end cannot be answered early because the session's state is not known.
    has_missed: bool,
    /// Its BEGIN has made it READ ONLY and DEFERRABLE, and nothing was sent since that may have changed that.
    is_safe: bool,
    /// A remedy depends on its level.
    pub(crate) wants_level: bool,
    /// How often something was sent that may have changed the level; never goes back.
    level_count: u32,
    /// The server was asked for the level at this count.
    level_asked_at: Option<u32>,
    /// It holds something that may change the catalogue, as its text tells.
    pub(crate) may_define: bool,
    /// What it holds may run functions of users that do.
    doubts: Doubts,
    /// The unit of the last end that went to the server: another one may follow it at once (AND CHAIN).
    ends_in: Option<u64>,
}

impl Transaction {
    /// A transaction begins.
    pub(crate) fn begin(&mut self, now: Moment, epoch: u64, is_safe: bool) {
        self.end();
        (self.is_seen, self.is_clean, self.is_safe) = (true, true, is_safe);
        (self.begun_at, self.epoch) = (now, epoch);
    }

    /// Something is sent that may change the level, the access mode or whether it is deferrable: what the server says of
    /// them from now on counts.
    fn level_changes(&mut self) {
        self.level_count = self.level_count.wrapping_add(1);
        (self.isolation, self.is_safe, self.wants_level) = (Isolation::Unknown, false, false);
    }

    /// An end goes to the server. Behind AND CHAIN the level is that of before, or another: a failure takes back what BEGIN
    /// has set, as it does with other settings (PostgreSQL 15 and 18).
    fn end_sent(&mut self, unit: u64) {
        self.ends_in = Some(unit);
        self.is_clean = false;
        self.level_changes();
    }

    /// A unit has ended inside a transaction.
    pub(crate) fn goes_on(&mut self, unit: u64) {
        if self.ends_in.is_some_and(|end| end <= unit) {
            (self.ends_in, self.wants_level) = (None, true);
        }
    }

    /// Whether the server is to be asked for the level; and at which count.
    pub(super) fn takes_level(&mut self) -> Option<u32> {
        let is_asked = self.level_asked_at == Some(self.level_count);
        if !self.wants_level || is_asked || self.isolation != Isolation::Unknown || self.ends_in.is_some() {
            return None;
        }
        self.level_asked_at = Some(self.level_count);
        self.level_asked_at
    }

    /// Whether the server was asked for the level, and nothing was sent since that may have changed it.
    pub(super) fn is_level_asked(&self) -> bool {
        self.level_asked_at == Some(self.level_count) && self.isolation == Isolation::Unknown
    }

    /// The server would not tell: the transaction had failed. Nobody waits for an answer.
    pub(super) fn level_refused(&mut self, count: u32) {
        if self.level_asked_at == Some(count) {
            (self.level_asked_at, self.wants_level) = (None, false);
        }
    }

    /// The server has told the level that it had at this count.
    pub(super) fn learn_level(&mut self, count: u32, shown: &[u8]) {
        if count != self.level_count {
            return;
        }
        self.isolation = match Isolation::of(shown) {
            Isolation::Serializable if self.is_safe => Isolation::Safe,
            level => level,
        };
    }

    /// It is over, or what runs is not known to be one. What it may define is told by others.
    pub(crate) fn end(&mut self) {
        self.level_changes();
        let doubts = std::mem::take(&mut self.doubts);
        let (may_define, level_count) = (self.may_define, self.level_count);
        *self = Self { may_define, level_count, doubts, ..Self::default() };
    }
}

impl Session {
    /// A statement of the client's goes to the server.
    pub(crate) fn runs(&mut self, now: Moment, effect: Effect, text: &Text) {
        let template = text.template;
        if self.taker.is(Remedy::Chatter) {
            return; // it was answered because it changes nothing
        }
        // It is known better than by its kind.
        let effect = if self.chatter.runs(self.units.newest()) { Effect::Unknown } else { effect };
        self.note_obstacle(now, effect, template);
        let is_work = effect >= Effect::Read;
        if is_work && self.transaction.is_seen && self.facts.begins() {
            self.config.common.knowledge.session_begins(effect == Effect::Read);
        }
        self.may_run_functions(now, effect, text);
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
            Effect::Begin if self.status == TransactionStatus::Idle && self.begins_unit_alone => {
                self.transaction_begins(now, text.begins_safe);
            }
            // Only a warning (25001), but its modes count (`BeginTransactionBlock` leaves that to `SET TRANSACTION`).
            Effect::Begin => self.level_changes(),
            Effect::End => {
                // It runs deferred triggers, and the queries of cursors WITH HOLD.
                if text.kind == StatementKind::Commit && !self.transaction.is_clean {
                    self.forget(false);
                }
                self.transaction.end_sent(self.units.newest());
                self.loops.transaction_ended(&self.config.common);
                self.lobs.transaction_over();
            }
            Effect::Nothing | Effect::Deallocates => {}
            Effect::Savepoint => {
                self.loops.flush();
                self.lobs.savepoint();
            }
            Effect::Read => self.reads(now, template),
            Effect::Unknown | Effect::MayDefine => {
                self.transaction.level_changes();
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
    fn may_run_functions(&mut self, now: Moment, effect: Effect, text: &Text) {
        use StatementKind as S;
        let doubt = match effect {
            Effect::WritesRows if text.calls => Doubt::Called,
            Effect::WritesRows => Doubt::Written,
            Effect::Read if self.facts.has_state() && self.only_reads(now, text.template) => return,
            Effect::Read if text.calls => Doubt::Called,
            Effect::Read => Doubt::Read,
            Effect::Unknown => match text.kind {
                S::Set | S::Reset | S::CloseCursor | S::Prepare | S::Discard => return,
                S::Listen | S::Notify | S::Unlisten => return,
                _ => Doubt::Called,
            },
            _ => return,
        };
        self.doubt_functions(doubt);
    }

    /// A function of a user may run that changes the catalogue.
    pub(crate) fn doubt_functions(&mut self, doubt: Doubt) {
        if !self.config.remedies.is_none() && Rule::SameKey.is_kept() {
            self.facts.changes().doubt(doubt, &mut self.transaction.doubts);
        }
    }

    /// A statement that reads, if the catalogue says so too, runs at the server.
    pub(crate) fn reads(&mut self, now: Moment, template: u32) {
        self.facts.read(template);
        self.want_facts(now, template);
        self.read_sent(now, template);
        if self.lobs.has_open() && !self.leaves_descriptors(now, template) {
            self.lobs.flush();
        }
    }

    /// Where a text is parsed that is sent now; none where what it means may change at any time.
    pub(crate) fn span(&self) -> Option<Span> {
        let Transaction { begun_at, isolation, is_seen, .. } = self.transaction;
        let is_one = is_seen && (isolation.is_snapshot() || isolation == Isolation::Unknown);
        is_one.then(|| Span {
            begun_at,
            generation: self.facts.generation(),
            epoch: self.facts.changes().epoch(),
        })
    }

    /// The client begins a transaction.
    pub(crate) fn transaction_begins(&mut self, now: Moment, is_safe: bool) {
        let epoch = self.facts.changes().epoch();
        self.transaction.begin(now, epoch, is_safe);
        self.lobs.transaction_begins();
        if self.may_remedy(Remedy::Loops) || self.may_remedy(Remedy::Lobs) {
            self.loops.transaction_begins(&self.config.common);
        }
    }

    /// Something is sent that may change the level of the transaction: nothing that rests on the level holds.
    fn level_changes(&mut self) {
        self.transaction.level_changes();
        self.transaction.is_clean = false;
        self.loops.flush();
        self.lobs.flush();
    }

    /// Something that is not known to only read goes to the server.
    pub(crate) fn forget(&mut self, may_define: bool) {
        self.transaction.is_clean = false;
        let unit = self.units.newest();
        self.facts.forget();
        if !self.chatter.leaves_prepared(unit) {
            self.facts.doubt_prepared(unit);
        }
        if Rule::Neutral.is_kept() {
            self.chatter.forget(unit);
        }
        self.loops.flush();
        self.lobs.flush();
        self.watching.doubt_names();
        self.watching.place_changes();
        if may_define && !std::mem::replace(&mut self.transaction.may_define, true) {
            self.facts.changes().begin();
        }
    }

    /// A statement that may only read goes to the server, inside a transaction: its level, its proof and the session's
    /// state may be worth knowing (rules P1 and C1).
    fn want_facts(&mut self, now: Moment, template: u32) {
        let is_inside = self.transaction.is_seen && self.transaction.is_clean && self.needs_level();
        if !is_inside || self.facts.is_pooled() || self.facts.needs_of(template).is_none() {
            return;
        }
        self.transaction.wants_level = true;
        if !std::mem::replace(&mut self.transaction.has_missed, true) {
            self.facts.miss_state();
        }
        if self.verdict(now, template) == Verdict::Open {
            self.facts.want_proof(now, template);
        }
    }

    /// Whether everything that was sent since the session's state was last known has only read, unless `rule` does without.
    pub(crate) fn has_only_read(&mut self, now: Moment, rule: Rule) -> bool {
        self.prove(now);
        !rule.is_kept() || self.facts.is_known()
    }

    /// What the transaction may have changed in the catalogue is there for all, or never will be.
    fn has_defined(&mut self) {
        let more_to_come = self.queue.owes_client() && !self.is_ending;
        if more_to_come {
            return;
        }
        if std::mem::take(&mut self.transaction.may_define) {
            self.facts.changes().end();
        }
        self.facts.changes().settle(&mut self.transaction.doubts);
    }

    /// The client's transaction is over, and what it has defined is there for all.
    pub(crate) fn transaction_over(&mut self) {
        self.has_defined();
        self.transaction.end();
        self.loops.transaction_ended(&self.config.common);
        self.cursors.transaction_over();
        self.lobs.transaction_over();
        self.begin.savepoints_ended();
    }
}
