use std::collections::HashMap;

use foldhash::fast::RandomState;
use onetrip_ledger::StreamEncoder;
use onetrip_wire::pg::{Oid, RowDescription};
use smallvec::SmallVec;

use crate::canonical::is_key_type;
use crate::remedies::{ObjectColumn, object_columns};

/// Templates, scopes and layouts that one connection may define; what comes beyond is not told apart.
const DEFINED_MAX: usize = 16_384;
/// Key-like columns of a result that are kept.
const KEY_COLUMNS_MAX: usize = 16;

/// Texts of one connection under small numbers, defined in its stream before their first use.
#[derive(Debug, Default)]
pub(crate) struct Names {
    templates: HashMap<Box<[u8]>, u32, RandomState>,
    scopes: HashMap<Box<[u8]>, u32, RandomState>,
    layouts: HashMap<Box<[u8]>, u32, RandomState>,
    layout_list: Vec<Layout>,
}

/// The columns of a result that may be keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    /// Position and type, in order.
    pub(crate) keys: SmallVec<[(u16, Oid); 8]>,
    /// Those that may hold large objects.
    pub(crate) objects: SmallVec<[ObjectColumn; 1]>,
}

impl Names {
    /// The id of a template; zero where there are too many.
    pub(crate) fn template(&mut self, text: &[u8], stream: &mut StreamEncoder) -> u32 {
        intern(&mut self.templates, text, |id| stream.template(id, text))
    }

    /// The id of a scope's label; zero for none.
    pub(crate) fn scope(&mut self, label: &[u8], stream: &mut StreamEncoder) -> u32 {
        if label.is_empty() {
            return 0;
        }
        intern(&mut self.scopes, label, |id| stream.scope(id, label))
    }

    /// The id of a result's layout, from the body of its RowDescription; zero for one without keys.
    pub(crate) fn layout(&mut self, body: &[u8], stream: &mut StreamEncoder) -> u32 {
        if let Some(id) = self.layouts.get(body) {
            return *id;
        }
        let Ok(description) = RowDescription::decode(body) else { return 0 };
        let keys: SmallVec<[(u16, Oid); 8]> = (0..)
            .zip(description.columns())
            .filter(|(_, column)| is_key_type(column.type_oid))
            .map(|(position, column)| (position, column.type_oid))
            .take(KEY_COLUMNS_MAX)
            .collect();
        if keys.is_empty() || self.layouts.len() >= DEFINED_MAX {
            return 0;
        }
        let id = self.layouts.len() as u32 + 1;
        let is_key = |position: u16| keys.iter().any(|(key, _)| *key == position);
        let names = (0..).zip(description.columns()).filter(|(position, _)| is_key(*position));
        stream.columns(id, names.map(|(_, column)| column.name).take(keys.len()));
        self.layouts.insert(body.into(), id);
        self.layout_list.push(Layout { keys, objects: object_columns(&description) });
        id
    }

    /// The layout with this id.
    pub(crate) fn layout_of(&self, id: u32) -> Option<&Layout> {
        self.layout_list.get((id as usize).checked_sub(1)?)
    }
}

fn intern(ids: &mut HashMap<Box<[u8]>, u32, RandomState>, text: &[u8], define: impl FnOnce(u32)) -> u32 {
    if let Some(id) = ids.get(text) {
        return *id;
    }
    if ids.len() >= DEFINED_MAX {
        return 0;
    }
    let id = ids.len() as u32 + 1;
    define(id);
    ids.insert(text.into(), id);
    id
}
