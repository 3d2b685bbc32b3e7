//! INSERT, UPDATE and DELETE.

use std::rc::Rc;

use super::analysis::{Analysis, Relation};
use super::column::Column;
use super::parser::Parser;
use super::token::{Kind, Token};
use super::tree::{Arm, ExprId, Item, Node, QueryId};
use crate::error::{SqlError, SqlResult};

/// A parsed INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) with: Vec<super::tree::CommonTable>,
    schema: Option<String>,
    table: String,
    alias: Option<String>,
    /// Token of an alias that is given without AS.
    bare_alias_at: Option<usize>,
    table_at: usize,
    body: Body,
    pub(crate) returning: Vec<Item>,
}

#[derive(Debug)]
enum Body {
    Insert { columns: Vec<String>, query: Option<QueryId>, conflict: Option<Conflict> },
    Update(Update),
    Delete { condition: Option<ExprId> },
}

#[derive(Debug)]
struct Conflict {
    condition: Option<ExprId>,
    update: Option<Update>,
}

#[derive(Debug)]
struct Update {
    assignments: Vec<(Vec<String>, ExprId)>,
    from: Arm,
    condition: Option<ExprId>,
}

impl Parser<'_> {
    /// Reads the statement whose WITH clause was taken already; the verb is at hand.
    pub(crate) fn change(&mut self, with: Vec<super::tree::CommonTable>) -> SqlResult<Change> {
        let change = if self.take_word("insert") {
            self.insert(with)?
        } else if self.take_word("update") {
            self.update(with)?
        } else {
            self.expect_word("delete")?;
            self.delete(with)?
        };
        if self.is_at_end() { Ok(change) } else { Err(self.syntax_error()) }
    }

    fn change_target(&mut self, with: Vec<super::tree::CommonTable>, needs_as: bool) -> SqlResult<Change> {
        self.take_word("only");
        let table_at = self.at;
        let (schema, table) = self.qualified_name()?;
        self.take_operator("*");
        let has_as = self.take_word("as");
        let is_bare = !has_as
            && !needs_as
            && matches!(self.kind(), Some(Kind::Word | Kind::QuotedName))
            && !self.is_reserved(self.at);
        let bare_alias_at = is_bare.then_some(self.at);
        let alias = if has_as || is_bare { Some(self.name()?) } else { None };
        let body = Body::Delete { condition: None };
        Ok(Change { with, schema, table, alias, bare_alias_at, table_at, body, returning: Vec::new() })
    }

    fn returning(&mut self) -> SqlResult<Vec<Item>> {
        if self.take_word("returning") { self.items() } else { Ok(Vec::new()) }
    }

    fn where_clause(&mut self) -> SqlResult<Option<ExprId>> {
        if !self.take_word("where") {
            return Ok(None);
        }
        if self.is_word("current") && self.is_word_at(self.at + 1, "of") {
            return Err(SqlError::unsupported("WHERE CURRENT OF is not supported"));
        }
        self.expression().map(Some)
    }

    fn insert(&mut self, with: Vec<super::tree::CommonTable>) -> SqlResult<Change> {
        self.expect_word("into")?;
        let mut change = self.change_target(with, true)?;
        let columns = if self.kind() == Some(Kind::Open) && !self.is_plain_query_start() {
            self.optional_names()?
        } else {
            Vec::new()
        };
        if self.is_word("overriding") {
            return Err(SqlError::unsupported("OVERRIDING is not supported"));
        }
        let query = if self.take_words(&["default", "values"]) { None } else { Some(self.query()?) };
        let conflict = if self.take_words(&["on", "conflict"]) { Some(self.conflict()?) } else { None };
        change.body = Body::Insert { columns, query, conflict };
        change.returning = self.returning()?;
        Ok(change)
    }

    fn conflict(&mut self) -> SqlResult<Conflict> {
        if self.is_word("on") {
            return Err(
                SqlError::unsupported("ON CONFLICT ON CONSTRAINT is not supported").hint("Name the columns.")
            );
        }
        let mut condition = None;
        if self.take(Kind::Open) {
            self.expressions()?;
            self.expect(Kind::Close)?;
            condition = self.where_clause()?;
        }
        self.expect_word("do")?;
        if self.take_word("nothing") {
            return Ok(Conflict { condition, update: None });
        }
        self.expect_word("update")?;
        let update = self.assignments()?;
        Ok(Conflict { condition, update: Some(update) })
    }

    fn update(&mut self, with: Vec<super::tree::CommonTable>) -> SqlResult<Change> {
        let mut change = self.change_target(with, false)?;
        change.body = Body::Update(self.assignments()?);
        change.returning = self.returning()?;
        Ok(change)
    }

    /// `SET … [FROM …] [WHERE …]`
    fn assignments(&mut self) -> SqlResult<Update> {
        self.expect_word("set")?;
        let mut assignments = Vec::new();
        loop {
            let names =
                if self.kind() == Some(Kind::Open) { self.optional_names()? } else { vec![self.name()?] };
            if !self.take_operator("=") {
                return Err(self.syntax_error());
            }
            assignments.push((names, self.expression()?));
            if !self.take(Kind::Comma) {
                break;
            }
        }
        let mut from = Arm::default();
        if self.take_word("from") {
            self.table_list(&mut from)?;
        }
        Ok(Update { assignments, from, condition: self.where_clause()? })
    }

    fn delete(&mut self, with: Vec<super::tree::CommonTable>) -> SqlResult<Change> {
        self.expect_word("from")?;
        let mut change = self.change_target(with, false)?;
        if self.is_word("using") {
            return Err(
                SqlError::unsupported("DELETE … USING is not supported").hint("Use WHERE … IN (SELECT …).")
            );
        }
        change.body = Body::Delete { condition: self.where_clause()? };
        change.returning = self.returning()?;
        Ok(change)
    }
}

