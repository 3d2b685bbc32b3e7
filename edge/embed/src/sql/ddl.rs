//! CREATE: PostgreSQL's words to SQLite's.
//!
//! Types keep PostgreSQL's sized names (`int4`), so that a column is described as it was declared. A `serial` or
//! identity column becomes SQLite's `INTEGER PRIMARY KEY`; [`INT4_MARK`] in the stored text tells the 32-bit ones.

use super::alter;
use super::analysis::Analysis;
use super::parser::Parser;
use super::schema::Schema;
use super::sequence;
use super::token::{Kind, Token, quote_name};
use super::tree::ExprId;
use crate::error::{SqlError, SqlResult};
use crate::types::{Base, SqlType};

/// Stands behind `INTEGER` in the stored text of a table whose key is a `serial`.
pub(crate) const INT4_MARK: &str = "/*int4*/";

/// Statements for SQLite and the tag of their completion.
#[derive(Debug)]
pub(crate) struct Ddl {
    pub(crate) statements: Vec<String>,
    pub(crate) tag: &'static str,
}

/// What a CREATE TABLE does with its tokens.
#[derive(Default)]
pub(super) struct TableEdits {
    /// (first, last, text)
    replaced: Vec<(usize, usize, String)>,
    /// DEFAULT expressions, which SQLite wants in parentheses.
    defaults: Vec<ExprId>,
    /// CHECK expressions and generated columns.
    checks: Vec<ExprId>,
    /// Columns of a table-level primary key.
    key: Vec<String>,
    /// Names of columns, their type's tokens, and whether they number themselves.
    pub(super) columns: Vec<ColumnWords>,
}

pub(super) struct ColumnWords {
    pub(super) name: String,
    type_first: usize,
    type_last: usize,
    ty: SqlType,
    is_serial: bool,
    is_key: bool,
}

/// Translates a statement that starts with one of the words this module is about.
pub(crate) fn translate(text: &str, tokens: &[Token], schema: &dyn Schema) -> SqlResult<Ddl> {
    let mut parser = Parser::new(text, tokens);
    if parser.take_word("create") {
        return create(text, tokens, parser, schema);
    }
    if parser.take_word("drop") {
        return alter::drop_objects(&mut parser);
    }
    if parser.take_word("truncate") {
        return alter::truncate(&mut parser);
    }
    parser.expect_word("alter")?;
    alter::alter(text, tokens, parser, schema)
}

fn create(text: &str, tokens: &[Token], mut parser: Parser<'_>, schema: &dyn Schema) -> SqlResult<Ddl> {
    let replaces = parser.take_words(&["or", "replace"]);
    if !parser.take_word("global") {
        parser.take_word("local");
    }
    let is_temporary = parser.take_word("temporary") || parser.take_word("temp");
    parser.take_word("unlogged");
    let is_unique = parser.take_word("unique");
    if parser.take_word("table") {
        return create_table(text, tokens, parser, schema, is_temporary);
    }
    if parser.take_word("view") {
        return create_view(text, tokens, parser, schema, (replaces, is_temporary));
    }
    if parser.take_word("sequence") {
        return sequence::create(parser);
    }
    if parser.take_word("index") {
        return create_index(text, tokens, parser, schema, is_unique);
    }
    let what = parser.name().unwrap_or_default().to_uppercase();
    Err(SqlError::unsupported(format!("CREATE {what} is not supported")))
}

