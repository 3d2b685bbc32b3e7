//! Versions of rows, and which of them a snapshot sees.

use std::sync::{Arc, OnceLock};

use super::schema::{self, TABLES, Table};
use super::value::Value;

/// The number of a transaction that writes.
pub(crate) type Xid = usize;
/// A snapshot sees the first so many commits.
pub(crate) type Snapshot = u64;

/// What made the rows that a table begins with.
const FIRST: Xid = 0;
/// What made the rows that were taken back.
const NEVER: Xid = 1;

pub(crate) type Row = Arc<[Value]>;

#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) row: Row,
    made_by: Xid,
    ended_by: Option<Xid>,
    locked_by: Option<Xid>,
    /// What an UPDATE made of it.
    pub(crate) next: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// In the session of this number.
    Runs(usize),
    /// As the so manyth.
    Committed(u64),
    Aborted,
}

/// What a transaction did to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Made,
    Ended,
    Locked,
}

/// Why a row cannot be changed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Free,
    /// The transaction of this session must end first.
    Waits(usize),
    /// The transaction itself has changed it.
    Own,
    /// Another one has changed it and committed: what it is now, if it is.
    Changed(Option<usize>),
}

/// All tables, and the fates of those who wrote.
#[derive(Debug)]
pub(crate) struct Rows {
    tables: Vec<Vec<Version>>,
    fates: Vec<Fate>,
    commits: u64,
}

impl Default for Rows {
    fn default() -> Self {
        static FIRST_ROWS: OnceLock<Vec<Vec<Row>>> = OnceLock::new();
        let first = FIRST_ROWS.get_or_init(|| {
            (0..TABLES.len()).map(|table| schema::rows(table).into_iter().map(Row::from).collect()).collect()
        });
        let version = |row: &Row| Version::new(Arc::clone(row), FIRST);
        let tables = first.iter().map(|rows| rows.iter().map(version).collect()).collect();
        Self { tables, fates: vec![Fate::Committed(0), Fate::Aborted], commits: 0 }
    }
}

impl Version {
    fn new(row: Row, made_by: Xid) -> Self {
        Self { row, made_by, ended_by: None, locked_by: None, next: None }
    }
}

impl Rows {
    pub(crate) fn now(&self) -> Snapshot {
        self.commits
    }

    pub(crate) fn begin(&mut self, backend: usize) -> Xid {
        self.fates.push(Fate::Runs(backend));
        self.fates.len() - 1
    }

    pub(crate) fn commit(&mut self, xid: Xid) {
        self.commits += 1;
        self.fates[xid] = Fate::Committed(self.commits);
    }

    pub(crate) fn abort(&mut self, xid: Xid) {
        self.fates[xid] = Fate::Aborted;
    }

    fn is_seen(&self, by: Xid, snapshot: Snapshot, own: Option<Xid>) -> bool {
        Some(by) == own || matches!(self.fates[by], Fate::Committed(at) if at <= snapshot)
    }

    /// The versions that a snapshot sees, and where they are.
    pub(crate) fn seen(
        &self,
        table: Table,
        snapshot: Snapshot,
        own: Option<Xid>,
    ) -> impl Iterator<Item = (usize, &Row)> {
        let is_seen = move |version: &Version| {
            self.is_seen(version.made_by, snapshot, own)
                && !version.ended_by.is_some_and(|by| self.is_seen(by, snapshot, own))
        };
        let versions = self.tables[table].iter().enumerate();
        versions.filter(move |(_, version)| is_seen(version)).map(|(at, version)| (at, &version.row))
    }

    /// Whether somebody else's commit since a snapshot has changed a table.
    pub(crate) fn is_changed_since(&self, table: Table, snapshot: Snapshot, own: Option<Xid>) -> bool {
        let is_later =
            |by: Xid| Some(by) != own && matches!(self.fates[by], Fate::Committed(at) if at > snapshot);
        let is_touched =
            |version: &Version| is_later(version.made_by) || version.ended_by.is_some_and(is_later);
        self.tables[table].iter().any(is_touched)
    }

    pub(crate) fn row(&self, table: Table, at: usize) -> &Row {
        &self.tables[table][at].row
    }

    /// Whether a version may be changed by `own`.
    pub(crate) fn standing(&self, table: Table, at: usize, own: Option<Xid>) -> Standing {
        let version = &self.tables[table][at];
        match (version.ended_by, version.locked_by) {
            (Some(by), _) if Some(by) == own => Standing::Own,
            (Some(by), _) => self.runs(by).map_or(Standing::Changed(version.next), Standing::Waits),
            (None, Some(by)) if Some(by) != own => self.runs(by).map_or(Standing::Free, Standing::Waits),
            _ => Standing::Free,
        }
    }

    /// The session whose transaction runs.
    fn runs(&self, xid: Xid) -> Option<usize> {
        match self.fates[xid] {
            Fate::Runs(backend) => Some(backend),
            _ => None,
        }
    }

    /// Whether a key is taken; `Err` waits for a session that has made or ended a row of that key.
    pub(crate) fn is_taken(&self, table: Table, key: &Value, own: Option<Xid>) -> Result<bool, usize> {
        for version in self.tables[table].iter().filter(|version| version.row[0] == *key) {
            let runs = |by: Xid| if Some(by) == own { None } else { self.runs(by) };
            if version.made_by == NEVER {
                continue;
            }
            if let Some(other) = runs(version.made_by) {
                return Err(other);
            }
            match version.ended_by {
                None => return Ok(true),
                Some(by) => runs(by).map_or(Ok(()), Err)?,
            }
        }
        Ok(false)
    }

    pub(crate) fn make(&mut self, table: Table, row: Row, by: Xid) -> usize {
        self.tables[table].push(Version::new(row, by));
        self.tables[table].len() - 1
    }

    pub(crate) fn end(&mut self, table: Table, at: usize, by: Xid, next: Option<usize>) {
        let version = &mut self.tables[table][at];
        version.ended_by = Some(by);
        version.next = next;
    }

    pub(crate) fn lock(&mut self, table: Table, at: usize, by: Xid) {
        self.tables[table][at].locked_by = Some(by);
    }

    pub(crate) fn is_locked_by(&self, table: Table, at: usize, by: Xid) -> bool {
        self.tables[table][at].locked_by == Some(by)
    }

    pub(crate) fn take_back(&mut self, table: Table, at: usize, deed: Deed) {
        let version = &mut self.tables[table][at];
        match deed {
            Deed::Made => version.made_by = NEVER,
            Deed::Ended => (version.ended_by, version.next) = (None, None),
            Deed::Locked => version.locked_by = None,
        }
    }

    /// What a snapshot of now sees, as lines.
    pub(crate) fn shown(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (number, table) in TABLES.iter().enumerate() {
            let mut lines: Vec<String> = self
                .seen(number, self.commits, None)
                .map(|(_, row)| {
                    let values: Vec<_> =
                        row.iter().map(|value| value.text().unwrap_or_else(|| "NULL".to_owned())).collect();
                    format!("{}: {}", table.name, values.join("|"))
                })
                .collect();
            lines.sort();
            out.append(&mut lines);
        }
        out
    }
}
