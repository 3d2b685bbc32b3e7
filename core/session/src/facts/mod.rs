//! What is known, in one place: of the client's transaction, of settings, of the path to the server. Of the session and its
//! statements it is known whether all that was sent only reads, and where names are resolved.

mod appetite;
mod changes;
pub(crate) mod common;
mod knowledge;
mod names;
mod path;
mod place;
mod proofs;
mod settings;
mod transaction;

use std::collections::HashSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_sql::purity::Wanted;

use crate::events::Event;
use crate::session::core::Core;

use self::appetite::Appetite;
pub(crate) use self::changes::{ActsAsked, Changes, Doubt};
pub use self::common::{Common, Fence};
pub use self::knowledge::Knowledge;
pub(crate) use self::knowledge::{Backends, Database, Stamp};
pub(crate) use self::names::Names;
pub(crate) use self::path::Path;
pub(crate) use self::place::{Place, are_settings_fresh};
use self::proofs::Statement;
pub(crate) use self::proofs::{UNPROVEN_MAX, Verdict};
pub(crate) use self::settings::Settings;
pub(crate) use self::transaction::{Isolation, Transaction};

/// What one session knows.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) transaction: Transaction,
    pub(crate) settings: Settings,
    pub(crate) path: Path,
    pub(crate) names: Names,
    database_name: Vec<u8>,
    changes: Arc<Changes>,
    /// How often something was sent, or ended, that may have changed the session's state.
    generation: u64,
    /// What was sent may have changed it for a transaction alone that is not over: its end takes that back.
    is_passing: bool,
    /// Once the server has told which one it is.
    database: Option<Arc<Database>>,
    state: State,
    appetite: Appetite,
    /// What the descriptions of statements depend on; none where the settings are not known.
    place: Option<Place>,
    /// How often a configuration had turned out to be read anew when the settings were asked for.
    configured: u64,
    /// Transactions that do not say so are deferrable, if the place is known.
    is_deferrable: bool,
    /// The last state that was told, whatever was sent since it was asked for.
    last_told: Option<Known>,
    wants_settings: bool,
    /// The session has told that it has no statement_timeout, and nothing was sent since that may set one.
    has_no_limit: bool,
    /// A statement has run in a transaction.
    has_begun: bool,
    /// Templates that were sent and are not yet proven to only read.
    unproven: Vec<u32>,
    /// The last unit that may have taken prepared statements away.
    doubted_at: Option<u64>,
    /// By template.
    statements: Vec<Statement>,
    texts_bytes: usize,
    /// What is to be looked up.
    wanted: Wanted,
    /// Templates of which the trace says why they are not known to only read.
    told_impure: HashSet<u32, RandomState>,
}

/// The session's own state, as far as anything depends on it.
#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    /// The server was asked, and nothing that may change it was sent since.
    Asked,
    /// Nothing but reads was sent since the server told it.
    Known(Known),
    /// The server's session is not this one's: a pooler stands between.
    Pooled,
}

/// A state that was told.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// When the server was asked.
    pub(crate) at: Moment,
    /// Schemas in which names are looked up, in order, the implicit ones included; none where that is not told.
    pub(crate) search_path: Option<Arc<[Box<str>]>>,
    /// The role in force.
    pub(crate) role: Vec<u8>,
    /// Identity of the database.
    pub(crate) identity: Vec<u8>,
    /// No temporary objects, no channels listened to, and no error ends it.
    pub(crate) is_plain: bool,
    /// No statement_timeout.
    pub(crate) is_untimed: bool,
}

