//! Names and types: walks the tree with the tables in scope, finds the type of every expression and parameter, and
//! notes what must change for SQLite on the way.

use std::rc::Rc;

use super::column::Column;
use super::edits::Edits;
use super::parser::Parser;
use super::schema::Schema;
use super::token::{Token, tokenize};
use super::tree::{ExprId, Node, QueryId, Tree};
use crate::error::{SqlError, SqlResult};
use crate::types::SqlType;

/// How names begin that SQLite has for itself.
const OF_SQLITE: [&str; 3] = ["pragma_", "sqlite_", "dbstat"];

/// What is known of an expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed {
    pub(crate) ty: SqlType,
    /// Decimals that a numeric shows at least.
    pub(crate) scale: Option<u32>,
    pub(crate) not_null: bool,
}

impl Typed {
    pub(crate) fn of(ty: SqlType) -> Self {
        Self { ty, scale: None, not_null: false }
    }

    pub(crate) const UNKNOWN: Self = Self { ty: SqlType::UNKNOWN, scale: None, not_null: false };
}

/// Something that columns can be taken from.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) name: String,
    pub(crate) columns: Rc<Vec<Column>>,
}

/// One statement on its way to SQLite.
pub(crate) struct Analysis<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token],
    pub(crate) tree: &'a Tree,
    pub(crate) schema: &'a dyn Schema,
    pub(crate) edits: Edits,
    /// Type of `$1`, `$2`, …, as far as known.
    pub(crate) parameters: Vec<Option<SqlType>>,
    /// Tables in scope, innermost query last.
    pub(super) scopes: Vec<Vec<Relation>>,
    /// WITH names in scope.
    pub(super) commons: Vec<Relation>,
    /// Whether the statement is stored in the schema, where functions must be SQLite's own.
    pub(crate) is_stored: bool,
    /// Whether it reads PostgreSQL's catalogue.
    pub(crate) uses_catalog: bool,
    /// How deep the expression at hand lies.
    pub(super) depth: u32,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token], tree: &'a Tree, schema: &'a dyn Schema) -> Self {
        Self {
            text,
            tokens,
            tree,
            schema,
            edits: Edits::default(),
            parameters: Vec::new(),
            scopes: Vec::new(),
            commons: Vec::new(),
            is_stored: false,
            uses_catalog: false,
            depth: 0,
        }
    }

    /// The statement's tokens from `first` to `last` in SQLite's words.
    pub(crate) fn render(&self, first: usize, last: usize) -> String {
        self.edits.render(self.text, self.tokens, first, last)
    }

    pub(crate) fn offset(&self, token: usize) -> usize {
        self.tokens.get(token).map_or(self.text.len(), |token| token.start as usize)
    }

    pub(super) fn first(&self, id: ExprId) -> usize {
        self.tree.exprs[id].first
    }

    pub(super) fn last(&self, id: ExprId) -> usize {
        self.tree.exprs[id].last
    }

    /// Puts text around an expression, outside of what is there already.
    pub(super) fn wrap(&mut self, id: ExprId, before: impl Into<String>, after: impl Into<String>) {
        let (first, last) = (self.first(id), self.last(id));
        self.edits.before(first, before);
        self.edits.after(last, after);
    }

    /// Finds a table and puts it in scope words SQLite knows; `None` where there is no such table.
    pub(super) fn find_table(&mut self, schema: Option<&str>, name: &str) -> Option<Rc<Vec<Column>>> {
        if schema.is_none() {
            if let Some(common) =
                self.commons.iter().rev().find(|common| common.name.eq_ignore_ascii_case(name))
            {
                return Some(Rc::clone(&common.columns));
            }
        }
        if crate::catalog::is_catalog(schema, name) {
            self.uses_catalog = true;
        }
        self.schema.table(schema, name)
    }

    /// A table's columns; none where SQLite is to say that there is no such table. What SQLite says of itself, its files
    /// among it, is no relation here.
    pub(super) fn readable_table(&mut self, schema: Option<&str>, name: &str) -> SqlResult<Rc<Vec<Column>>> {
        if let Some(columns) = self.find_table(schema, name) {
            return Ok(columns);
        }
        let is_sqlites = OF_SQLITE
            .iter()
            .any(|start| name.get(..start.len()).is_some_and(|given| given.eq_ignore_ascii_case(start)));
        if is_sqlites {
            return Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist")));
        }
        Ok(Rc::default())
    }

    pub(super) fn find_column(&self, table: Option<&str>, name: &str) -> Option<Typed> {
        self.scopes.iter().rev().find_map(|relations| {
            relations
                .iter()
                .filter(|relation| table.is_none_or(|table| relation.name.eq_ignore_ascii_case(table)))
                .find_map(|relation| {
                    relation.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
                })
                .map(|column| Typed { ty: column.ty, scale: column.shown_scale(), not_null: column.not_null })
        })
    }

    /// Remembers a parameter's type unless the client or an earlier use fixed it; gives the type it has now.
    pub(super) fn set_parameter(&mut self, number: u32, ty: SqlType) -> SqlType {
        let index = number as usize - 1;
        if self.parameters.len() <= index {
            self.parameters.resize(index + 1, None);
        }
        match self.parameters[index] {
            Some(known) => known,
            None if ty.is_unknown() => ty,
            None => {
                self.parameters[index] = Some(ty);
                ty
            }
        }
    }

    /// The columns that a list of items gives, stars expanded.
    pub(super) fn item_columns(&mut self, items: &[super::tree::Item]) -> SqlResult<Vec<Column>> {
        let mut columns = Vec::new();
        for item in items {
            if let Node::Star { table } = &self.tree.exprs[item.expr].node {
                let table = table.clone();
                columns.extend(self.star_columns(table.as_deref(), item.expr));
                continue;
            }
            let typed = self.infer(item.expr)?;
            let name = item.alias.clone().unwrap_or_else(|| self.column_name(item.expr));
            columns.push(Column {
                name,
                ty: typed.ty,
                scale: typed.scale,
                not_null: typed.not_null,
                default: None,
            });
        }
        Ok(columns)
    }

    fn star_columns(&mut self, table: Option<&str>, id: ExprId) -> Vec<Column> {
        self.drop_schema(id, 3);
        let Some(relations) = self.scopes.last() else { return Vec::new() };
        relations
            .iter()
            .filter(|relation| table.is_none_or(|table| relation.name.eq_ignore_ascii_case(table)))
            .flat_map(|relation| relation.columns.iter().cloned())
            .collect()
    }

    /// Drops what stands in front of `table.column`.
    pub(super) fn drop_schema(&mut self, id: ExprId, kept: usize) {
        let (first, last) = (self.first(id), self.last(id));
        if last + 1 - first > kept {
            self.edits.remove(first..last + 1 - kept);
        }
    }

    /// PostgreSQL's name for an unnamed column (`FigureColname` of its parser).
    pub(crate) fn column_name(&self, id: ExprId) -> String {
        match &self.tree.exprs[id].node {
            Node::Column { name, .. } => name.clone(),
            Node::Call(call) => match call.name.as_str() {
                "onetrip_cast" => call.args.first().map_or_else(String::new, |arg| self.column_name(*arg)),
                name => name.to_owned(),
            },
            Node::Cast { arg, ty } => match self.column_name(*arg).as_str() {
                "?column?" => ty.base.facts().name.to_owned(),
                name => name.to_owned(),
            },
            Node::Typed { ty, .. } => ty.base.facts().name.to_owned(),
            Node::Paren(inner) | Node::Collate { arg: inner, .. } | Node::Subscript { arg: inner, .. } => {
                self.column_name(*inner)
            }
            Node::Case { otherwise: Some(otherwise), .. } => match self.column_name(*otherwise).as_str() {
                "?column?" => "case".to_owned(),
                name => name.to_owned(),
            },
            Node::Case { .. } => "case".to_owned(),
            Node::Exists(_) => "exists".to_owned(),
            Node::ArrayOf(_) | Node::ArrayList(_) => "array".to_owned(),
            Node::Row(_) => "row".to_owned(),
            Node::Bool => "bool".to_owned(),
            Node::AtTimeZone { .. } => "timezone".to_owned(),
            Node::Scalar(query) => self.first_item_name(*query),
            _ => "?column?".to_owned(),
        }
    }

    fn first_item_name(&self, query: QueryId) -> String {
        let item = self.tree.queries[query].arms.first().and_then(|arm| arm.items.first());
        match item {
            Some(item) => item.alias.clone().unwrap_or_else(|| self.column_name(item.expr)),
            None => "column1".to_owned(),
        }
    }
}

/// The column types of a view by the text SQLite keeps of it; `None` where the text is not understood.
pub(crate) fn column_types_of_view(sql: &str, schema: &dyn Schema) -> Option<Vec<Column>> {
    let tokens = tokenize(sql).ok()?;
    let start = tokens.iter().position(|token| token.text(sql).eq_ignore_ascii_case("as"))? + 1;
    let tokens = &tokens[start..];
    let mut parser = Parser::new(sql, tokens);
    let query = parser.query().ok()?;
    let tree = parser.into_tree();
    Analysis::new(sql, tokens, &tree, schema).query(query).ok()
}

/// What SQLite cannot do, at the token where it was asked for.
pub(super) fn unsupported_at(message: &'static str, offset: usize) -> SqlError {
    SqlError::unsupported(message).at(offset)
}
