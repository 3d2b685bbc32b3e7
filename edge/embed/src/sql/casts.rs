//! Casts: explicit ones, those of strings without type, and those of assignment.

use super::analysis::{Analysis, Typed};
use super::column::Column;
use super::token::quote_text;
use super::tree::{ExprId, Node};
use crate::catalog::{NAME_OF_RELATION, RELATION_OF_NAME};
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};
use crate::value::{Stored, read_text};

impl Analysis<'_> {
    /// Gives a string, parameter or list of no type yet this type; anything else stays as it is.
    pub(super) fn coerce(&mut self, id: ExprId, typed: Typed, ty: SqlType) -> SqlResult<Typed> {
        if !typed.ty.is_unknown() || ty.is_unknown() {
            return Ok(typed);
        }
        let tree = self.tree;
        let coerced = match &tree.exprs[id].node {
            Node::Text(text) => {
                let literal = self.literal(ty, text, self.offset(self.first(id)))?;
                self.edits.replace(self.first(id), literal);
                ty
            }
            Node::Parameter(number) => self.set_parameter(*number, ty),
            Node::Paren(inner) | Node::Collate { arg: inner, .. } => return self.coerce(*inner, typed, ty),
            Node::Case { branches, otherwise, .. } => {
                for value in branches.iter().map(|(_, value)| value).chain(otherwise) {
                    self.coerce_untyped(*value, ty)?;
                }
                ty
            }
            Node::Call(call)
                if matches!(call.name.as_str(), "coalesce" | "nullif" | "greatest" | "least") =>
            {
                for arg in &call.args {
                    self.coerce_untyped(*arg, ty)?;
                }
                ty
            }
            Node::ArrayList(list) => {
                for element in list {
                    self.coerce_untyped(*element, ty.element())?;
                }
                ty
            }
            Node::Null => ty,
            _ => return Ok(typed),
        };
        Ok(Typed { ty: coerced, ..typed })
    }

    /// Like [`Self::coerce`] for a part of an expression whose whole has no type.
    fn coerce_untyped(&mut self, id: ExprId, ty: SqlType) -> SqlResult<()> {
        let is_untyped = match &self.tree.exprs[id].node {
            Node::Text(_) | Node::Null => true,
            Node::Parameter(number) => {
                self.parameters.get(*number as usize - 1).copied().flatten().is_none_or(SqlType::is_unknown)
            }
            Node::Paren(_) | Node::Case { .. } => true,
            _ => false,
        };
        if is_untyped { self.coerce(id, Typed::UNKNOWN, ty).map(drop) } else { Ok(()) }
    }

    /// A string as SQLite's literal of a type.
    pub(super) fn literal(&mut self, ty: SqlType, text: &str, offset: usize) -> SqlResult<String> {
        if ty.base == Base::Regclass && !ty.is_array {
            return Ok(self.regclass_literal(text));
        }
        if ty.base == Base::Regtype && !ty.is_array {
            let known = SqlType::of_words(text.trim_start_matches("pg_catalog."), &[], false);
            return known
                .map(|known| known.oid().to_string())
                .ok_or_else(|| SqlError::new("42704", format!("type \"{text}\" does not exist")).at(offset));
        }
        if ty.base == Base::Regproc || (ty.base == Base::Interval && !ty.is_array) {
            return Ok(quote_text(text));
        }
        if ty.base.is_moment() && !ty.is_array {
            if let Some(moment) = special_moment(ty, text) {
                return Ok(moment);
            }
        }
        let stored = read_text(ty, text).map_err(|error| error.at(offset))?;
        Ok(match &stored {
            Stored::Integer(integer) if *integer < 0 => format!("({integer})"),
            Stored::Integer(integer) => integer.to_string(),
            Stored::Real(real) if real.is_infinite() => {
                (if *real > 0.0 { "9e999" } else { "(-9e999)" }).to_owned()
            }
            Stored::Real(real) if *real < 0.0 => format!("({real:?})"),
            Stored::Real(real) => format!("{real:?}"),
            Stored::Null => "NULL".to_owned(),
            Stored::Text(text) => quote_text(text),
            Stored::Short(text) => quote_text(text.as_str()),
            Stored::OwnedText(text) => quote_text(text),
            Stored::Blob(bytes) => blob_literal(bytes),
            Stored::OwnedBlob(bytes) => blob_literal(bytes),
        })
    }

    fn regclass_literal(&mut self, text: &str) -> String {
        self.uses_catalog = true;
        if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            return text.to_owned();
        }
        let name = text.rsplit('.').next().unwrap_or(text);
        let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
            Some(quoted) => quoted.to_owned(),
            None => name.to_ascii_lowercase(),
        };
        format!(
            "onetrip_relation((SELECT oid FROM temp.pg_class WHERE lower(relname) = lower({})), {})",
            quote_text(&name),
            quote_text(text)
        )
    }

    /// An explicit cast.
    pub(super) fn cast(&mut self, id: ExprId, arg: ExprId, ty: SqlType) -> SqlResult<Typed> {
        let tree = self.tree;
        let from = self.infer(arg)?;
        // What stands around the argument is PostgreSQL's notation: `::type` or CAST( … AS type).
        let (node, inner) = (&tree.exprs[id], &tree.exprs[arg]);
        self.edits.remove((node.first..inner.first).chain(inner.last + 1..=node.last));
        let is_cut = matches!(ty.base, Base::Varchar | Base::Bpchar) && !ty.is_array;
        let coerced = self.coerce(arg, from, if is_cut { ty.without_modifier() } else { ty })?;
        let typed = Typed { ty, scale: scale_of(ty, from), not_null: from.not_null };
        if from.ty.is_unknown() && (coerced.ty == ty || matches!(inner.node, Node::Null)) {
            return Ok(typed);
        }
        if ty.base == Base::Text && !ty.is_array && coerced.ty.base == Base::Regclass {
            self.uses_catalog = true;
            self.wrap(arg, NAME_OF_RELATION, ")");
            return Ok(typed);
        }
        let is_plain_text = ty.base == Base::Text && !ty.is_array;
        if is_plain_text && coerced.ty.base == Base::Regtype
            || ty.base == Base::Regtype && coerced.ty.base.is_integer()
        {
            // An object identifier shown as a type's name.
            self.wrap(arg, "format_type(", ", -1)");
            return Ok(Typed::of(SqlType::TEXT));
        }
        if ty.base == Base::Regclass && (coerced.ty.base.is_integer() || coerced.ty.is_unknown()) {
            // An object identifier shown as a relation's name.
            self.uses_catalog = true;
            self.wrap(arg, NAME_OF_RELATION, ")");
            return Ok(Typed::of(SqlType::TEXT));
        }
        if ty.base == Base::Regclass && coerced.ty.base.is_text() {
            self.uses_catalog = true;
            self.wrap(arg, RELATION_OF_NAME, ")");
            return Ok(typed);
        }
        self.convert(arg, coerced.ty, ty, true);
        Ok(typed)
    }

    /// Puts a conversion around an expression where the stored form of the types differs.
    pub(super) fn convert(&mut self, id: ExprId, from: SqlType, to: SqlType, is_explicit: bool) {
        match conversion(from, to) {
            Conversion::None => {}
            Conversion::Sqlite(name) => self.wrap(id, "CAST(", format!(" AS {name})")),
            Conversion::Checked => {
                let is_explicit = i32::from(is_explicit);
                let tail = format!(", {}, {}, {}, {is_explicit})", to.oid(), to.modifier, from.oid());
                self.wrap(id, "onetrip_cast(", tail);
            }
        }
    }

    /// Makes an expression fit the column it is written to.
    pub(crate) fn assign(&mut self, id: ExprId, column: &Column) -> SqlResult<()> {
        let tree = self.tree;
        if let Node::Column { table: None, name } = &tree.exprs[id].node {
            let token = self.tokens[self.first(id)].text(self.text);
            if name == "default" && !token.starts_with('"') {
                let default =
                    column.default.as_ref().map_or("NULL".to_owned(), |default| format!("({default})"));
                self.edits.replace(self.first(id), default);
                return Ok(());
            }
        }
        let from = self.infer(id)?;
        let coerced = self.coerce(id, from, column.ty)?;
        if from.ty.is_unknown() {
            return Ok(());
        }
        let is_computed =
            !matches!(tree.exprs[id].node, Node::Column { .. } | Node::Integer | Node::Parameter(_));
        let narrows = column.ty.modifier >= 0 && coerced.ty != column.ty;
        if narrows
            || (is_computed
                && matches!(column.ty.base, Base::Int2 | Base::Int4)
                && !is_small_literal(&tree.exprs[id].node))
        {
            self.checked(id, coerced.ty, column.ty);
        } else {
            self.convert(id, coerced.ty, column.ty, false);
        }
        Ok(())
    }

    fn checked(&mut self, id: ExprId, from: SqlType, to: SqlType) {
        let tail = format!(", {}, {}, {}, 0)", to.oid(), to.modifier, from.oid());
        self.wrap(id, "onetrip_cast(", tail);
    }
}

