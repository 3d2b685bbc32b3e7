//! What is known of the session and of the database: whether a statement only reads.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use onetrip_ledger::{Moment, Remedy};
use onetrip_sql::purity::{
    self, CATALOGUE_QUERY, Catalogue, CatalogueBuilder, Impure, Needs, ObjectColumn, ObjectName,
};
use onetrip_wire::pg::{Oid, Values};

use super::changes::Changes;
use super::inquiry::Question;
use crate::session::Session;

/// What is known of a database is not relied on for longer, unless it is asked again.
const FRESH: Duration = Duration::from_secs(60);
/// A database is asked again at most this often.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// Databases and search paths that are kept.
const CATALOGUES_MAX: usize = 64;
/// Templates that may wait for their proof; with more, none is proven.
const UNPROVEN_MAX: usize = 64;
/// Templates of one session whose verdict is kept.
const TEMPLATES_MAX: usize = 4096;

/// The session's own state, in one row: its search path and role, whether it has temporary objects or listens, and the
/// number of its database.
const STATE_QUERY: &str = "SELECT pg_catalog.current_schemas(true)::pg_catalog.text, \
     current_user::pg_catalog.text, \
     pg_catalog.pg_my_temp_schema() OPERATOR(pg_catalog.<>) 0 \
     OR EXISTS (SELECT FROM pg_catalog.pg_listening_channels()), \
     (SELECT oid::pg_catalog.text FROM pg_catalog.pg_database \
     WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())";
/// Takes no snapshot.
pub(super) const ISOLATION_QUERY: &str = "SHOW transaction_isolation";

/// What all sessions of a gateway know together.
#[derive(Debug, Default)]
pub struct Knowledge {
    catalogues: Mutex<HashMap<Place, Known, RandomState>>,
    /// By database.
    changes: Mutex<HashMap<Vec<u8>, Arc<Changes>, RandomState>>,
}

/// Where names are resolved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Place {
    database: Vec<u8>,
    /// The search path as it works out, the role, and the number of the database: one that is made anew has another.
    path: Vec<u8>,
}

#[derive(Debug, Clone)]
struct Known {
    catalogue: Arc<Catalogue>,
    asked_at: Moment,
    epoch: u64,
}

impl Knowledge {
    /// Changes of this database's catalogue; those of databases without number are told together.
    fn changes_of(&self, database: &[u8]) -> Arc<Changes> {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let name = if changes.len() < CATALOGUES_MAX { database } else { b"" };
        Arc::clone(changes.entry(name.to_vec()).or_default())
    }

    /// Whether this database was ever asked.
    fn has(&self, database: &[u8]) -> bool {
        self.lock().keys().any(|place| place.database == database)
    }

    fn get(&self, place: &Place) -> Option<Known> {
        self.lock().get(place).cloned()
    }

    fn put(&self, place: Place, known: Known) {
        let mut catalogues = self.lock();
        if catalogues.len() >= CATALOGUES_MAX && !catalogues.contains_key(&place) {
            catalogues.clear();
        }
        catalogues.insert(place, known);
    }

    /// A panic elsewhere leaves the map whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<Place, Known, RandomState>> {
        self.catalogues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one session knows.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    place: Place,
    pub(super) changes: Arc<Changes>,
    known: Option<Known>,
    /// Nothing but reads was sent since the server told the session's state, and the state is a plain one.
    is_known: bool,
    /// The server was asked for the state, and nothing that may change it was sent since.
    is_state_asked: bool,
    /// When the database was asked last by this session.
    catalogue_asked_at: Option<Moment>,
    /// Templates that were sent and are not yet proven to only read.
    unproven: Vec<u32>,
    /// The last unit that may have taken prepared statements away.
    doubted_at: Option<u64>,
    /// The catalogue under way: when it was asked for, and at which epoch.
    building: Option<(CatalogueBuilder, Moment, u64)>,
    /// By template.
    statements: Vec<Statement>,
    /// Templates of which the trace says why they are not known to only read.
    pub(super) told_impure: HashSet<u32, RandomState>,
}

/// What a catalogue says of a template, and which one that was.
type Verdict = (Result<(), Arc<Impure>>, Arc<Catalogue>);

/// What is known of a template.
#[derive(Debug, Clone, Default)]
enum Statement {
    /// Its text was not seen.
    #[default]
    Unseen,
    Reads {
        needs: Arc<Needs>,
        verdict: Option<Verdict>,
    },
    /// Its text tells that it may do more than read.
    Unsafe(Arc<Impure>),
}

impl Place {
    /// Whether both are in one database.
    pub(super) fn is_in_database_of(&self, other: &Self) -> bool {
        self.database == other.database
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.database.len() + self.path.len()
    }
}