pub(super) fn if_not_exists(parser: &mut Parser<'_>) -> &'static str {
    if parser.take_words(&["if", "not", "exists"]) { "IF NOT EXISTS " } else { "" }
}

/// The name of an object to be made, as SQLite is to be told.
fn target(parser: &mut Parser<'_>, is_temporary: bool) -> SqlResult<(String, String)> {
    let (schema, name) = parser.qualified_name()?;
    let place = match schema.as_deref() {
        Some("pg_temp" | "temp") => "temp.",
        None | Some("public" | "main") if is_temporary => "temp.",
        None | Some("public" | "main") => "main.",
        Some(other) => {
            return Err(SqlError::new("3F000", format!("schema \"{other}\" does not exist")));
        }
    };
    Ok((format!("{place}{}", quote_name(&name)), name))
}

fn create_table(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
    is_temporary: bool,
) -> SqlResult<Ddl> {
    let exists = if_not_exists(&mut parser);
    let (target, _) = target(&mut parser, is_temporary)?;
    if parser.is_word("as") {
        return create_table_as(text, tokens, parser, schema, &format!("CREATE TABLE {exists}{target}"));
    }
    let first = parser.position();
    parser.expect(Kind::Open)?;
    let mut edits = TableEdits::default();
    loop {
        parser.table_element(&mut edits)?;
        if !parser.take(Kind::Comma) {
            break;
        }
    }
    parser.expect(Kind::Close)?;
    let last = parser.position() - 1;
    table_options(&mut parser)?;
    finish_columns(&mut edits)?;
    let body = render(text, tokens, parser, schema, edits, first, last)?;
    Ok(Ddl { statements: vec![format!("CREATE TABLE {exists}{target} {body}")], tag: "CREATE TABLE" })
}

fn create_table_as(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
    head: &str,
) -> SqlResult<Ddl> {
    parser.expect_word("as")?;
    let first = parser.position();
    let query = parser.query()?;
    if !parser.is_at_end() {
        return Err(parser.syntax_error());
    }
    let tree = parser.into_tree();
    let mut analysis = Analysis::new(text, tokens, &tree, schema);
    let columns = analysis.query(query)?;
    let body = analysis.render(first, tokens.len() - 1);
    // SQLite would forget the types: the table is made first, then filled.
    let declared: Vec<_> = columns
        .iter()
        .map(|column| format!("{} {}", quote_name(&column.name), declaration(column.ty)))
        .collect();
    let insert =
        head.replace("CREATE TABLE IF NOT EXISTS ", "INSERT INTO ").replace("CREATE TABLE ", "INSERT INTO ");
    let statements = vec![format!("{head} ({})", declared.join(", ")), format!("{insert} {body}")];
    Ok(Ddl { statements, tag: "SELECT" })
}

/// WITH (…), TABLESPACE and their like, which mean nothing to SQLite.
fn table_options(parser: &mut Parser<'_>) -> SqlResult<()> {
    loop {
        if parser.take_words(&["on", "commit", "preserve", "rows"]) {
        } else if parser.take_word("with") {
            parser.expect(Kind::Open)?;
            parser.skip_to_close()?;
        } else if parser.take_word("tablespace") || parser.take_word("using") {
            parser.name()?;
        } else if parser.is_at_end() {
            return Ok(());
        } else if parser.is_word("inherits") || parser.is_word("partition") {
            return Err(SqlError::unsupported("inheritance and partitions are not supported"));
        } else {
            return Err(parser.syntax_error());
        }
    }
}

/// Decides what each column is declared as, once all constraints are known.
pub(super) fn finish_columns(edits: &mut TableEdits) -> SqlResult<()> {
    let key = std::mem::take(&mut edits.key);
    for column in &edits.columns {
        let is_only_key = column.is_key || matches!(key.as_slice(), [only] if *only == column.name);
        let declared = if column.is_serial {
            if !is_only_key {
                return Err(SqlError::unsupported("serial and identity columns must be the primary key"));
            }
            match column.ty.base {
                Base::Int8 => "INTEGER".to_owned(),
                _ => format!("INTEGER {INT4_MARK}"),
            }
        } else if key.contains(&column.name) {
            format!("{} NOT NULL", declaration(column.ty))
        } else {
            declaration(column.ty)
        };
        edits.replaced.push((column.type_first, column.type_last, declared));
    }
    Ok(())
}

/// A type as it stands in a table's stored declaration; [`crate::types::declared_type`] reads it back.
fn declaration(ty: SqlType) -> String {
    let name = match ty.base {
        Base::Unknown => "text",
        base => base.facts().name,
    };
    let modified = match (ty.base, ty.limits()) {
        (Base::Numeric, Some((precision, scale))) => format!("numeric({precision},{scale})"),
        (Base::Bpchar, Some((length, _))) => format!("char({length})"),
        (_, Some((number, _))) => format!("{name}({number})"),
        (Base::Char, None) => "\"char\"".to_owned(),
        // A type name with INT in it would turn digits into numbers.
        (Base::Interval, None) => "text".to_owned(),
        _ => name.to_owned(),
    };
    if ty.is_array { modified + "[]" } else { modified }
}

pub(super) fn render(
    text: &str,
    tokens: &[Token],
    parser: Parser<'_>,
    schema: &dyn Schema,
    edits: TableEdits,
    first: usize,
    last: usize,
) -> SqlResult<String> {
    let tree = parser.into_tree();
    let mut analysis = Analysis::new(text, tokens, &tree, schema);
    analysis.is_stored = true;
    for check in edits.checks {
        analysis.infer(check)?;
    }
    for default in edits.defaults {
        analysis.infer(default)?;
        analysis.edits.before(tree.exprs[default].first, "(");
        analysis.edits.after(tree.exprs[default].last, ")");
    }
    for (first, last, text) in edits.replaced {
        analysis.edits.replace_range(first, last, text);
    }
    Ok(analysis.render(first, last))
}

impl Parser<'_> {
    /// A column or a constraint of CREATE TABLE.
    pub(super) fn table_element(&mut self, edits: &mut TableEdits) -> SqlResult<()> {
        if self.is_word("constraint") || self.starts_table_constraint() {
            return self.table_constraint(edits);
        }
        if self.is_word("like") {
            return Err(SqlError::unsupported("CREATE TABLE … LIKE is not supported"));
        }
        let name_at = self.position();
        let name = self.name()?;
        edits.replaced.push((name_at, name_at, quote_name(&name)));
        self.column_body(name, edits)
    }

    /// A column's type and constraints.
    fn column_body(&mut self, name: String, edits: &mut TableEdits) -> SqlResult<()> {
        let type_first = self.position();
        let is_serial = ["serial", "bigserial", "smallserial", "serial4", "serial8"]
            .iter()
            .any(|word| self.is_word(word));
        let ty = self.type_name()?;
        let mut column =
            ColumnWords { name, type_first, type_last: self.position() - 1, ty, is_serial, is_key: false };
        while !self.is_at_end() && !matches!(self.kind(), Some(Kind::Comma | Kind::Close)) {
            self.column_constraint(&mut column, edits)?;
        }
        edits.columns.push(column);
        Ok(())
    }

    pub(super) fn starts_table_constraint(&self) -> bool {
        let opens = self.kind_at(self.at + 1) == Some(Kind::Open);
        (opens && (self.is_word("check") || self.is_word("unique")))
            || (self.is_word_at(self.at + 1, "key") && (self.is_word("primary") || self.is_word("foreign")))
            || self.is_word("exclude")
    }

    fn table_constraint(&mut self, edits: &mut TableEdits) -> SqlResult<()> {
        if self.take_word("constraint") {
            self.name()?;
        }
        if self.take_words(&["primary", "key"]) {
            edits.key = self.optional_names()?;
        } else if self.take_word("unique") {
            self.optional_names()?;
        } else if self.take_word("check") {
            self.expect(Kind::Open)?;
            edits.checks.push(self.expression()?);
            self.expect(Kind::Close)?;
        } else if self.take_words(&["foreign", "key"]) {
            self.optional_names()?;
            self.expect_word("references")?;
            self.reference(edits)?;
        } else {
            return Err(SqlError::unsupported("this constraint is not supported"));
        }
        self.deferrability(edits)
    }

    fn reference(&mut self, edits: &mut TableEdits) -> SqlResult<()> {
        let first = self.position();
        let (_, name) = self.qualified_name()?;
        edits.replaced.push((first, self.position() - 1, quote_name(&name)));
        self.optional_names()?;
        if self.take_word("match") {
            self.name()?;
        }
        while self.take_word("on") {
            self.name()?; // DELETE or UPDATE
            if !self.take_words(&["no", "action"])
                && !self.take_words(&["set", "null"])
                && !self.take_words(&["set", "default"])
            {
                self.name()?; // CASCADE or RESTRICT
            }
        }
        Ok(())
    }

    /// DEFERRABLE is SQLite's for foreign keys only.
    fn deferrability(&mut self, edits: &mut TableEdits) -> SqlResult<()> {
        let first = self.position();
        let is_deferrable = self.take_word("deferrable");
        if !is_deferrable && self.take_words(&["not", "deferrable"]) {
            edits.replaced.push((first, first + 1, String::new()));
        }
        if self.take_word("initially") {
            self.name()?;
        }
        Ok(())
    }

    fn column_constraint(&mut self, column: &mut ColumnWords, edits: &mut TableEdits) -> SqlResult<()> {
        let first = self.position();
        if self.take_word("constraint") {
            self.name()?;
            return Ok(());
        }
        if self.take_word("default") {
            edits.defaults.push(self.default_value()?);
        } else if self.take_words(&["not", "null"]) || self.take_word("null") || self.take_word("unique") {
        } else if self.take_words(&["primary", "key"]) {
            column.is_key = true;
            if !column.is_serial {
                edits.replaced.push((first, first + 1, "NOT NULL PRIMARY KEY".to_owned()));
            }
        } else if self.take_word("references") {
            self.reference(edits)?;
        } else if self.take_word("check") {
            self.expect(Kind::Open)?;
            edits.checks.push(self.expression()?);
            self.expect(Kind::Close)?;
        } else if self.take_word("collate") {
            self.qualified_name()?;
            edits.replaced.push((first, self.position() - 1, String::new()));
        } else if self.take_word("generated") {
            self.generated(first, column, edits)?;
        } else if self.is_word("deferrable") || self.is_word("initially") || self.is_word("not") {
            self.deferrability(edits)?;
            if self.position() == first {
                return Err(self.syntax_error());
            }
        } else {
            return Err(self.syntax_error());
        }
        Ok(())
    }

    /// A DEFAULT's expression ends where the next constraint starts; NOT NULL behind it is one.
    fn default_value(&mut self) -> SqlResult<ExprId> {
        self.expression()
    }

    fn generated(&mut self, first: usize, column: &mut ColumnWords, edits: &mut TableEdits) -> SqlResult<()> {
        if !self.take_word("always") {
            self.expect_word("by")?;
            self.expect_word("default")?;
        }
        self.expect_word("as")?;
        if self.take_word("identity") {
            if self.take(Kind::Open) {
                self.skip_to_close()?;
            }
            column.is_serial = true;
            edits.replaced.push((first, self.position() - 1, String::new()));
            return Ok(());
        }
        self.expect(Kind::Open)?;
        edits.checks.push(self.expression()?);
        self.expect(Kind::Close)?;
        self.expect_word("stored")
    }
}