impl Facts {
    /// Something has happened.
    #[inline(always)] // see `tell`
    pub(crate) fn on_event(&mut self, core: &Core, common: &Common, event: &Event<'_>) {
        match *event {
            Event::Opened(parameters) => {
                // The last one of a name counts, as for the server.
                let of = |name: &[u8]| {
                    let mut last_first = parameters.iter().rev();
                    last_first.find(|(known, _)| *known == name).map(|(_, value)| *value)
                };
                if of(b"replication").is_some() {
                    self.path.replication_asked();
                }
                let database = of(b"database").or(of(b"user"));
                self.set_database(database.unwrap_or_default(), &common.knowledge);
            }
            Event::PathMeasured(distance) => self.path.measured(distance),
            Event::ParameterReported { name, value } => {
                self.settings.reported(name, value);
                if name == b"in_hot_standby" {
                    self.path.standby_reported(value != b"off");
                }
            }
            Event::TransactionBegun { at, deferral } => {
                let epoch = self.changes.epoch();
                self.transaction.begin(at, epoch, deferral);
            }
            Event::LevelChanges { deferral } => {
                self.transaction.level_changes();
                self.transaction.begins_again(deferral);
                self.transaction.acts();
            }
            Event::StateChanges { unit, may_define, keeps_prepared, is_sent: _ } => {
                self.transaction.acts();
                self.forget();
                self.is_passing = true;
                self.names.doubt();
                if !keeps_prepared {
                    self.doubt_prepared(unit);
                }
                if may_define && self.transaction.defines() {
                    self.changes.begin();
                }
            }
            Event::EndSent { unit } => self.transaction.end_sent(unit),
            Event::UnitReady { unit, status } => {
                self.names.unit_over(unit);
                if status == TransactionStatus::Active {
                    self.transaction.goes_on(unit);
                }
            }
            Event::TransactionOver => {
                // What it may have changed in the catalogue is there for all, or never will be.
                let more_to_come = core.queue().owes_client() && !core.is_ending();
                if !more_to_come {
                    self.settle_definitions();
                }
                if self.is_passing {
                    self.generation += 1;
                    self.is_passing = more_to_come;
                }
                self.transaction.end();
            }
            Event::UnknownReported
            | Event::SetRead(_)
            | Event::Followed
            | Event::StatementSent { .. }
            | Event::ReadSent { .. }
            | Event::SavepointSent
            | Event::DescriptorsDoubted
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

    /// Whether a Parse of this name is surely not refused because there is one (rule S4).
    pub(crate) fn is_free(&mut self, core: &Core, name: &[u8]) -> bool {
        if name.is_empty() {
            return true;
        }
        self.names.are_sure() && core.has_room_for_names() && core.prepared(name).is_none()
    }

    /// The text of a prepared statement that is surely there.
    pub(crate) fn surely_prepared<'c>(&self, core: &'c Core, name: &[u8]) -> Option<&'c [u8]> {
        let prepared = core.prepared(name)?;
        let unit = prepared.seen_in().filter(|unit| *unit < core.units().oldest())?;
        prepared.source().filter(|_| self.is_undoubted_since(unit))
    }

    fn settle_definitions(&mut self) {
        if self.transaction.take_defined() {
            self.changes.end();
        }
        self.changes.settle(self.transaction.doubts());
    }

    fn set_database(&mut self, name: &[u8], knowledge: &Knowledge) {
        self.database_name = name.to_vec();
        self.changes = knowledge.changes_of(name);
        if knowledge.backends() == Backends::Pooled {
            self.pooler_found();
        }
    }

    /// The name by which the session has asked for its database.
    pub(crate) fn database_name(&self) -> &[u8] {
        &self.database_name
    }

    /// The server has let the session in.
    pub(crate) fn entered(&mut self) {
        self.settle_definitions();
    }

    /// A function of a user may run in the transaction that changes the catalogue.
    pub(crate) fn doubt(&mut self, doubt: Doubt) {
        self.changes.doubt(doubt, self.transaction.doubts());
    }

    /// Changes of this database's catalogue that pass through the gateway.
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Whether the session's state is known and plain (no temporary objects, no channels listened to), and nothing but
    /// proven reads was sent since.
    pub(crate) fn is_known(&self) -> bool {
        self.unproven.is_empty() && matches!(&self.state, State::Known(known) if known.is_plain)
    }

