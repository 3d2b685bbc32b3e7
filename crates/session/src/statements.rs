use std::collections::HashMap;

use foldhash::fast::RandomState;
use onetrip_ledger::ValueHash;
use onetrip_sql::{FetchCount, Lifted, StatementKind};
use onetrip_wire::pg::{Format, Oid};
use smallvec::SmallVec;

/// Named statements or portals of one connection that are followed.
const FOLLOWED_MAX: usize = 65_536;

/// What is known of a statement's text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) template: u32,
    /// Rows that a FETCH asks for, zero for all or another kind.
    pub(crate) row_limit: u32,
    /// Scope that the statement's comment names, or zero.
    pub(crate) scope: u32,
    /// Scope that the statement sets for the session.
    pub(crate) sets_scope: Option<u32>,
    /// Tells requests apart, or zero.
    pub(crate) request: u64,
}

/// A prepared statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prepared {
    pub(crate) text: Text,
    /// Types that the client fixed for its parameters.
    pub(crate) types: SmallVec<[Oid; 8]>,
    /// Values of the literals in its text.
    pub(crate) literals: SmallVec<[ValueHash; 4]>,
}

/// A portal: a statement with its parameters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Portal {
    pub(crate) text: Text,
    /// Where its Bind was booked: unit and statement.
    pub(crate) booked: Option<(u64, u16)>,
    pub(crate) formats: ResultFormats,
}

/// How the columns of a result are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResultFormats(SmallVec<[u8; 8]>);

/// What the server has told about statements of one template.
#[derive(Debug, Clone, Default)]
pub(crate) struct Learned {
    /// Layout of the result, zero as long as it was not described.
    pub(crate) layout: u32,
    /// Types of the parameters.
    pub(crate) types: SmallVec<[Oid; 8]>,
}

/// Statements and portals of one connection by name; the unnamed ones need no allocation.
#[derive(Debug, Default)]
pub(crate) struct Named<T> {
    unnamed: Option<T>,
    named: HashMap<Box<[u8]>, T, RandomState>,
}

impl<T> Named<T> {
    pub(crate) fn get(&self, name: &[u8]) -> Option<&T> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(name) }
    }

    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut T> {
        if name.is_empty() { self.unnamed.as_mut() } else { self.named.get_mut(name) }
    }

    pub(crate) fn put(&mut self, name: &[u8], value: T) {
        if name.is_empty() {
            self.unnamed = Some(value);
        } else if let Some(old) = self.named.get_mut(name) {
            *old = value;
        } else if self.named.len() < FOLLOWED_MAX {
            self.named.insert(name.into(), value);
        }
    }

    pub(crate) fn remove(&mut self, name: &[u8]) {
        if name.is_empty() {
            self.unnamed = None;
        } else {
            self.named.remove(name);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.unnamed = None;
        self.named.clear();
    }
}

impl ResultFormats {
    /// Reads the Int16 codes of a Bind.
    pub(crate) fn new(codes: &[u8]) -> Self {
        Self(codes.chunks_exact(2).map(|code| code[1]).collect())
    }

    /// Whether any column may be binary.
    pub(crate) fn has_binary(&self) -> bool {
        self.0.iter().any(|code| *code != 0)
    }

    /// The format of result column `index`.
    pub(crate) fn of(&self, index: usize) -> Format {
        let index = if self.0.len() == 1 { 0 } else { index };
        match self.0.get(index) {
            None | Some(0) => Format::Text,
            Some(_) => Format::Binary,
        }
    }
}

/// Rows that the text of a FETCH asks for.
pub(crate) fn row_limit(lifted: &Lifted<'_>) -> u32 {
    match lifted.facts().fetch_count {
        Some(FetchCount::Rows(rows)) if lifted.kind() == StatementKind::Fetch => {
            u32::try_from(rows.unsigned_abs()).unwrap_or(0)
        }
        _ => 0,
    }
}
