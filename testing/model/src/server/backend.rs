//! One session of the model: its transaction, statements, portals and settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::analysis::{Analyzed, Described};
use super::failure::{Failure, Warning};
use super::faults::Faults;
use super::locks::Locks;
use super::rows::{Row, Rows};
use super::settings::Settings;
use super::syntax::{Level, Modes, Statement};
use super::transaction::{Block, Transaction};
use super::value::Value;
use super::writes::Progress;

/// What sessions share.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) rows: Rows,
    pub(crate) locks: Locks,
    /// The major version that it answers as.
    pub(crate) version: u32,
    /// Keys that sessions have locked until they end, or discard all.
    pub(crate) advisory: BTreeMap<i64, usize>,
    pub(crate) faults: Faults,
    /// Whether there is the function `moves`.
    pub(crate) has_moves: bool,
    /// Whether [`WIDENED`] is a bigint.
    pub(crate) is_wide: bool,
    /// Calls of the function of a user's that is named as one of the server's.
    pub(crate) calls: u64,
    /// In nanoseconds.
    pub(crate) now: u64,
    turns: u64,
}

impl World {
    pub(crate) fn new(version: u32) -> Self {
        Self { version, ..Self::default() }
    }

    /// A number for the next that waits.
    pub(crate) fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }
}

/// A statement that was parsed; `None` is an empty text.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) statement: Option<Statement>,
    pub(crate) analyzed: Analyzed,
}

impl Prepared {
    /// Fails where its result has other types than when it was parsed (`RevalidateCachedQuery`).
    pub(crate) fn is_as_parsed(&self, is_wide: bool) -> Result<(), Failure> {
        let Some(statement) = &self.statement else { return Ok(()) };
        let declared: Vec<u32> = self.analyzed.parameters.iter().map(|kind| kind.oid()).collect();
        match super::analysis::analyze(statement, &declared, is_wide)?.columns == self.analyzed.columns {
            true => Ok(()),
            false => Err(Failure::new("0A000", "cached plan must not change result type")),
        }
    }
}

/// What a statement gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output {
    pub(crate) columns: Option<Arc<[Described]>>,
    pub(crate) rows: Vec<Row>,
    /// What comes behind the rows instead of an end.
    pub(crate) failure: Option<Failure>,
    pub(crate) tag: String,
    pub(crate) warning: Option<Warning>,
}

#[derive(Debug, Clone)]
pub(crate) enum PortalState {
    /// To be run.
    Ready,
    /// Rows, of which some were taken; `at_end` once more were asked for than there are.
    Rows {
        output: Output,
        at: usize,
        at_end: bool,
    },
    /// It has run, and has nothing to give.
    Done,
    Failed,
    /// The transaction that it was made in has failed, and took its statement from it.
    Released,
}

/// A portal or a cursor.
#[derive(Debug)]
pub(crate) struct Portal {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) parameters: Vec<Value>,
    pub(crate) formats: Vec<u8>,
    pub(crate) state: PortalState,
    /// How many savepoints there were.
    pub(crate) depth: usize,
    /// It outlives its transaction.
    pub(crate) holds: bool,
    /// Its transaction is over.
    pub(crate) is_held: bool,
    pub(crate) goes_back: bool,
}

/// The end of a step of work.
pub(crate) enum Turn<T> {
    Done(T),
    /// These sessions are in the way.
    Blocked(Vec<usize>),
}

/// One session.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) number: usize,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) settings: Settings,
    pub(crate) prepared: BTreeMap<Vec<u8>, Arc<Prepared>>,
    pub(crate) portals: BTreeMap<Vec<u8>, Portal>,
    /// Of the statement that waits for others.
    pub(crate) progress: Option<Progress>,
    /// Its server follows another one, and writes nothing.
    pub(crate) stands_by: bool,
}

impl Backend {
    pub(crate) fn new(number: usize) -> Self {
        Self {
            number,
            transaction: None,
            settings: Settings::default(),
            prepared: BTreeMap::new(),
            portals: BTreeMap::new(),
            progress: None,
            stands_by: false,
        }
    }

    /// As ReadyForQuery says it.
    pub(crate) fn status(&self) -> u8 {
        match &self.transaction {
            Some(transaction) if transaction.block == Block::Single => b'I',
            Some(transaction) if transaction.has_failed => b'E',
            Some(_) => b'T',
            None => b'I',
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.has_failed)
    }

    pub(crate) fn depth(&self) -> usize {
        self.transaction.as_ref().map_or(0, Transaction::depth)
    }