fn is_small_literal(node: &Node) -> bool {
    matches!(node, Node::Integer | Node::Null)
}

fn blob_literal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(2 * bytes.len() + 3);
    out.push_str("X'");
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out.push('\'');
    out
}

/// `'now'`, `'today'` and their like.
fn special_moment(ty: SqlType, text: &str) -> Option<String> {
    let name = ty.base.facts().name;
    match text.trim().to_ascii_lowercase().as_str() {
        "now" => Some(format!("onetrip_now('{name}')")),
        "today" if ty.base == Base::Date => Some("onetrip_now('date')".to_owned()),
        _ => None,
    }
}

/// Decimals that a cast's result shows: those of the source, unless the type itself says how many.
fn scale_of(ty: SqlType, from: Typed) -> Option<u32> {
    if ty.base == Base::Numeric && ty.modifier < 0 { from.scale } else { None }
}

enum Conversion {
    None,
    /// SQLite's own CAST.
    Sqlite(&'static str),
    /// The function `onetrip_cast`, which can fail.
    Checked,
}

fn conversion(from: SqlType, to: SqlType) -> Conversion {
    use Base::{
        Bool, Date, Float4, Float8, Int2, Int4, Int8, Numeric, Oid, Regclass, Regtype, Text, Time, Timestamp,
        Timestamptz,
    };
    if from == to {
        return Conversion::None;
    }
    if from.is_array || to.is_array {
        return if from.is_array == to.is_array { Conversion::None } else { Conversion::Checked };
    }
    if to.modifier >= 0 {
        return Conversion::Checked;
    }
    match (from.base, to.base) {
        (a, b) if a == b => Conversion::None,
        (Int2, Int4 | Int8) | (Int4, Int8) | (Int2 | Int4 | Int8, Numeric) => Conversion::None,
        (Oid | Regclass | Regtype, Oid | Regclass | Regtype | Int8) => Conversion::None,
        (Int2 | Int4 | Int8 | Numeric, Float4 | Float8) => Conversion::Sqlite("REAL"),
        (Float4, Float8) => Conversion::None,
        (Int2 | Int4 | Int8 | Oid, Text | Base::Varchar | Base::Bpchar | Base::Name) => {
            Conversion::Sqlite("TEXT")
        }
        (Bool, Int4) => Conversion::None,
        (Base::Uuid, Text | Base::Varchar) => Conversion::None,
        (Date | Time | Timestamp | Timestamptz, _) => Conversion::Checked,
        (a, b) if a.is_text() && b.is_text() && !matches!(b, Base::Json | Base::Jsonb | Base::Char) => {
            Conversion::None
        }
        _ => Conversion::Checked,
    }
}
