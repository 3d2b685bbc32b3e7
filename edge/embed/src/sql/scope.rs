//! Queries: what stands in FROM becomes the scope in which the rest is read.

use std::rc::Rc;

use super::analysis::{Analysis, Relation, Typed, unsupported_at};
use super::column::Column;
use super::token::{Kind, quote_name};
use super::tree::{Arm, ExprId, FromItem, Limit, Node, Order, QueryId, Source};
use crate::error::SqlResult;
use crate::types::SqlType;

impl Analysis<'_> {
    /// Reads a query and gives its columns.
    pub(crate) fn query(&mut self, id: QueryId) -> SqlResult<Vec<Column>> {
        let tree = self.tree;
        let query = &tree.queries[id];
        let common_count = self.commons.len();
        self.with(&query.with)?;
        let mut columns: Vec<Column> = Vec::new();
        for (index, arm) in query.arms.iter().enumerate() {
            self.scopes.push(Vec::new());
            let found = self.arm(arm);
            if index + 1 < query.arms.len() || found.is_err() {
                self.scopes.pop();
            }
            let found = found?;
            match index {
                0 => columns = found,
                _ => unify_columns(&mut columns, &found),
            }
        }
        // ORDER BY and LIMIT see the output's names first, then the last arm's tables.
        let output = Relation { name: String::new(), columns: Rc::new(columns.clone()) };
        self.scopes.push(vec![output]);
        self.order(&query.order, &columns)?;
        if let Some(limit) = &query.limit {
            self.limit(limit)?;
        }
        self.scopes.pop();
        self.scopes.pop();
        self.commons.truncate(common_count);
        Ok(columns)
    }

    pub(crate) fn with(&mut self, tables: &[super::tree::CommonTable]) -> SqlResult<()> {
        let tree = self.tree;
        for table in tables {
            // A recursive query refers to itself: its first arm tells its columns.
            let mut columns = match tree.queries[table.query].arms.split_first() {
                Some((base, rest)) if !rest.is_empty() => {
                    self.scopes.push(Vec::new());
                    let columns = self.silently(|analysis| analysis.arm(base));
                    self.scopes.pop();
                    columns.unwrap_or_default()
                }
                _ => Vec::new(),
            };
            rename(&mut columns, &table.columns);
            self.commons.push(Relation { name: table.name.clone(), columns: Rc::new(columns) });
            let mut columns = self.query(table.query)?;
            rename(&mut columns, &table.columns);
            self.commons.pop();
            self.commons.push(Relation { name: table.name.clone(), columns: Rc::new(columns) });
        }
        Ok(())
    }

    /// Reads something for its types only; its edits are made when it is read again.
    fn silently<T>(&mut self, read: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let edits = std::mem::take(&mut self.edits);
        let result = read(self);
        self.edits = edits;
        result
    }

    fn arm(&mut self, arm: &Arm) -> SqlResult<Vec<Column>> {
        if let Some(query) = arm.nested {
            let open = self.tree.queries[query].first - 1;
            let columns = self.query(query)?;
            self.edits.before(open, "SELECT * FROM ");
            return Ok(columns);
        }
        for item in &arm.from {
            self.add_relation(item)?;
        }
        let columns =
            if arm.rows.is_empty() { self.item_columns(&arm.items)? } else { self.value_rows(&arm.rows)? };
        self.rows_of_items(arm);
        for condition in &arm.conditions {
            self.condition(*condition)?;
        }
        for group in &arm.groups {
            if !self.names_output(*group, &columns) {
                self.infer(*group)?;
            }
        }
        Ok(columns)
    }

    /// A function that returns rows in the select list goes to FROM, where SQLite wants it.
    fn rows_of_items(&mut self, arm: &Arm) {
        let tree = self.tree;
        for item in &arm.items {
            let Node::Call(call) = &tree.exprs[item.expr].node else { continue };
            let source = match call.name.as_str() {
                "unnest" => "json_each",
                "generate_series" => "generate_series",
                _ => continue,
            };
            let joined = if arm.from.is_empty() { " FROM " } else { ", " };
            let text = format!("{joined}{source}({}) AS onetrip_rows", self.arguments(call).join(", "));
            self.edits.replace_range(self.first(item.expr), self.last(item.expr), "onetrip_rows.value");
            self.edits.after(arm.from_end, text);
            return;
        }
    }

    /// A truth value; a string or parameter of no type becomes one.
    pub(super) fn condition(&mut self, id: ExprId) -> SqlResult<()> {
        let typed = self.infer(id)?;
        self.coerce(id, typed, SqlType::BOOL).map(drop)
    }

    fn names_output(&self, id: ExprId, columns: &[Column]) -> bool {
        match &self.tree.exprs[id].node {
            Node::Column { table: None, name } => columns.iter().any(|column| column.name == *name),
            _ => false,
        }
    }

    fn value_rows(&mut self, rows: &[Vec<ExprId>]) -> SqlResult<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        let mut typed_rows = Vec::with_capacity(rows.len());
        for row in rows {
            let typed_row = row.iter().map(|id| self.infer(*id)).collect::<SqlResult<Vec<_>>>()?;
            let found: Vec<_> = (1..)
                .zip(&typed_row)
                .map(|(number, typed)| Column {
                    scale: typed.scale,
                    ..Column::new(format!("column{number}"), typed.ty)
                })
                .collect();
            if columns.is_empty() {
                columns = found
            } else {
                unify_columns(&mut columns, &found)
            }
            typed_rows.push(typed_row);
        }
        for (row, typed_row) in rows.iter().zip(typed_rows) {
            for ((id, typed), column) in row.iter().zip(typed_row).zip(&columns) {
                self.coerce(*id, typed, column.ty)?;
            }
        }
        Ok(columns)
    }

    /// Puts what an item of FROM gives in scope.
    pub(super) fn add_relation(&mut self, item: &FromItem) -> SqlResult<()> {
        let relation = self.relation(item)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(relation);
        }
        Ok(())
    }

    fn relation(&mut self, item: &FromItem) -> SqlResult<Relation> {
        match &item.source {
            Source::Table { schema, name } => {
                if !item.columns.is_empty() {
                    return Err(unsupported_at(
                        "column aliases of a table are not supported",
                        self.offset(item.first),
                    ));
                }
                let columns = self.readable_table(schema.as_deref(), name)?;
                self.table_words(item.first, schema.as_deref(), name);
                Ok(Relation { name: item.alias.clone().unwrap_or_else(|| name.clone()), columns })
            }
            Source::Query(query) => self.query_relation(item, *query),
            Source::Function(call) => self.function_relation(item, *call),
        }
    }

    /// Writes a table's name so that SQLite finds it; `at` is its first token, or ONLY.
    pub(crate) fn table_words(&mut self, at: usize, schema: Option<&str>, name: &str) {
        let mut at = at;
        if self.tokens.get(at).is_some_and(|token| token.text(self.text).eq_ignore_ascii_case("only"))
            && self
                .tokens
                .get(at + 1)
                .is_some_and(|token| matches!(token.kind, Kind::Word | Kind::QuotedName))
        {
            self.edits.remove([at]);
            at += 1;
        }
        let mut last = at;
        while self.tokens.get(last + 1).is_some_and(|token| token.kind == Kind::Dot) {
            last += 2;
        }
        let replacement = match schema {
            Some("information_schema") => quote_name(&format!("information_schema.{name}")),
            Some("pg_catalog" | "pg_temp" | "temp") => format!("temp.{}", quote_name(name)),
            Some("public" | "main") => format!("main.{}", quote_name(name)),
            _ => return,
        };
        self.edits.remove(at..=last);
        self.edits.replace(at, replacement);
    }

    fn query_relation(&mut self, item: &FromItem, query: QueryId) -> SqlResult<Relation> {
        // A derived table does not see its neighbours (no LATERAL), but sees the outer queries.
        let scope = self.scopes.pop();
        let columns = self.query(query);
        self.scopes.extend(scope);
        let mut columns = columns?;
        rename(&mut columns, &item.columns);
        let name = item.alias.clone().unwrap_or_default();
        if !item.columns.is_empty() {
            let (first, last) = (self.tree.queries[query].first, self.tree.queries[query].last);
            let names: Vec<_> = item.columns.iter().map(|name| quote_name(name)).collect();
            let alias = quote_name(&name);
            self.edits.before(first, format!("WITH {alias}({}) AS (", names.join(", ")));
            self.edits.after(last, format!(") SELECT * FROM {alias}"));
            let list_tokens = 2 * item.columns.len() + 1;
            self.edits.remove(item.last + 1 - list_tokens..=item.last);
        }
        Ok(Relation { name, columns: Rc::new(columns) })
    }

    /// PostgreSQL sorts NULL as the greatest value, SQLite as the smallest.
    fn order(&mut self, list: &[Order], columns: &[Column]) -> SqlResult<()> {
        for entry in list {
            let typed = match &self.tree.exprs[entry.expr].node {
                Node::Integer => {
                    let number =
                        self.tokens[self.first(entry.expr)].text(self.text).parse::<usize>().unwrap_or(0);
                    let column = number.checked_sub(1).and_then(|index| columns.get(index));
                    Typed { not_null: column.is_some_and(|column| column.not_null), ..Typed::UNKNOWN }
                }
                _ => self.infer(entry.expr)?,
            };
            if !entry.has_nulls && !typed.not_null {
                let nulls = if entry.is_descending { " NULLS FIRST" } else { " NULLS LAST" };
                self.edits.after(entry.last, nulls);
            }
        }
        Ok(())
    }

    /// LIMIT and OFFSET in SQLite's order; row locks go.
    fn limit(&mut self, limit: &Limit) -> SqlResult<()> {
        let mut number = |id: Option<ExprId>| -> SqlResult<Option<String>> {
            let Some(id) = id else { return Ok(None) };
            let typed = self.infer(id)?;
            self.coerce(id, typed, SqlType::INT8)?;
            let rendered = self.render(self.first(id), self.last(id));
            let is_plain = matches!(self.tree.exprs[id].node, Node::Integer);
            Ok(Some(if is_plain { rendered } else { format!("coalesce({rendered}, -1)") }))
        };
        let count = number(limit.count)?;
        let offset = number(limit.offset)?;
        let count = if limit.is_one { Some("1".to_owned()) } else { count };
        let text = match (count, offset) {
            (Some(count), Some(offset)) => format!("LIMIT {count} OFFSET {offset}"),
            (Some(count), None) => format!("LIMIT {count}"),
            (None, Some(offset)) => format!("LIMIT -1 OFFSET {offset}"),
            (None, None) => String::new(),
        };
        self.edits.replace_range(limit.first, limit.last, text);
        Ok(())
    }
}

fn rename(columns: &mut [Column], names: &[String]) {
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
}

/// The types of a set operation: those of the first arm, but for what only a later one knows.
fn unify_columns(columns: &mut [Column], others: &[Column]) {
    for (column, other) in columns.iter_mut().zip(others) {
        column.not_null &= other.not_null;
        column.scale = column.scale.max(other.scale);
        column.ty = super::functions::common_type(column.ty, other.ty);
    }
}