impl Facts {
    pub(crate) fn set_database(&mut self, database: &[u8], knowledge: &Knowledge) {
        self.place.database = database.to_vec();
        self.changes = knowledge.changes_of(database);
    }

    /// Whether the session's state is known and plain: no temporary objects, no channels listened to.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the server was asked for the session's state and will make it known.
    pub(super) fn is_state_awaited(&self) -> bool {
        !self.is_known && self.is_state_asked
    }

    /// Where the session's names were resolved when its state was last known.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether a function that is called without its schema is the server's own if that has one.
    pub(super) fn has_builtins_first(&self) -> bool {
        self.place.path.starts_with(b"{pg_catalog")
    }

    /// Something that may change the session's state goes to the server.
    pub(crate) fn forget(&mut self) {
        self.is_known = false;
        self.is_state_asked = false;
    }

    /// A part of this unit may take any prepared statement away.
    pub(super) fn doubt_prepared(&mut self, unit: u64) {
        self.doubted_at = Some(unit);
    }

    /// Whether nothing that may have taken prepared statements away was sent since this unit.
    pub(crate) fn is_undoubted_since(&self, unit: u64) -> bool {
        self.doubted_at.is_none_or(|doubted| doubted < unit)
    }

    /// A statement of this template goes to the server, and only reads if the catalogue says so.
    pub(crate) fn read(&mut self, template: u32) {
        if !self.unproven.contains(&template) && self.unproven.len() <= UNPROVEN_MAX {
            self.unproven.push(template);
        }
    }

    /// Looks into the text of a statement that may only read, once for each template.
    pub(crate) fn see(&mut self, template: u32, text: &[u8]) {
        let position = template as usize;
        if template == 0 || position >= TEMPLATES_MAX {
            return;
        }
        if self.statements.len() <= position {
            self.statements.resize(position + 1, Statement::Unseen);
        }
        if let Statement::Unseen = self.statements[position] {
            let text = std::str::from_utf8(text).map_err(|_| Impure::NotParsed);
            self.statements[position] = match text.and_then(purity::read) {
                Ok(needs) => Statement::Reads { needs: Arc::new(needs), verdict: None },
                Err(because) => Statement::Unsafe(Arc::new(because)),
            };
        }
    }

    /// Whether a catalogue is there to prove anything by.
    pub(crate) fn has_catalogue(&self) -> bool {
        self.known.is_some()
    }

    /// A column that may hold ids of large objects, and its relation, as far as the catalogue is known.
    pub(super) fn object_column(&self, relation: Oid, number: i16) -> Option<(&ObjectName, &ObjectColumn)> {
        self.known.as_ref()?.catalogue.object_column(relation, number)
    }

    /// Whether a column's comment says how much of its objects is to be read ahead.
    pub(super) fn have_prefetch_comments(&self) -> bool {
        self.known.as_ref().is_some_and(|known| known.catalogue.has_prefetch_comments())
    }

    /// Whether no function of the database is known to open, move or close cursors (rule R9).
    pub(super) fn leaves_cursors(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.catalogue.moves_cursors())
    }

    /// What the text of this template leaves open, if it may only read.
    pub(crate) fn needs_of(&self, template: u32) -> Option<&Needs> {
        match self.statements.get(template as usize)? {
            Statement::Reads { needs, .. } => Some(needs),
            Statement::Unseen | Statement::Unsafe(_) => None,
        }
    }

    /// Why statements of this template are not proven to only read, as far as that was looked at.
    pub(super) fn impure(&self, template: u32) -> Option<Arc<Impure>> {
        match self.statements.get(template as usize)? {
            Statement::Unsafe(because) => Some(Arc::clone(because)),
            Statement::Reads { verdict, .. } => verdict.as_ref()?.0.clone().err(),
            Statement::Unseen => None,
        }
    }

    /// Whether statements of this template are proven to do nothing but read the snapshot.
    fn only_reads(&mut self, now: Moment, template: u32) -> bool {
        let Some(known) = &self.known else { return false };
        if !known.is_fresh(now, &self.changes) {
            return false;
        }
        let Some(Statement::Reads { needs, verdict }) = self.statements.get_mut(template as usize) else {
            return false;
        };
        match verdict {
            Some((reads, catalogue)) if Arc::ptr_eq(catalogue, &known.catalogue) => reads.is_ok(),
            _ => {
                let reads = known.catalogue.check(needs).map(|_| ()).map_err(Arc::new);
                let is_pure = reads.is_ok();
                *verdict = Some((reads, Arc::clone(&known.catalogue)));
                is_pure
            }
        }
    }
}

impl Known {
    fn is_fresh(&self, now: Moment, changes: &Changes) -> bool {
        self.epoch == changes.epoch() && now.since(self.asked_at) < FRESH.as_nanos() as u64
    }
}

impl Session {
    /// Whether a remedy is on that depends on what statements do.
    pub(crate) fn needs_facts(&self) -> bool {
        self.needs_level() || self.may_remedy(Remedy::Statements)
    }