impl Analysis<'_> {
    /// Reads a change and gives the columns of its RETURNING.
    pub(crate) fn change(&mut self, change: &Change) -> SqlResult<Vec<Column>> {
        self.with(&change.with)?;
        let schema = change.schema.as_deref();
        if crate::catalog::is_catalog(schema, &change.table) {
            let message = format!("permission denied: \"{}\" is a system catalog", change.table);
            return Err(SqlError::new("42501", message));
        }
        let columns = self.readable_table(schema, &change.table)?;
        self.table_words(change.table_at, schema, &change.table);
        if let Some(at) = change.bare_alias_at {
            self.edits.before(at, "AS "); // SQLite wants it here
        }
        let name = change.alias.clone().unwrap_or_else(|| change.table.clone());
        let target = Relation { name, columns };
        match &change.body {
            Body::Insert { columns, query, conflict } => {
                self.insert(&target, columns, *query)?;
                if let Some(conflict) = conflict {
                    query.iter().for_each(|query| self.end_from(*query));
                    let excluded =
                        Relation { name: "excluded".to_owned(), columns: Rc::clone(&target.columns) };
                    self.scopes.push(vec![target.clone(), excluded]);
                    self.conflict(&target, conflict)?;
                    self.scopes.pop();
                }
            }
            Body::Update(update) => {
                self.scopes.push(vec![target.clone()]);
                self.update(&target, update)?;
                self.scopes.pop();
            }
            Body::Delete { condition } => {
                self.scopes.push(vec![target.clone()]);
                if let Some(condition) = condition {
                    self.condition(*condition)?;
                }
                self.scopes.pop();
            }
        }
        self.scopes.push(vec![target]);
        let returned = self.item_columns(&change.returning)?;
        self.scopes.pop();
        if let Some(alias) = &change.alias {
            self.drop_alias(alias, &change.returning);
        }
        Ok(returned)
    }

    /// SQLite's RETURNING knows the table's columns, but not its alias.
    fn drop_alias(&mut self, alias: &str, returning: &[Item]) {
        let (Some(first), Some(last)) = (returning.first(), returning.last()) else { return };
        let (first, last) = (self.first(first.expr), self.last(last.expr));
        for (id, expr) in self.tree.exprs.iter().enumerate() {
            let (Node::Column { table: Some(table), .. } | Node::Star { table: Some(table) }) = &expr.node
            else {
                continue;
            };
            if expr.first >= first && expr.last <= last && table.eq_ignore_ascii_case(alias) {
                self.drop_schema(id, 1);
            }
        }
    }

    fn insert(&mut self, target: &Relation, names: &[String], query: Option<QueryId>) -> SqlResult<()> {
        let Some(query_id) = query else { return Ok(()) };
        let columns: Vec<Column> = if names.is_empty() {
            target.columns.to_vec()
        } else {
            let find = |name: &String| {
                target.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)).cloned()
            };
            names.iter().map(|name| find(name).unwrap_or_else(|| untyped(name))).collect()
        };
        let tree = self.tree;
        let query = &tree.queries[query_id];
        let is_plain_values = query.with.is_empty() && query.order.is_empty() && query.limit.is_none();
        match query.arms.as_slice() {
            [arm] if is_plain_values && !arm.rows.is_empty() => {
                for row in &arm.rows {
                    for (index, id) in row.iter().enumerate() {
                        match columns.get(index) {
                            Some(column) => self.assign(*id, column)?,
                            None => drop(self.infer(*id)?),
                        }
                    }
                }
            }
            _ => self.insert_query(query_id, &columns)?,
        }
        Ok(())
    }

    /// Rows from a query: the items of its only arm are made to fit, those of set operations are taken as they are.
    fn insert_query(&mut self, query_id: QueryId, columns: &[Column]) -> SqlResult<()> {
        let tree = self.tree;
        let found = self.query(query_id)?;
        let [arm] = tree.queries[query_id].arms.as_slice() else { return Ok(()) };
        if arm.items.len() != found.len() {
            return Ok(()); // a star
        }
        for ((item, from), to) in arm.items.iter().zip(&found).zip(columns) {
            let typed = super::analysis::Typed { scale: from.scale, ..super::analysis::Typed::of(from.ty) };
            let coerced = self.coerce(item.expr, typed, to.ty)?;
            if !from.ty.is_unknown() {
                self.convert(item.expr, coerced.ty, to.ty, false);
            }
        }
        Ok(())
    }

    /// Gives the last SELECT in front of ON CONFLICT a WHERE, without which SQLite takes the ON for that of a join.
    fn end_from(&mut self, query_id: QueryId) {
        let tree = self.tree;
        let Some(arm) = tree.queries[query_id].arms.last() else { return };
        let last = match arm.nested {
            Some(nested) => tree.queries[nested].last + 1,
            None if arm.rows.is_empty() => arm.from_end,
            None => return,
        };
        let has_where = |token: &Token| token.text(self.text).eq_ignore_ascii_case("where");
        if !self.tokens.get(last + 1).is_some_and(has_where) {
            self.edits.after(last, " WHERE true");
        }
    }

    fn conflict(&mut self, target: &Relation, conflict: &Conflict) -> SqlResult<()> {
        if let Some(condition) = conflict.condition {
            self.condition(condition)?;
        }
        match &conflict.update {
            Some(update) => self.update(target, update),
            None => Ok(()),
        }
    }

    fn update(&mut self, target: &Relation, update: &Update) -> SqlResult<()> {
        for item in &update.from.from {
            self.add_relation(item)?;
        }
        for (names, value) in &update.assignments {
            let find = |name: &String| {
                target.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)).cloned()
            };
            match (names.as_slice(), &self.tree.exprs[*value].node) {
                ([name], _) => self.assign(*value, &find(name).unwrap_or_else(|| untyped(name)))?,
                (names, Node::Row(values)) => {
                    for (name, value) in names.iter().zip(values) {
                        self.assign(*value, &find(name).unwrap_or_else(|| untyped(name)))?;
                    }
                }
                _ => drop(self.infer(*value)?),
            }
        }
        for condition in update.from.conditions.iter().chain(&update.condition) {
            self.condition(*condition)?;
        }
        Ok(())
    }
}

fn untyped(name: &str) -> Column {
    Column::new(name, crate::types::SqlType::UNKNOWN)
}
