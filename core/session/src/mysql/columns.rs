//! Columns of results, while they are described and afterwards.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::StreamEncoder;
use onetrip_wire::mysql::{ColumnDefinition, ColumnType};
use smallvec::SmallVec;

use super::values::Form;
use crate::names::{KEY_COLUMNS_MAX, Layout, Names};

/// Columns that a result can have (`MAX_FIELDS` of both servers).
const COLUMNS_MAX: u64 = 4096;
/// Longest description that is kept, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 64 * 1024;
/// Bytes of descriptions that are remembered, at most; beyond, all are forgotten.
const KNOWN_BYTES_MAX: usize = 2 * DESCRIPTION_BYTES_MAX;
/// What one takes besides its bytes.
const OVERHEAD_BYTES: usize = 64;
/// The name of a column that is no table's: an expression without a name is called by its text, and that may hold values.
const EXPRESSION: &[u8] = b"(expression)";
/// Flag of a column that has no negative numbers (`UNSIGNED_FLAG`).
const UNSIGNED: u16 = 32;

/// Columns of a result.
#[derive(Debug, Clone, Default)]
pub(super) struct Described {
    /// Of all columns.
    pub(super) types: Arc<[ColumnType]>,
    /// Its layout; zero if no column may be a key.
    pub(super) layout: u32,
}

impl Described {
    /// What it takes besides itself.
    pub(super) fn bytes(&self) -> usize {
        self.types.len() * size_of::<ColumnType>()
    }
}

/// A description on its way.
#[derive(Debug, Default)]
pub(super) struct Describing {
    /// Definitions of parameters that come first.
    parameters: u16,
    /// Columns that are still to come.
    missing: u64,
    types: Vec<ColumnType>,
    /// Forms and names of all columns, one after the other.
    description: Vec<u8>,
    keys: SmallVec<[(u16, u32); 8]>,
    /// Where the keys' names are in it.
    names: SmallVec<[Range<usize>; 8]>,
    /// What was described before, by its description: results of one statement have the same columns.
    known: HashMap<Box<[u8]>, Described, RandomState>,
    /// Bytes of all of them.
    known_bytes: usize,
}

impl Describing {
    /// So many parameters and columns will be described.
    pub(super) fn begin(&mut self, parameters: u16, columns: u64) {
        self.parameters = parameters;
        self.missing = if columns > COLUMNS_MAX { 0 } else { columns };
        self.types.clear();
        self.description.clear();
        self.keys.clear();
        self.names.clear();
    }

    /// A definition comes. Returns whether the columns are described with it. Names of expressions are kept only if values are.
    pub(super) fn take(&mut self, column: &ColumnDefinition<'_>, keep_values: bool) -> bool {
        if self.parameters > 0 {
            self.parameters -= 1;
            return false;
        }
        if self.missing == 0 {
            return false;
        }
        let form = Form::of_column(column.column_type, column.flags & UNSIGNED != 0, column.character_set);
        let position = self.types.len() as u16;
        self.types.push(column.column_type);
        self.description.extend_from_slice(&form.code().to_le_bytes());
        let start = self.description.len();
        // Servers name a database only for columns of tables, and by their own names those have no values in them.
        let is_expression = column.schema.is_empty() && !keep_values;
        self.description.extend_from_slice(if is_expression { EXPRESSION } else { column.name });
        let name = start..self.description.len();
        self.description.push(0);
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            self.begin(0, 0);
            return false;
        }
        if form.may_be_key() && self.keys.len() < KEY_COLUMNS_MAX {
            self.keys.push((position, form.code()));
            self.names.push(name);
        }
        self.missing -= 1;
        self.missing == 0
    }

    /// What was described.
    pub(super) fn described(&mut self, names: &mut Names, stream: &mut StreamEncoder) -> Described {
        if let Some(known) = self.known.get(self.description.as_slice()) {
            return known.clone();
        }
        let layout = match names.known_layout(&self.description) {
            Some(known) => known,
            None if self.keys.is_empty() => 0,
            None => {
                let layout = Layout { keys: self.keys.clone(), objects: SmallVec::new() };
                let key_names = self.names.iter().map(|name| &self.description[name.clone()]);
                names.define_layout(&self.description, layout, key_names, stream)
            }
        };
        let described = Described { types: self.types.as_slice().into(), layout };
        let bytes = self.description.len() + described.bytes() + OVERHEAD_BYTES;
        if self.known_bytes + bytes > KNOWN_BYTES_MAX {
            self.known.clear();
            self.known_bytes = 0;
        }
        self.known_bytes += bytes;
        self.known.insert(self.description.as_slice().into(), described.clone());
        described
    }

    /// Gives back its room where nothing is on its way.
    pub(super) fn rest(&mut self) {
        if self.parameters == 0 && self.missing == 0 {
            *self = Self::default();
        }
    }
}