    /// Whether a pooler stands between the gateway and the server: the session has no server session of its own.
    pub(crate) fn is_pooled(&self) -> bool {
        matches!(self.state, State::Pooled)
    }

    /// Whether the session's state was told, and nothing was sent since that may have changed it.
    pub(crate) fn has_state(&self) -> bool {
        matches!(self.state, State::Known(_))
    }

    /// Whether the session's state is not known, and was not asked for.
    pub(crate) fn lacks_state(&self) -> bool {
        matches!(self.state, State::Unknown)
    }

    /// Whether the session has run no statement in a transaction.
    pub(crate) fn is_new(&self) -> bool {
        !self.has_begun
    }

    /// A statement runs in a transaction; whether it is the session's first.
    pub(crate) fn begins(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// Whether the server was asked for the session's state and will make it known.
    pub(crate) fn is_state_awaited(&self) -> bool {
        matches!(self.state, State::Asked)
    }

    /// Whether the server is to be asked for the session's state.
    pub(crate) fn wants_state(&self) -> bool {
        self.lacks_state() && self.appetite.is_wanted
    }

    /// Whether the server is to be asked for its settings, of a session whose state is known or asked for.
    pub(crate) fn wants_settings(&self) -> bool {
        self.wants_settings && self.place.is_none() && matches!(self.state, State::Known(_) | State::Asked)
    }

    /// The server is asked for the state.
    pub(crate) fn state_asked(&mut self) {
        self.state = State::Asked;
    }

    /// The server is asked for the settings.
    pub(crate) fn settings_asked(&mut self) {
        self.configured = self.changes.configured();
    }

    /// The server has told the state, if nothing that may change it was sent since.
    pub(crate) fn state_told(&mut self, known: Known, knowledge: &Knowledge) {
        self.database.get_or_insert_with(|| knowledge.database(&known.identity));
        self.last_told = Some(known.clone());
        if self.is_state_awaited() {
            self.appetite.answered();
            self.has_no_limit = known.is_untimed;
            self.state = State::Known(known);
        }
    }

    /// The server would not tell.
    pub(crate) fn state_refused(&mut self) {
        if self.is_state_awaited() {
            self.state = State::Unknown;
            self.appetite.answered();
            self.appetite.lost();
        }
    }

    /// The server's session is another one's.
    pub(crate) fn pooler_found(&mut self) {
        self.state = State::Pooled;
        self.place = None;
    }

    /// The server has told the settings that an answer to a Parse may depend on, whether transactions are deferrable that do
    /// not say so, and the moment by which its process has read its configuration. Returns what held when it was asked.
    pub(crate) fn settings_told(
        &mut self,
        (asked_at, read_by): (Moment, Moment),
        digest: &[u8],
        is_deferrable: bool,
    ) -> Option<Place> {
        self.wants_settings = false;
        self.configured += u64::from(self.changes.settings_told(asked_at, read_by));
        self.is_deferrable = is_deferrable;
        let known = self.last_told.as_ref()?;
        let path = known.search_path.as_ref()?.iter();
        let path: Vec<u8> = path.flat_map(|schema| schema.bytes().chain([0])).collect();
        let rest = [&path[..], &known.role, &known.identity, digest].join(&b"\0\0"[..]);
        let place = Place::new(self.database_name.clone(), rest);
        if let State::Known(_) = self.state {
            self.place = Some(place.clone());
        }
        Some(place)
    }

    /// Whether all that was sent since the session's state last changed for sure is proven to only read.
    pub(crate) fn are_reads_proven(&self) -> bool {
        self.unproven.is_empty()
    }

    /// Something is sent that may set a statement_timeout.
    pub(crate) fn limit_may_change(&mut self) {
        self.has_no_limit = false;
    }

    /// Whether the session has no statement_timeout, but for one that a configuration brings which was read anew.
    pub(crate) fn has_no_limit(&self) -> bool {
        self.has_no_limit
    }

    /// Whether the session surely has no statement_timeout.
    pub(crate) fn is_untimed(&self, now: Moment) -> bool {
        let State::Known(known) = &self.state else { return false };
        known.is_untimed && are_settings_fresh(known.at, now)
    }

    /// Where the session's statements are parsed, and with which settings, if that is surely known now.
    pub(crate) fn place(&self, now: Moment) -> Option<&Place> {
        let State::Known(known) = &self.state else { return None };
        self.place.as_ref().filter(|_| self.are_settings_known(known, now) && self.is_known())
    }

    /// Whether no configuration counts that was read anew since the settings were told.
    fn are_settings_known(&self, known: &Known, now: Moment) -> bool {
        are_settings_fresh(known.at, now)
            && (self.place.is_none() || self.configured == self.changes.configured())
    }

    /// Whether the server may let a Parse wait for a safe snapshot, where [`Self::place`] is known: it takes the transaction's
    /// snapshot (`analyze_requires_snapshot` of PostgreSQL). Once the level is told, the snapshot is there.
    pub(crate) fn may_wait_for_snapshot(&self) -> bool {
        (self.is_deferrable || self.transaction.is_deferrable()) && !self.transaction.isolation().is_plain()
    }

    /// What [`Self::place`] rests on is asked for again where it is merely too old: nothing was sent that may have changed it.
    pub(crate) fn renew_settings(&mut self, now: Moment) {
        let State::Known(known) = &self.state else { return };
        if !self.are_settings_known(known, now) {
            (self.state, self.place) = (State::Unknown, None);
        }
    }

    /// Whether a function that is called without its schema is the server's own if that has one.
    pub(crate) fn has_builtins_first(&self) -> bool {
        let State::Known(Known { search_path: Some(path), .. }) = &self.state else { return false };
        path.first().is_some_and(|schema| **schema == *"pg_catalog")
    }

    /// Something that may change the session's state goes to the server.
    fn forget(&mut self) {
        self.generation += 1;
        match self.state {
            State::Known(_) => {
                self.appetite.lost();
                self.state = State::Unknown;
            }
            State::Asked => {
                self.appetite.answered();
                self.appetite.lost();
                self.state = State::Unknown;
            }
            State::Unknown | State::Pooled => {}
        }
        self.appetite.is_wanted |= std::mem::take(&mut self.appetite.is_wanted_again);
        self.place = None;
        self.unproven.clear();
    }

    /// A trip could be removed if the session's state were known.
    pub(crate) fn miss_state(&mut self) {
        if self.lacks_state() {
            self.appetite.miss();
        }
    }

    /// A trip is likely to be removed if the session's state is known.
    pub(crate) fn guess_state(&mut self) {
        (self.appetite.is_wanted, self.appetite.is_guessed) = (true, true);
    }

    /// What goes to the server now may be answered when it comes again, if the state is known then: this loses it.
    pub(crate) fn want_state_again(&mut self) {
        if self.has_state() {
            self.appetite.miss_beforehand();
        }
    }

    /// A Parse could be answered if the settings were known, too; `beforehand` if what it prepares will lose them.
    pub(crate) fn miss_settings(&mut self, beforehand: bool) {
        self.wants_settings = true;
        if self.lacks_state() {
            if beforehand { self.appetite.miss_beforehand() } else { self.appetite.miss() }
        }
    }

    /// A trip was removed because the session's state is known.
    pub(crate) fn used(&mut self) {
        self.appetite.used();
    }

    /// A part of this unit may take any prepared statement away.
    pub(crate) fn doubt_prepared(&mut self, unit: u64) {
        self.doubted_at = Some(unit);
    }

    /// Whether nothing that may have taken prepared statements away was sent since this unit.
    fn is_undoubted_since(&self, unit: u64) -> bool {
        self.doubted_at.is_none_or(|doubted| doubted < unit)
    }
}
