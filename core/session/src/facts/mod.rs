//! What is known, in one place: of the client's transaction, of settings, of the path to the server. Of the session and its
//! statements it is known whether all that was sent only reads, and where names are resolved.

mod changes;
pub(crate) mod common;
mod knowledge;
mod names;
mod path;
mod place;
mod settings;
mod transaction;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, TransactionStatus};
use onetrip_sql::purity::{self, Catalogue, Columns, Impure, Needs, ObjectName, Pure, Wanted};
use onetrip_wire::pg::Oid;

use crate::events::Event;
use crate::rules::Rule;
use crate::session::core::Core;

pub(crate) use self::changes::{ActsAsked, Changes, Doubt};
pub use self::common::{Common, Fence};
pub use self::knowledge::Knowledge;
pub(crate) use self::knowledge::{Backends, Database, Stamp};
pub(crate) use self::names::Names;
pub(crate) use self::path::Path;
pub(crate) use self::place::Place;
pub(crate) use self::settings::Settings;
pub(crate) use self::transaction::{Isolation, Transaction};

/// Templates that may wait for their proof; with more, none is proven.
pub(crate) const UNPROVEN_MAX: usize = 64;
/// Templates of one session whose verdict is kept.
const TEMPLATES_MAX: usize = 4096;
/// Bytes of texts that wait to be looked into.
const TEXTS_BYTES_MAX: usize = 1024 * 1024;
/// A configuration that is read anew changes what the session has not set itself: what depends on settings is relied on
/// for so long after the server was asked.
const SETTINGS_FRESH: Duration = Duration::from_secs(2);
/// Occasions that pass at most before the server is asked again for what nobody has used.
const SKIPPED_MAX: u32 = 63;

/// What one session knows.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    pub(crate) transaction: Transaction,
    pub(crate) settings: Settings,
    pub(crate) path: Path,
    pub(crate) names: Names,
    database_name: Vec<u8>,
    changes: Arc<Changes>,
    /// How often something was sent that may have changed the session's state.
    generation: u64,
    /// Once the server has told which one it is.
    database: Option<Arc<Database>>,
    state: State,
    appetite: Appetite,
    /// What the descriptions of statements depend on; none where the settings are not known.
    place: Option<Place>,
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

/// How much asking for the session's state is worth.
#[derive(Debug, Default)]
struct Appetite {
    /// A remedy could have removed a trip if it had been known.
    is_wanted: bool,
    /// A remedy can remove one if it is asked for as soon as it is lost.
    is_wanted_again: bool,
    /// It was asked for on a guess: that nobody uses it says nothing of this program.
    is_guessed: bool,
    /// A remedy has removed one because it was.
    is_used: bool,
    /// How often in a row it was lost before anybody used it.
    unused: u32,
    /// Occasions that are let pass before the server is asked again.
    skipped: u32,
}

/// What is known of a template.
#[derive(Debug, Default)]
enum Statement {
    /// Its text was not seen, or there was no room for it.
    #[default]
    Unseen,
    /// It was not looked into.
    Seen {
        text: Box<[u8]>,
        /// It was met by [`Facts::comes_again`].
        was_met: bool,
    },
    Reads {
        needs: Arc<Needs>,
        judged: Option<Judged>,
    },
    /// Its text tells that it may do more than read.
    Unsafe(Arc<Impure>),
}

/// Tables by the names that a statement uses, and their columns.
pub(crate) type Tables = Vec<(ObjectName, Arc<Columns>)>;

/// A verdict, and what it rests on.
#[derive(Debug)]
struct Judged {
    verdict: Result<Arc<Pure>, Arc<Impure>>,
    /// The oldest of what is known of its names.
    stamp: Stamp,
    search_path: Arc<[Box<str>]>,
}

/// Whether a statement does nothing but read the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reads,
    /// It may do more.
    MayAct,
    /// Something has to be looked up first.
    Open,
}

