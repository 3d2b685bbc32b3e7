//! How much of a large object is prefetched, where the gateway, the connection, a statement or a column says so.
//!
//! The narrower level wins. A policy decides how much is fetched before anybody asks, and never what a program gets: where
//! it is not known, the wider one holds. What the gateway says is [`LobPolicy`].

mod delivered;
mod setting;

use onetrip_wire::Prefetch;
use onetrip_wire::pg::Oid;

use self::delivered::Delivered;
use self::setting::Setting;
use crate::config::LobPolicy;
use crate::facts::Facts;
use crate::reply_queue::{Due, Taker};
use crate::session::core::Core;
use crate::statements::Text;

/// What the connection, its statements and their columns say.
#[derive(Debug, Default)]
pub(super) struct Policies {
    /// The connection's level.
    setting: Setting,
    /// That of single objects, by the statements and columns that delivered them.
    delivered: Delivered,
}

impl Policies {
    /// Takes what the startup packet says.
    pub(super) fn begin(&mut self, parameters: &[(&[u8], &[u8])]) {
        self.setting.begin(parameters);
    }

    /// A statement of the client's runs: what it says of the objects that it delivers, and of all that follow.
    pub(super) fn runs(&mut self, core: &Core, unit: u64, statement: Option<u16>, text: &Text) {
        let oldest = core.units().oldest();
        if let Some(prefetch) = text.prefetch {
            self.delivered.says(oldest, unit, statement, prefetch);
        }
        match text.changes_prefetch {
            Some(change) if core.taker() == Taker::Client => {
                self.setting.sent(oldest, unit, statement, change);
            }
            // It was answered because the server will do as before.
            Some(change) => self.setting.apply(change, b"COMMIT"),
            None => {}
        }
    }

    /// The server has run a statement, and says so by this tag.
    pub(super) fn ran(&mut self, unit: u64, statement: Option<u16>, tag: &[u8]) {
        self.setting.ran(unit, statement, tag);
    }

    /// A row of a result with this layout goes to the program.
    pub(super) fn row_goes(
        &mut self,
        (core, facts): (&Core, &mut Facts),
        (due, statement): (Due, u16),
        layout: u32,
        body: &[u8],
    ) {
        self.delivered.row_goes((core, facts), (due, statement), layout, body);
    }

    /// An error answers a unit of the client's.
    pub(super) fn failed(&mut self) {
        self.setting.failed();
    }

    /// The server is ready, outside of a transaction.
    pub(super) fn transaction_over(&mut self) {
        self.setting.transaction_over();
    }

    /// What holds for this object.
    pub(super) fn of(&self, facts: &Facts, policy: &LobPolicy, oid: Oid) -> Prefetch {
        let connection = self.setting.now();
        let source = self.delivered.source(oid);
        let of_column = source.and_then(|source| source.column).and_then(|(table, number)| {
            let known = facts.columns(table)?;
            let meant = known.columns.iter().find(|one| one.number == number)?;
            policy.of_column(&known.relation, meant)
        });
        let delivered = of_column.or(source.and_then(|source| source.said));
        Prefetch::narrowest([Some(policy.of_all()), connection, delivered])
    }
}
