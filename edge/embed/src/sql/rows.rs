//! Functions in FROM: each becomes a derived table of its rows.

use std::rc::Rc;

use super::analysis::{Analysis, Relation, unsupported_at};
use super::column::Column;
use super::token::quote_name;
use super::tree::{Call, ExprId, FromItem, Node};
use crate::error::SqlResult;
use crate::types::{Base, SqlType};

/// The rows of a function: type and SQLite's text of each column, and the rest of their SELECT.
struct Rows {
    values: Vec<(SqlType, String)>,
    rest: String,
}

impl Rows {
    fn one(ty: SqlType, value: impl Into<String>, rest: impl Into<String>) -> Self {
        Self { values: vec![(ty, value.into())], rest: rest.into() }
    }
}

impl Analysis<'_> {
    /// A function in FROM gives one column, named by its alias, or one for each array of `unnest`; WITH ORDINALITY
    /// numbers the rows.
    pub(super) fn function_relation(&mut self, item: &FromItem, id: ExprId) -> SqlResult<Relation> {
        let tree = self.tree;
        let Node::Call(call) = &tree.exprs[id].node else {
            return Err(unsupported_at("this expression cannot stand in FROM", self.offset(item.first)));
        };
        let relation = item.alias.clone().unwrap_or_else(|| call.name.clone());
        let mut names: Vec<&str> = Vec::new();
        let mut rows = match call.name.as_str() {
            // No keyword is reported beyond those that the standard already has.
            "pg_get_keywords" => {
                names.extend(["word", "catcode", "barelabel", "catdesc", "baredesc"]);
                Rows { values: vec![(SqlType::TEXT, "NULL".to_owned()); 5], rest: " WHERE 0".to_owned() }
            }
            "pg_partition_ancestors" => Rows::one(SqlType::of(Base::Regclass), "NULL", " WHERE 0"),
            "generate_series" => self.series(item, call)?,
            "unnest" | "json_array_elements_text" | "jsonb_array_elements_text" => self.elements(call)?,
            _ => {
                let typed = self.infer(id)?;
                let ty = if typed.ty.is_unknown() { SqlType::TEXT } else { typed.ty };
                Rows::one(ty, self.render(self.first(id), self.last(id)), "")
            }
        };
        if names.is_empty() {
            let name = if rows.values.len() > 1 { &call.name } else { &relation };
            names.resize(rows.values.len(), name);
        }
        if item.is_numbered {
            names.push("ordinality");
            rows.values.push((SqlType::INT8, "row_number() OVER ()".to_owned()));
        }
        for (name, given) in names.iter_mut().zip(&item.columns) {
            *name = given;
        }
        let listed: Vec<_> = names
            .iter()
            .zip(&rows.values)
            .map(|(name, (_, value))| format!("{value} AS {}", quote_name(name)))
            .collect();
        let text = format!("(SELECT {}{}) AS {}", listed.join(", "), rows.rest, quote_name(&relation));
        self.edits.replace_range(item.first, item.last, text);
        let columns = names.iter().zip(&rows.values).map(|(name, (ty, _))| Column::new(*name, *ty)).collect();
        Ok(Relation { name: relation, columns: Rc::new(columns) })
    }

    fn series(&mut self, item: &FromItem, call: &Call) -> SqlResult<Rows> {
        let mut ty = SqlType::INT4;
        for arg in &call.args {
            let typed = self.infer(*arg)?;
            let typed = self.coerce(*arg, typed, SqlType::INT8)?;
            if typed.ty.base == Base::Int8 {
                ty = SqlType::INT8;
            } else if !typed.ty.base.is_integer() {
                let message = "generate_series is supported for integers";
                return Err(unsupported_at(message, self.offset(item.first)));
            }
        }
        Ok(Rows::one(ty, "value", format!(" FROM generate_series({})", self.arguments(call).join(", "))))
    }

    /// The elements of arrays, side by side; the shorter ones are filled up with NULL.
    fn elements(&mut self, call: &Call) -> SqlResult<Rows> {
        let mut types = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            let typed = self.infer(*arg)?;
            let typed = self.coerce(*arg, typed, SqlType::array_of(Base::Text))?;
            types.push(if typed.ty.is_array { typed.ty.element() } else { SqlType::TEXT });
        }
        let arrays = self.arguments(call);
        if let ([ty], [array]) = (types.as_slice(), arrays.as_slice()) {
            return Ok(Rows::one(*ty, "value", format!(" FROM json_each({array})")));
        }
        let lengths: Vec<_> =
            arrays.iter().map(|array| format!("coalesce(json_array_length({array}), 0)")).collect();
        let mut rest = format!(" FROM generate_series(0, max({}) - 1) AS onetrip_row", lengths.join(", "));
        for (number, array) in arrays.iter().enumerate() {
            rest += &format!(
                " LEFT JOIN (SELECT key, value FROM json_each({array})) AS onetrip_{number} \
                 ON onetrip_{number}.key = onetrip_row.value"
            );
        }
        let values = types.into_iter().enumerate();
        Ok(Rows {
            values: values.map(|(number, ty)| (ty, format!("onetrip_{number}.value"))).collect(),
            rest,
        })
    }

    /// The arguments of a call in SQLite's words.
    pub(super) fn arguments(&self, call: &Call) -> Vec<String> {
        call.args.iter().map(|arg| self.render(self.first(*arg), self.last(*arg))).collect()
    }
}