impl Appetite {
    /// A trip was not removed because the state is not known.
    fn miss(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.is_wanted = true;
        }
    }

    /// The same, where it would have to be known before the occasion.
    fn miss_beforehand(&mut self) {
        if self.skipped > 0 {
            self.skipped -= 1;
        } else {
            self.is_wanted_again = true;
        }
    }

    fn answered(&mut self) {
        (self.is_wanted, self.is_used) = (false, false);
    }

    fn used(&mut self) {
        (self.is_used, self.unused, self.skipped) = (true, 0, 0);
    }

    /// What was known is known no longer.
    fn lost(&mut self) {
        let is_guessed = std::mem::take(&mut self.is_guessed);
        if self.is_used {
            self.is_wanted = true; // it is of use to this program
        } else if !is_guessed {
            self.unused = self.unused.saturating_add(1);
            self.skipped = 1_u32
                .checked_shl(self.unused)
                .map_or(SKIPPED_MAX, |occasions| occasions - 1)
                .min(SKIPPED_MAX);
        }
    }
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
        prepared.source.as_deref().filter(|_| self.is_undoubted_since(unit))
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

    /// The server has told the settings that an answer to a Parse may depend on, and whether transactions are deferrable
    /// that do not say so. Returns what held when it was asked.
    pub(crate) fn settings_told(&mut self, digest: &[u8], is_deferrable: bool) -> Option<Place> {
        self.wants_settings = false;
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
        known.is_untimed && now.since(known.at) < SETTINGS_FRESH.as_nanos() as u64
    }

    /// Where the session's statements are parsed, and with which settings, if that is surely known now.
    pub(crate) fn place(&self, now: Moment) -> Option<&Place> {
        let State::Known(known) = &self.state else { return None };
        let is_recent = now.since(known.at) < SETTINGS_FRESH.as_nanos() as u64;
        self.place.as_ref().filter(|_| is_recent && self.is_known())
    }

    /// Whether the server may let a Parse wait for a safe snapshot, where [`Self::place`] is known: it takes the transaction's
    /// snapshot (`analyze_requires_snapshot` of PostgreSQL). Once the level is told, the snapshot is there.
    pub(crate) fn may_wait_for_snapshot(&self) -> bool {
        (self.is_deferrable || self.transaction.is_deferrable()) && !self.transaction.isolation().is_plain()
    }

    /// Whether what [`Self::place`] rests on is merely too old: nothing was sent that may have changed it.
    pub(crate) fn renew_settings(&mut self, now: Moment) {
        let State::Known(known) = &self.state else { return };
        if now.since(known.at) >= SETTINGS_FRESH.as_nanos() as u64 {
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

    /// A statement of this template goes to the server, and only reads if the catalogue says so.
    pub(crate) fn read(&mut self, template: u32) {
        if !self.unproven.contains(&template) && self.unproven.len() <= UNPROVEN_MAX {
            self.unproven.push(template);
        }
    }

    /// A text of a statement that may only read: it is looked into when that matters.
    pub(crate) fn see(&mut self, template: u32, text: &[u8]) {
        let position = template as usize;
        if template == 0 || position >= TEMPLATES_MAX {
            return;
        }
        if self.statements.len() <= position {
            self.statements.resize_with(position + 1, Statement::default);
        }
        if let (Statement::Unseen, true) =
            (&self.statements[position], self.texts_bytes + text.len() <= TEXTS_BYTES_MAX)
        {
            self.texts_bytes += text.len();
            self.statements[position] = Statement::Seen { text: text.into(), was_met: false };
        }
    }

    /// Whether this was asked of the template before, or its text needs not be looked into any more.
    pub(crate) fn comes_again(&mut self, template: u32) -> bool {
        match self.statements.get_mut(template as usize) {
            Some(Statement::Seen { was_met, .. }) => std::mem::replace(was_met, true),
            _ => true,
        }
    }

    /// Looks into the text of a template, once.
    fn look_into(&mut self, template: u32) -> Option<&mut Statement> {
        let statement = self.statements.get_mut(template as usize)?;
        if let Statement::Seen { text, .. } = statement {
            self.texts_bytes -= text.len();
            let text = std::str::from_utf8(text).map_err(|_| Impure::NotParsed);
            let needs = text.and_then(purity::read);
            *statement = match needs.map(|needs| (needs.refusal(), needs)) {
                Ok((None, needs)) => Statement::Reads { needs: Arc::new(needs), judged: None },
                Ok((Some(because), _)) | Err(because) => Statement::Unsafe(Arc::new(because)),
            };
        }
        Some(statement)
    }

    /// What the text of this template leaves open, if it may only read.
    pub(crate) fn needs_of(&mut self, template: u32) -> Option<Arc<Needs>> {
        match self.look_into(template)? {
            Statement::Reads { needs, .. } => Some(Arc::clone(needs)),
            Statement::Unseen | Statement::Seen { .. } | Statement::Unsafe(_) => None,
        }
    }

    /// Why statements of this template are not proven to only read, as far as that was looked at.
    pub(crate) fn impure(&self, template: u32) -> Option<Arc<Impure>> {
        if self.changes.acts_unrun() {
            return Some(Arc::new(Impure::ActsUnrun));
        }
        match self.statements.get(template as usize)? {
            Statement::Unsafe(because) => Some(Arc::clone(because)),
            Statement::Reads { judged, .. } => judged.as_ref()?.verdict.clone().err(),
            Statement::Unseen | Statement::Seen { .. } => None,
        }
    }

    /// The trace is told once why a template is not known to only read.
    pub(crate) fn tells_impure(&mut self, template: u32) -> bool {
        self.told_impure.insert(template)
    }

    /// Whether statements of this template are proven to do nothing but read the snapshot, as this session writes them.
    pub(crate) fn verdict(&mut self, now: Moment, template: u32) -> Verdict {
        if !self.settings.are_plain() {
            return Verdict::MayAct;
        }
        let epoch = self.changes.epoch();
        let search_path = match &self.state {
            State::Known(known) => known.search_path.clone(),
            State::Unknown | State::Asked | State::Pooled => None,
        };
        let database = self.database.clone();
        let acts = self.changes.acts(now);
        if acts.is_some_and(|acts| acts.parsed) && Rule::Unrun.is_kept() {
            return Verdict::MayAct;
        }
        let is_told = acts.is_some();
        let (needs, judged) = match self.look_into(template) {
            Some(Statement::Reads { needs, judged }) => (needs, judged),
            Some(Statement::Unsafe(_)) => return Verdict::MayAct,
            Some(Statement::Unseen | Statement::Seen { .. }) | None => return Verdict::MayAct,
        };
        let (Some(search_path), Some(database), true) = (search_path, database, is_told) else {
            return Verdict::Open;
        };
        let holds = judged
            .as_ref()
            .is_some_and(|judged| judged.stamp.is_fresh(now, epoch) && judged.search_path == search_path);
        if !holds {
            let catalogue = database.catalogue();
            let is_fresh = |stamp: Stamp| stamp.is_fresh(now, epoch);
            if !catalogue.wanted(needs, is_fresh).is_empty() {
                return Verdict::Open;
            }
            let Some(stamp) = catalogue.stamps(needs).min_by_key(|stamp| stamp.at) else {
                return Verdict::Open;
            };
            let verdict = catalogue.check(needs, &search_path).map(Arc::new).map_err(Arc::new);
            *judged = Some(Judged { verdict, stamp, search_path });
        }
        match judged {
            Some(Judged { verdict: Ok(_), .. }) => Verdict::Reads,
            Some(_) | None => Verdict::MayAct,
        }
    }

    /// What is known of a statement that is proven to only read.
    pub(crate) fn pure(&self, template: u32) -> Option<&Pure> {
        match self.statements.get(template as usize)? {
            Statement::Reads { judged: Some(Judged { verdict: Ok(pure), .. }), .. } => Some(pure),
            _ => None,
        }
    }

    /// The relations that a statement names which is proven to only read, by object id.
    pub(crate) fn relations_of(&self, template: u32) -> Option<Arc<[Oid]>> {
        Some(self.pure(template)?.named.iter().map(|(_, oid)| *oid).collect())
    }

    /// Statements of this template are worth a proof: what it takes is looked up.
    pub(crate) fn want_proof(&mut self, now: Moment, template: u32) {
        let epoch = self.changes.epoch();
        let Some(needs) = self.needs_of(template) else { return };
        let is_fresh = |stamp: Stamp| stamp.is_fresh(now, epoch) && !stamp.is_aging(now);
        let wanted = match &self.database {
            Some(database) => database.catalogue().wanted(&needs, is_fresh),
            None => Catalogue::<Stamp>::default().wanted(&needs, is_fresh),
        };
        self.want(wanted);
        self.want_acts(now);
    }

    /// Templates that were sent and are not yet proven to only read; they are to be put back where they are still open.
    pub(crate) fn take_unproven(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.unproven)
    }

    /// The same, put back.
    pub(crate) fn put_unproven(&mut self, unproven: Vec<u32>) {
        self.unproven = unproven;
    }

    /// All that was sent is worth a proof.
    pub(crate) fn want_proofs(&mut self, now: Moment) {
        for template in self.unproven.clone() {
            self.want_proof(now, template);
        }
    }

    /// Something else is to be looked up.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        if !wanted.is_empty() {
            self.wanted.add(wanted);
        }
    }

    /// How often something was sent that may have changed the session's state.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a function of a user may know cursors by their names. Where that is not known, it is looked up.
    pub(crate) fn moves_cursors(&mut self, now: Moment) -> Option<bool> {
        let epoch = self.changes.epoch();
        let database = Arc::clone(self.database.as_ref()?);
        let wanted = database.catalogue().wanted_cursors(|stamp| stamp.is_fresh(now, epoch));
        if wanted.is_empty() {
            return Some(database.catalogue().moves_cursors());
        }
        self.want(wanted);
        None
    }

    /// Whether a function of a user may take strong locks. Where that is not known, it is looked up.
    pub(crate) fn takes_locks(&mut self, now: Moment) -> Option<bool> {
        self.want_acts(now);
        self.changes.acts(now).map(|acts| acts.called)
    }

    /// What functions of users may do is looked up, unless it is known.
    pub(crate) fn want_acts(&mut self, now: Moment) {
        if self.changes.wants_acts(now) {
            self.want(Wanted::of_acts());
        }
    }

    /// The tables that a statement names which is proven to only read, each with its columns. `None` while columns have
    /// to be looked up.
    ///
    /// # Errors
    ///
    /// A setting may shape a row of a view that it reads, or a row may fail.
    pub(crate) fn tables_of(&mut self, now: Moment, template: u32) -> Result<Option<Tables>, ()> {
        let Some(pure) = self.pure(template).filter(|pure| pure.has_steady_views) else { return Err(()) };
        let (named, epoch) = (pure.named.clone(), self.changes.epoch());
        let Some(database) = self.database.clone() else { return Ok(None) };
        let oids: Vec<Oid> = named.iter().map(|(_, oid)| *oid).collect();
        let wanted = database.catalogue().wanted_columns(&oids, |stamp| stamp.is_fresh(now, epoch));
        if !wanted.is_empty() {
            self.want(wanted);
            return Ok(None);
        }
        let catalogue = database.catalogue();
        let with_columns = |(name, oid): (ObjectName, Oid)| Some((name, Arc::clone(catalogue.columns(oid)?)));
        named.into_iter().map(with_columns).collect::<Option<Tables>>().map(Some).ok_or(())
    }

    /// Whether anything is to be looked up.
    pub(crate) fn wants_lookup(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// What is to be looked up; it is asked for now.
    pub(crate) fn take_wanted(&mut self) -> Wanted {
        std::mem::take(&mut self.wanted)
    }

    /// What is known of the database, once that is known.
    pub(crate) fn database(&self) -> Option<&Arc<Database>> {
        self.database.as_ref()
    }

    /// The columns of a relation, as they were once.
    pub(crate) fn columns(&self, relation: Oid) -> Option<Arc<Columns>> {
        self.database.as_ref()?.catalogue().columns(relation).cloned()
    }

    /// Has the columns of a relation looked up that were never known.
    pub(crate) fn want_columns(&mut self, relation: Oid) {
        let wanted = match &self.database {
            Some(database) => database.catalogue().wanted_columns(&[relation], |_| true),
            None => Catalogue::<Stamp>::default().wanted_columns(&[relation], |_| true),
        };
        self.want(wanted);
    }
}