    /// Whether a remedy is on that depends on the level of transactions.
    pub(crate) fn needs_level(&self) -> bool {
        [Remedy::Commit, Remedy::Loops, Remedy::Cursors, Remedy::Repeats, Remedy::Lobs]
            .into_iter()
            .any(|one| self.may_remedy(one))
    }

    /// Whether statements of this template are proven to do nothing but read the snapshot, as this session writes them.
    pub(crate) fn only_reads(&mut self, now: Moment, template: u32) -> bool {
        self.standard_strings && self.is_utf8 && self.facts.only_reads(now, template)
    }

    /// Proves that what was sent only reads, or takes the session's state for unknown.
    pub(crate) fn prove(&mut self, now: Moment) {
        let mut unproven = std::mem::take(&mut self.facts.unproven);
        let is_proven =
            unproven.len() <= UNPROVEN_MAX && unproven.iter().all(|template| self.only_reads(now, *template));
        if !is_proven {
            self.forget(false);
        }
        unproven.clear();
        self.facts.unproven = unproven;
    }

    /// Between transactions, with nothing under way: asks for what is not known (rule K2).
    pub(crate) fn inquire(&mut self, now: Moment) {
        if !self.needs_facts() || self.inquiries.is_asked(Question::State) {
            return;
        }
        self.prove(now);
        let common = Arc::clone(&self.config.common);
        let knowledge = &common.knowledge;
        let changes = Arc::clone(&self.facts.changes);
        let epoch = changes.epoch();
        let may_use = |known: &Known| known.is_fresh(now, &changes);
        if !self.facts.is_known {
            if std::mem::replace(&mut self.facts.is_state_asked, true) {
                return;
            }
            self.ask(Question::State, STATE_QUERY, true);
            let is_first = self.facts.place.path.is_empty();
            let is_there = knowledge.get(&self.facts.place).as_ref().is_some_and(may_use);
            if is_there || is_first && knowledge.has(&self.facts.place.database) {
                return;
            }
        }
        if self.facts.known.as_ref().is_some_and(may_use) {
            return;
        }
        self.facts.known = knowledge.get(&self.facts.place);
        let is_recent = |asked_at: Moment| now.since(asked_at) < ASK_EVERY.as_nanos() as u64;
        let is_of_use = |known: &Known| may_use(known) || is_recent(known.asked_at);
        if self.facts.known.as_ref().is_some_and(is_of_use)
            || self.facts.catalogue_asked_at.is_some_and(is_recent)
        {
            return;
        }
        self.facts.catalogue_asked_at = Some(now);
        self.facts.building = Some((Catalogue::builder(), now, epoch));
        self.ask(Question::Catalogue, CATALOGUE_QUERY, true);
    }

    /// A row of the answer to a question.
    pub(crate) fn learn(&mut self, question: Question, row: Values<'_>) {
        let columns: Vec<Option<&[u8]>> = row.iter().collect();
        match (question, columns.as_slice()) {
            (Question::State, [Some(path), Some(role), Some(is_special), Some(number)]) => {
                self.facts.place.path = [*path, *role, *number].join(&0);
                self.facts.is_known = *is_special == b"f" && self.facts.is_state_asked;
            }
            (Question::Isolation, [Some(level)]) => {
                self.transaction.learn_level(level);
            }
            (Question::Catalogue, columns) => {
                let Some((builder, ..)) = &mut self.facts.building else { return };
                if builder.row(columns).is_err() {
                    self.facts.building = None;
                }
            }
            (Question::Names, [Some(has_any)]) => self.watching.learn_names(*has_any != b"f"),
            (Question::Cursor, [Some(is_scrollable)]) => self.learn_place(*is_scrollable == b"t"),
            _ => self.undecoded += 1,
        }
    }

    /// The answer is complete.
    pub(crate) fn learned_all(&mut self, question: Question) {
        if question == Question::State {
            // The catalogue of this place, and of no other; at once, for the transaction that may have begun.
            self.facts.known = self.config.common.knowledge.get(&self.facts.place);
        }
        if question == Question::Cursor {
            self.learned_place();
        }
        if question != Question::Catalogue {
            return;
        }
        let Some((builder, asked_at, epoch)) = self.facts.building.take() else { return };
        let Ok(catalogue) = builder.finish() else { return };
        let known = Known { catalogue: Arc::new(catalogue), asked_at, epoch };
        self.config.common.knowledge.put(self.facts.place.clone(), known.clone());
        self.facts.known = Some(known);
    }

    /// The server would not say.
    pub(crate) fn learn_nothing(&mut self, question: Question) {
        if question == Question::Cursor {
            self.learned_place();
        }
        if question == Question::Catalogue {
            self.facts.building = None;
        }
    }
}
