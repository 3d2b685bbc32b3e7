//! Whether the names of the session's prepared statements are surely known (rule S4).

use std::collections::VecDeque;
use std::sync::Arc;

use onetrip_ledger::Remedy;

use crate::reply_queue::{Due, Expect, Taker};

/// How often the server is asked for it, at most, after the doubt was in the way: once the first time, and twice as often
/// each time that it is in the way again. A program that prepares once and then writes has no use for more.
const NAMES_ASKED_MAX: u8 = 8;

/// Whether the names of the session's statements are surely known (rule S4).
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Something ran that may have made one by SQL.
    doubted: bool,
    /// A Close may not have been run.
    lost: bool,
    /// How often the server is still to be asked: the doubt was in the way.
    wanted: u8,
    /// How often it was in the way.
    missed: u8,
    /// The server was asked, and nothing that may make one was sent since.
    asked: bool,
    /// DEALLOCATE that the server has not answered: units, and names.
    leaving: VecDeque<(u64, Arc<[u8]>)>,
}

impl Names {
    /// Whether all of them are known. Where a doubt is in the way, the server may be asked.
    pub(super) fn are_sure(&mut self) -> bool {
        if self.doubted {
            let times = 1_u8.checked_shl(u32::from(self.missed)).unwrap_or(NAMES_ASKED_MAX);
            self.wanted = times.min(NAMES_ASKED_MAX);
            self.missed = self.missed.saturating_add(1);
        }
        !self.doubted && !self.lost
    }

    /// Something runs that may make a statement by SQL.
    pub(super) fn doubt(&mut self) {
        self.doubted = true;
        self.asked = false;
    }

    /// The client names its statements.
    pub(crate) fn used(&mut self) {
        self.wanted = self.wanted.max(1);
    }

    /// The server skips a message.
    pub(crate) fn skipped(&mut self, due: &Due) {
        let is_clients = matches!(due.taker, Taker::Client | Taker::Remedy(Remedy::Statements, _));
        self.lost |= due.expect == Expect::Close && is_clients;
    }

    /// No statement is left.
    pub(crate) fn cleared(&mut self) {
        self.lost = false;
    }

    /// A DEALLOCATE is sent: it may be worth asking again.
    pub(crate) fn deallocate_sent(&mut self) {
        self.asked = false;
    }

    /// It is this statement that it takes away.
    pub(crate) fn leaves(&mut self, unit: u64, name: Arc<[u8]>) {
        self.leaving.push_back((unit, name));
    }

    /// The statement that this unit was to take away, and has.
    pub(crate) fn left(&mut self, unit: u64) -> Option<Arc<[u8]>> {
        let (of, _) = self.leaving.front()?;
        if *of != unit {
            return None;
        }
        self.leaving.pop_front().map(|(_, name)| name)
    }

    /// What this unit was to take away, and has not, is there.
    pub(super) fn unit_over(&mut self, unit: u64) {
        let over = self.leaving.iter().take_while(|(of, _)| *of <= unit).count();
        self.leaving.drain(..over);
    }

    /// Whether the server is to be asked if there are statements made by SQL: that was in the way.
    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted > 0 && self.doubted && !self.asked
    }

    /// The server is asked for that.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
        self.wanted -= 1;
    }

    /// The server says whether there are statements made by SQL.
    pub(crate) fn learn(&mut self, has_any: bool) {
        self.doubted = has_any || !self.asked;
    }
}