    pub(crate) fn is_in_block(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.block == Block::Explicit)
    }

    /// The transaction that a statement runs in; begins one where there is none.
    pub(crate) fn transaction(&mut self) -> &mut Transaction {
        let (settings, stands_by) = (&self.settings, self.stands_by);
        self.transaction.get_or_insert_with(|| {
            let level = match settings.get("default_transaction_isolation") {
                Ok("repeatable read") => Level::RepeatableRead,
                _ => Level::ReadCommitted,
            };
            Transaction::new(Block::Single, level, stands_by, settings.before())
        })
    }

    /// Commits; a cursor that is to outlive the transaction and fails, fails the COMMIT.
    pub(crate) fn commit(&mut self, world: &mut World) -> Result<(), Failure> {
        let fails = |portal: &Portal| match &portal.state {
            PortalState::Rows { output, .. } if portal.holds && !portal.is_held => output.failure.clone(),
            _ => None,
        };
        if let Some(failure) = self.portals.values().find_map(fails) {
            self.roll_back(world);
            return Err(failure);
        }
        if self.transaction.as_ref().is_some_and(|transaction| transaction.is_dangerous(&world.rows)) {
            self.roll_back(world);
            let text = "could not serialize access due to read/write dependencies among transactions";
            return Err(Failure::new("40001", text));
        }
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        if let Some(xid) = transaction.xid {
            world.rows.commit(xid);
        }
        self.portals.retain(|_, portal| portal.holds);
        for portal in self.portals.values_mut() {
            (portal.is_held, portal.depth) = (true, 0);
        }
        self.settings.transaction_over();
        world.locks.release_all(self.number);
        Ok(())
    }

    /// Ends the transaction and takes back what it did.
    pub(crate) fn roll_back(&mut self, world: &mut World) {
        let Some(mut transaction) = self.transaction.take() else { return };
        let before = transaction.take_back(None, &mut world.rows);
        if let Some(xid) = transaction.xid {
            world.rows.abort(xid);
        }
        self.settings.take_back(&before);
        self.settings.transaction_over();
        self.portals.retain(|_, portal| portal.is_held);
        world.locks.release_all(self.number);
    }

    /// A statement has failed: what its innermost savepoint holds is undone, and nothing more runs.
    pub(crate) fn fail(&mut self, world: &mut World) {
        self.progress = None;
        world.locks.give_up(self.number);
        let Some(transaction) = &mut self.transaction else { return };
        if transaction.block != Block::Explicit {
            return self.roll_back(world);
        }
        if transaction.has_failed {
            return;
        }
        transaction.has_failed = true;
        let depth = transaction.depth();
        let before = transaction.take_back(depth.checked_sub(1), &mut world.rows);
        self.settings.take_back(&before);
        match depth {
            0 => {
                if let Some(xid) = transaction.xid.take() {
                    world.rows.abort(xid);
                }
                world.locks.release_all(self.number);
            }
            _ => world.locks.release_above(self.number, depth - 1),
        }
        let own = self.portals.values_mut().filter(|portal| portal.depth == depth && !portal.is_held);
        for portal in own.filter(|portal| !matches!(portal.state, PortalState::Failed)) {
            portal.state = PortalState::Released;
        }
    }

    pub(crate) fn roll_back_to(&mut self, name: &str, world: &mut World) -> Result<(), Failure> {
        if world.faults.back_to.take_if(|beginning| name.starts_with(*beginning)).is_some() {
            return Err(Failure::new("53200", "out of memory"));
        }
        let place = self.savepoint(name, "ROLLBACK TO SAVEPOINT")?;
        let transaction = self.transaction();
        let before = transaction.take_back(Some(place), &mut world.rows);
        transaction.savepoints.truncate(place + 1);
        transaction.has_failed = false;
        self.settings.take_back(&before);
        self.portals.retain(|_, portal| portal.is_held || portal.depth <= place);
        world.locks.release_above(self.number, place);
        Ok(())
    }

    pub(crate) fn release(&mut self, name: &str, world: &mut World) -> Result<(), Failure> {
        let place = self.savepoint(name, "RELEASE SAVEPOINT")?;
        self.transaction().savepoints.truncate(place);
        for portal in self.portals.values_mut() {
            portal.depth = portal.depth.min(place);
        }
        world.locks.keep_at(self.number, place);
        Ok(())
    }

    fn savepoint(&mut self, name: &str, what: &str) -> Result<usize, Failure> {
        self.needs_block(what)?;
        let found = self.transaction().find(name);
        found.ok_or_else(|| Failure::new("3B001", format!("savepoint \"{name}\" does not exist")))
    }

    /// What only goes in a transaction of several statements.
    pub(crate) fn needs_block(&self, what: &str) -> Result<(), Failure> {
        if self.is_in_block() {
            return Ok(());
        }
        Err(Failure::new("25P01", format!("{what} can only be used in transaction blocks")))
    }

    /// Gives the transaction what BEGIN or SET TRANSACTION says.
    pub(crate) fn set_modes(&mut self, modes: Modes) -> Result<(), Failure> {
        if self.stands_by && modes.read_only == Some(false) {
            let text = "cannot set transaction read-write mode during recovery";
            return Err(Failure::new("0A000", text));
        }
        if self.stands_by && modes.level == Some(Level::Serializable) {
            return Err(Failure::new("0A000", "cannot use serializable mode in a hot standby"));
        }
        let transaction = self.transaction();
        let has_read = transaction.snapshot.is_some();
        if let Some(level) = modes.level.filter(|level| *level != transaction.level) {
            if has_read {
                let message = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(Failure::new("25001", message));
            }
            if transaction.depth() > 0 {
                let message = "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction";
                return Err(Failure::new("25001", message));
            }
            transaction.level = level;
        }
        match modes.read_only {
            Some(false) if transaction.read_only && has_read => {
                let message = "transaction read-write mode must be set before any query";
                return Err(Failure::new("25001", message));
            }
            Some(read_only) => transaction.read_only = read_only,
            None => {}
        }
        Ok(())
    }
}
