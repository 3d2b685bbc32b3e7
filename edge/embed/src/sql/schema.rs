//! Where the translation looks up the columns of tables.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rusqlite::Connection;

use super::analysis::column_types_of_view;
use super::column::Column;
use super::ddl::INT4_MARK;
use crate::catalog;
use crate::types::{SqlType, declared_type};

/// Where tables are looked up.
pub(crate) trait Schema {
    /// The columns of a table, or `None` where there is no such table.
    fn table(&self, schema: Option<&str>, name: &str) -> Option<Rc<Vec<Column>>>;
}

/// Most tables that are remembered.
const TABLES_MAX: usize = 1_000;

/// The schema of an open database, remembered until it changes.
pub(crate) struct LiveSchema<'c> {
    pub(crate) connection: &'c Connection,
    tables: RefCell<HashMap<String, Known>>,
    /// Epoch of the server's own changes, and SQLite's version, which counts those of other programs too.
    seen: Cell<(u64, i64)>,
    version: RefCell<rusqlite::Statement<'c>>,
}

type Known = Option<Rc<Vec<Column>>>;

impl<'c> LiveSchema<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        let version = RefCell::new(connection.prepare("PRAGMA main.schema_version")?);
        Ok(Self { connection, tables: RefCell::default(), seen: Cell::new((0, 0)), version })
    }

    /// Forgets what it knows if the schema has changed; says whether it has.
    pub(crate) fn refresh(&self, epoch: u64) -> bool {
        // Where the version cannot be read, the next statement cannot be run either, and says why.
        let version = self.version.borrow_mut().query_row([], |row| row.get(0)).unwrap_or(0);
        if self.seen.replace((epoch, version)) == (epoch, version) {
            return false;
        }
        self.tables.borrow_mut().clear();
        true
    }
}

/// Deepest chain of views over views that is typed; beyond it columns are text.
const VIEW_DEPTH_MAX: u32 = 8;

impl Schema for LiveSchema<'_> {
    fn table(&self, schema: Option<&str>, name: &str) -> Option<Rc<Vec<Column>>> {
        if catalog::is_catalog(schema, name) {
            return catalog::columns(schema, name).map(Rc::new);
        }
        if let Some(known) = self.tables.borrow().get(name) {
            return known.clone();
        }
        let found = Layer { connection: self.connection, depth: 0 }.table(schema, name);
        let mut tables = self.tables.borrow_mut();
        if tables.len() < TABLES_MAX {
            tables.insert(name.to_owned(), found.clone());
        }
        found
    }
}

struct Layer<'c> {
    connection: &'c Connection,
    depth: u32,
}

impl Schema for Layer<'_> {
    fn table(&self, schema: Option<&str>, name: &str) -> Option<Rc<Vec<Column>>> {
        if let Some(columns) = catalog::columns(schema, name) {
            return Some(Rc::new(columns));
        }
        self.load(name).ok().filter(|columns| !columns.is_empty()).map(Rc::new)
    }
}

impl Layer<'_> {
    fn load(&self, name: &str) -> rusqlite::Result<Vec<Column>> {
        let mut master = self.connection.prepare(
            "SELECT type, sql FROM (SELECT * FROM temp.sqlite_master UNION ALL SELECT * FROM main.sqlite_master) \
             WHERE name = ?1 COLLATE NOCASE AND type IN ('table', 'view')",
        )?;
        let mut rows = master.query([name])?;
        let Some(row) = rows.next()? else { return Ok(Vec::new()) };
        let is_view = row.get::<_, String>(0)? == "view";
        let sql: String = row.get::<_, Option<String>>(1)?.unwrap_or_default();
        drop(rows);
        let mut info = self.connection.prepare(
            "SELECT name, type, \"notnull\", dflt_value, pk, hidden FROM pragma_table_xinfo(?1) WHERE hidden <> 1",
        )?;
        let mut columns = info
            .query_map([name], |row| {
                let declaration: String = row.get(1)?;
                let is_rowid = declaration.eq_ignore_ascii_case("integer") && row.get::<_, i64>(4)? > 0;
                let ty = match declared_type(&declaration) {
                    Some(_) if is_rowid && sql.contains(INT4_MARK) => SqlType::INT4,
                    Some(ty) => ty,
                    None => SqlType::TEXT,
                };
                Ok(Column {
                    name: row.get(0)?,
                    ty,
                    scale: None,
                    not_null: row.get::<_, i64>(2)? != 0 || is_rowid,
                    default: row.get(3)?,
                })
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        if is_view && self.depth < VIEW_DEPTH_MAX {
            let deeper = Layer { connection: self.connection, depth: self.depth + 1 };
            if let Some(typed) = column_types_of_view(&sql, &deeper) {
                for (column, typed) in columns.iter_mut().zip(typed) {
                    column.ty = typed.ty;
                    column.scale = typed.scale;
                }
            }
        }
        Ok(columns)
    }
}