fn create_view(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
    (replaces, is_temporary): (bool, bool),
) -> SqlResult<Ddl> {
    let exists = if_not_exists(&mut parser);
    let (target, _) = target(&mut parser, is_temporary)?;
    let names = parser.optional_names()?;
    parser.expect_word("as")?;
    let first = parser.position();
    let query = parser.query()?;
    if !parser.is_at_end() {
        return Err(parser.syntax_error());
    }
    let tree = parser.into_tree();
    let mut analysis = Analysis::new(text, tokens, &tree, schema);
    analysis.is_stored = true;
    let columns = analysis.query(query)?;
    if !analysis.parameters.is_empty() {
        return Err(SqlError::new("42P02", "there is no parameter $1"));
    }
    let mut named: Vec<_> = columns.into_iter().map(|column| column.name).collect();
    for (name, given) in named.iter_mut().zip(names) {
        *name = given;
    }
    let list: Vec<_> = named.iter().map(|name| quote_name(name)).collect();
    let body = analysis.render(first, tokens.len() - 1);
    let list = if list.is_empty() { String::new() } else { format!(" ({})", list.join(", ")) };
    let mut statements = vec![format!("CREATE VIEW {exists}{target}{list} AS {body}")];
    if replaces {
        statements.insert(0, format!("DROP VIEW IF EXISTS {target}"));
    }
    Ok(Ddl { statements, tag: "CREATE VIEW" })
}

