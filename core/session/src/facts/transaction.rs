//! What the client's transaction has done so far, as far as remedies depend on it.

use onetrip_ledger::Moment;

use super::changes::Doubts;
use super::knowledge::Stamp;
use crate::reading::Deferral;

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

/// The client's transaction.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// It was begun by a BEGIN that was seen.
    is_seen: bool,
    isolation: Isolation,
    /// When it began, and the epoch of the catalogue then: its snapshot is not older.
    begun_at: Moment,
    epoch: u64,
    /// Nothing was sent in it but its BEGIN, statements that may only read, and savepoints.
    is_clean: bool,
    /// It was noted that its end cannot be answered early because the session's state is not known.
    has_missed: bool,
    /// Its BEGIN has made it READ ONLY and DEFERRABLE, and nothing was sent since that may have changed that.
    is_safe: bool,
    /// A BEGIN of it, or of one that it was chained to, has said DEFERRABLE.
    is_deferrable: bool,
    /// A remedy depends on its level.
    wants_level: bool,
    /// How often something was sent that may have changed the level; never goes back.
    level_count: u32,
    /// The server was asked for the level at this count.
    level_asked_at: Option<u32>,
    /// It holds something that may change the catalogue, as its text tells.
    may_define: bool,
    /// What it holds may run functions of users that do.
    doubts: Doubts,
    /// The unit of the last end that went to the server: another one may follow it at once (AND CHAIN).
    ends_in: Option<u64>,
}

impl Transaction {
    /// Whether it was begun by a BEGIN that was seen.
    pub(crate) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// Whether nothing was sent in it but its BEGIN, statements that may only read, and savepoints.
    pub(crate) fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Something else is sent in it, or its end will do more than end it.
    pub(crate) fn acts(&mut self) {
        self.is_clean = false;
    }

    /// Its level, as the server says it.
    pub(crate) fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// When it began, and the epoch of the catalogue then: its snapshot is not older.
    pub(crate) fn begun(&self) -> Stamp {
        Stamp { at: self.begun_at, epoch: self.epoch }
    }

    /// A remedy depends on its level.
    pub(crate) fn want_level(&mut self) {
        self.wants_level = true;
    }

    /// It was noted that its end cannot be answered early because the session's state is not known; whether that is new.
    pub(crate) fn misses_state(&mut self) -> bool {
        !std::mem::replace(&mut self.has_missed, true)
    }

    /// Whether it holds something that may change the catalogue, as its text tells.
    pub(crate) fn may_define(&self) -> bool {
        self.may_define
    }

    /// Something is sent in it that may change the catalogue; whether it is the first.
    pub(crate) fn defines(&mut self) -> bool {
        !std::mem::replace(&mut self.may_define, true)
    }

    /// What it may have changed in the catalogue is there for all, or never will be; whether there was anything.
    pub(crate) fn take_defined(&mut self) -> bool {
        std::mem::take(&mut self.may_define)
    }

    /// Functions of users that may change the catalogue and may have run in it.
    pub(crate) fn doubts(&mut self) -> &mut Doubts {
        &mut self.doubts
    }

    /// A transaction begins.
    pub(crate) fn begin(&mut self, now: Moment, epoch: u64, deferral: Deferral) {
        self.end();
        (self.is_seen, self.is_clean, self.is_safe) = (true, true, deferral == Deferral::Safe);
        self.begins_again(deferral);
        (self.begun_at, self.epoch) = (now, epoch);
    }

    /// A BEGIN with these modes is sent, perhaps inside the transaction.
    pub(crate) fn begins_again(&mut self, deferral: Deferral) {
        self.is_deferrable |= deferral != Deferral::None;
    }

    /// Whether a BEGIN of it, or of one that it was chained to, has said DEFERRABLE.
    pub(crate) fn is_deferrable(&self) -> bool {
        self.is_deferrable
    }

    /// Something is sent that may change the level, the access mode or whether it is deferrable: what the server says of
    /// them from now on counts.
    pub(crate) fn level_changes(&mut self) {
        self.level_count = self.level_count.wrapping_add(1);
        (self.isolation, self.is_safe, self.wants_level) = (Isolation::Unknown, false, false);
    }

    /// An end goes to the server. Behind AND CHAIN the level is that of before, or another: a failure takes back what BEGIN
    /// has set, as it does with other settings (PostgreSQL 15 and 18).
    pub(crate) fn end_sent(&mut self, unit: u64) {
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

    /// Whether the server is to be asked for the level.
    pub(crate) fn asks_for_level(&self) -> bool {
        let is_asked = self.level_asked_at == Some(self.level_count);
        self.wants_level && !is_asked && self.isolation == Isolation::Unknown && self.ends_in.is_none()
    }

    /// The same; and at which count.
    pub(crate) fn takes_level(&mut self) -> Option<u32> {
        if !self.asks_for_level() {
            return None;
        }
        self.level_asked_at = Some(self.level_count);
        self.level_asked_at
    }

    /// Whether the level is known, or was asked for, or will be. Else it is unknown to the end, unless a cursor wants it.
    pub(crate) fn may_tell_level(&self) -> bool {
        self.wants_level || self.isolation != Isolation::Unknown || self.is_level_asked()
    }

    /// Whether the server was asked for the level, and nothing was sent since that may have changed it.
    pub(crate) fn is_level_asked(&self) -> bool {
        self.level_asked_at == Some(self.level_count) && self.isolation == Isolation::Unknown
    }

    /// The server would not tell: the transaction had failed. Nobody waits for an answer.
    pub(crate) fn level_refused(&mut self, count: u32) {
        if self.level_asked_at == Some(count) {
            (self.level_asked_at, self.wants_level) = (None, false);
        }
    }

    /// The server has told the level that it had at this count.
    pub(crate) fn learn_level(&mut self, count: u32, shown: &[u8]) {
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
