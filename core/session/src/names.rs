//! Templates, scopes and layouts of results under small numbers, as the trace has them.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onetrip_ledger::StreamEncoder;
use onetrip_sql::purity::may_call;
use onetrip_wire::pg::{Oid, RowDescription};
use smallvec::SmallVec;

use crate::canonical::{OBJECT_ID, is_key_type};
use crate::texts::Texts;

/// Templates, scopes and layouts that one connection may define; what comes beyond is not told apart.
const DEFINED_MAX: usize = 16_384;
/// Bytes of their texts, at most.
const DEFINED_BYTES_MAX: usize = 768 * 1024;
/// What one takes besides its text.
const OVERHEAD_BYTES: usize = 56;
/// Columns of one result that may hold objects and are looked at.
const OBJECT_COLUMNS_MAX: usize = 8;
/// Key-like columns of a result that are kept.
pub(crate) const KEY_COLUMNS_MAX: usize = 16;

/// Stands for a scope whose label has no number. It is never written: the unit is counted as one without a known scope,
/// and no other scope takes it.
pub(crate) const UNTOLD_SCOPE: u32 = u32::MAX;

/// Texts of one connection under small numbers, defined in its stream before their first use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    shared: Arc<Texts>,
    templates: Ids,
    scopes: Ids,
    layouts: HashMap<Box<[u8]>, u32, RandomState>,
    layout_list: Vec<Layout>,
    /// Some results are not told apart, because there are too many.
    leaves_out_results: bool,
    /// Of templates that were asked about, by their number: whether they may call what users define.
    calls: HashMap<u32, bool, RandomState>,
    /// Bytes of all of them.
    bytes: usize,
}

/// Numbers of texts.
#[derive(Debug, Default)]
struct Ids {
    known: HashMap<Arc<[u8]>, u32, RandomState>,
    /// Some text has none, because there are too many.
    leaves_out: bool,
}

/// The columns of a result that may be keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Position and type, in order; the type is the protocol's own number.
    pub(crate) keys: SmallVec<[(u16, u32); 8]>,
    /// Those that may hold large objects.
    pub(crate) objects: SmallVec<[ObjectColumn; 1]>,
}

impl Names {
    pub(crate) fn new(shared: Arc<Texts>) -> Self {
        Self { shared, ..Self::default() }
    }

    /// The id of a template; zero where there are too many.
    pub(crate) fn template(&mut self, text: &[u8], stream: &mut StreamEncoder) -> u32 {
        self.templates.intern(&mut self.bytes, &self.shared, text, |id| stream.template(id, text))
    }

    /// Whether the template of this id and text may call what users define.
    pub(crate) fn may_call(&mut self, id: u32, text: &[u8]) -> bool {
        match id {
            0 => may_call(text),
            _ => *self.calls.entry(id).or_insert_with(|| may_call(text)),
        }
    }

    /// The id of a scope's label; zero for none, [`UNTOLD_SCOPE`] where there are too many.
    pub(crate) fn scope(&mut self, label: &[u8], stream: &mut StreamEncoder) -> u32 {
        if label.is_empty() {
            return 0;
        }
        match self.scopes.intern(&mut self.bytes, &self.shared, label, |id| stream.scope(id, label)) {
            0 => UNTOLD_SCOPE,
            id => id,
        }
    }

    /// The id of a result's layout, from the body of its RowDescription; zero for one without keys.
    pub(crate) fn layout(&mut self, body: &[u8], stream: &mut StreamEncoder) -> u32 {
        if let Some(id) = self.known_layout(body) {
            return id;
        }
        let Ok(description) = RowDescription::decode(body) else { return 0 };
        let keys: SmallVec<[(u16, Oid); 8]> = (0..)
            .zip(description.columns())
            .filter(|(_, column)| is_key_type(column.type_oid))
            .map(|(position, column)| (position, column.type_oid))
            .take(KEY_COLUMNS_MAX)
            .collect();
        if keys.is_empty() {
            return 0;
        }
        let is_key = |position: u16| keys.iter().any(|(key, _)| *key == position);
        let names = (0..).zip(description.columns()).filter(|(position, _)| is_key(*position));
        let names: SmallVec<[&[u8]; 16]> = names.map(|(_, column)| column.name).take(keys.len()).collect();
        let layout = Layout { keys, objects: object_columns(&description) };
        self.define_layout(body, layout, names, stream)
    }

    /// The id of a layout that was defined by this description.
    pub(crate) fn known_layout(&self, description: &[u8]) -> Option<u32> {
        self.layouts.get(description).copied()
    }

    /// Defines a layout with keys of these names; zero where there are too many.
    pub(crate) fn define_layout<'n>(
        &mut self,
        description: &[u8],
        layout: Layout,
        names: impl IntoIterator<Item = &'n [u8]>,
        stream: &mut StreamEncoder,
    ) -> u32 {
        let bytes = description.len() + size_of::<Layout>();
        if self.layouts.len() >= DEFINED_MAX || !has_room(&mut self.bytes, bytes) {
            self.leave_out_results();
            return 0;
        }
        let id = self.layouts.len() as u32 + 1;
        stream.columns(id, names);
        self.layouts.insert(description.into(), id);
        if self.layout_list.is_empty() {
            self.layout_list.reserve_exact(1);
        }
        self.layout_list.push(layout);
        id
    }

    /// The layout with this id.
    pub(crate) fn layout_of(&self, id: u32) -> Option<&Layout> {
        self.layout_list.get((id as usize).checked_sub(1)?)
    }

    /// Results are not told apart, because there are too many: more of them from here on.
    pub(crate) fn leave_out_results(&mut self) {
        self.leaves_out_results = true;
    }

    /// Whether results are not told apart.
    pub(crate) fn leaves_out_results(&self) -> bool {
        self.leaves_out_results
    }

    /// Whether texts have no number, because there are too many.
    pub(crate) fn leaves_out_templates(&self) -> bool {
        self.templates.leaves_out
    }
}

impl Ids {
    /// The number of a text, which is defined if it is new; zero where there are too many.
    fn intern(&mut self, bytes: &mut usize, shared: &Texts, text: &[u8], define: impl FnOnce(u32)) -> u32 {
        if let Some(id) = self.known.get(text) {
            return *id;
        }
        let has_room = self.known.len() < DEFINED_MAX && has_room(bytes, text.len());
        let Some(text) = has_room.then(|| shared.share(text)).flatten() else {
            self.leaves_out = true;
            return 0;
        };
        let id = self.known.len() as u32 + 1;
        define(id);
        self.known.insert(text, id);
        id
    }
}

fn has_room(bytes: &mut usize, more: usize) -> bool {
    let all = *bytes + more + OVERHEAD_BYTES;
    if all > DEFINED_BYTES_MAX {
        return false;
    }
    *bytes = all;
    true
}

/// A column that holds oids, in a result.
#[derive(Debug, Clone)]
pub(crate) struct ObjectColumn {
    pub(crate) position: u16,
    /// The table or view that it is a column of; zero for none.
    pub(crate) table: Oid,
    /// Its number there.
    pub(crate) number: i16,
}

/// Columns of a result that hold oids; what is of the domain `lo` is described so as well.
fn object_columns(description: &RowDescription<'_>) -> SmallVec<[ObjectColumn; 1]> {
    (0..)
        .zip(description.columns())
        .filter(|(_, column)| column.type_oid == OBJECT_ID)
        .map(|(position, column)| ObjectColumn { position, table: column.table, number: column.attribute })
        .take(OBJECT_COLUMNS_MAX)
        .collect()
}