fn create_index(
    text: &str,
    tokens: &[Token],
    mut parser: Parser<'_>,
    schema: &dyn Schema,
    is_unique: bool,
) -> SqlResult<Ddl> {
    parser.take_word("concurrently");
    let exists = if_not_exists(&mut parser);
    let name = if parser.is_word("on") { None } else { Some(parser.qualified_name()?.1) };
    parser.expect_word("on")?;
    parser.take_word("only");
    let (_, table) = parser.qualified_name()?;
    if parser.take_word("using") {
        parser.name()?;
    }
    let first = parser.position();
    parser.expect(Kind::Open)?;
    let keys = parser.order_list()?;
    parser.expect(Kind::Close)?;
    let close = parser.position() - 1;
    if parser.is_word("include") {
        return Err(SqlError::unsupported("INCLUDE columns are not supported"));
    }
    if parser.take_word("with") {
        parser.expect(Kind::Open)?;
        parser.skip_to_close()?;
    }
    let condition = if parser.take_word("where") { Some(parser.expression()?) } else { None };
    if !parser.is_at_end() {
        return Err(parser.syntax_error());
    }
    let tree = parser.into_tree();
    let mut analysis = Analysis::new(text, tokens, &tree, schema);
    analysis.is_stored = true;
    let mut column_names = Vec::new();
    for key in &keys {
        analysis.infer(key.expr)?;
        column_names.push(analysis.column_name(key.expr));
    }
    let mut condition_text = String::new();
    if let Some(condition) = condition {
        analysis.infer(condition)?;
        let (first, last) = (tree.exprs[condition].first, tree.exprs[condition].last);
        condition_text = format!(" WHERE {}", analysis.render(first, last));
    }
    let name = name.unwrap_or_else(|| format!("{table}_{}_idx", column_names.join("_").replace('?', "")));
    let unique = if is_unique { "UNIQUE " } else { "" };
    let body = analysis.render(first, close).replace("NULLS FIRST", "").replace("NULLS LAST", "");
    let statement = format!(
        "CREATE {unique}INDEX {exists}main.{} ON {} {body}{condition_text}",
        quote_name(&name),
        quote_name(&table)
    );
    Ok(Ddl { statements: vec![statement], tag: "CREATE INDEX" })
}
