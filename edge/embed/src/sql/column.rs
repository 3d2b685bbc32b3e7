//! What the translation must know of a column: its type, and its default.

use crate::types::{Base, SqlType};

/// A column of a table, view or query.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: SqlType,
    /// Decimals that a numeric shows at least.
    pub(crate) scale: Option<u32>,
    pub(crate) not_null: bool,
    /// SQL text of its default, where it has one.
    pub(crate) default: Option<String>,
}

impl Column {
    pub(crate) fn new(name: impl Into<String>, ty: SqlType) -> Self {
        Self { name: name.into(), ty, scale: None, not_null: false, default: None }
    }

    /// Decimals that arithmetic with this column shows: those declared, or those of where it comes from.
    pub(crate) fn shown_scale(&self) -> Option<u32> {
        match self.ty.limits() {
            Some((_, scale)) if self.ty.base == Base::Numeric => Some(scale),
            _ => self.scale,
        }
    }
}
