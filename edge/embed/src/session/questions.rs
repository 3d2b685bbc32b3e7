//! What a gateway of onetrip asks, answered as PostgreSQL would: what the tables are, and what the session is.

use onetrip_sql::purity::{self, Columns, ObjectName, SessionQuestion, SmallDatabase};
use onetrip_wire::pg::{backend, frame};

use super::Session;
use super::errors::from_sqlite;
use super::output::Output;
use super::portal::{put_description, text_columns};
use crate::catalog;
use crate::error::SqlResult;
use crate::sql::{Question, Schema};

/// The database's number in the catalogue, and the schemas that names are looked up in.
const DATABASE: u32 = 16_384;
const SEARCH_PATH: &str = "{pg_catalog,public}";
/// The collation of texts.
const DEFAULT_COLLATION: u32 = 100;

type Row = Vec<Option<String>>;

impl Session<'_> {
    pub(super) fn answer(
        &mut self,
        question: &Question,
        parameter: Option<&str>,
        is_described: bool,
        out: &mut Output<'_>,
    ) -> SqlResult<()> {
        self.enter(false, false, "SELECT")?;
        let rows = match question {
            Question::Session(question) => self.about_session(question)?,
            Question::Lookup(lookup) => self.small_database()?.answer(*lookup, parameter).unwrap_or_default(),
        };
        if is_described {
            put_description(&mut out.buffer, &text_columns(&vec!["?column?"; question.column_count()]), &[]);
        }
        rows.iter().for_each(|row| put_row(row, &mut out.buffer));
        out.command_complete("SELECT", Some(rows.len() as u64));
        Ok(())
    }

    fn about_session(&self, question: &SessionQuestion) -> SqlResult<Vec<Row>> {
        let one = |value: String| vec![vec![Some(value)]];
        Ok(match question {
            SessionQuestion::Plain => self.make_plain()?,
            SessionQuestion::State => {
                let facts = &self.facts;
                let identity = format!("{}/{DATABASE}", self.common.identity);
                let is_special = self.has_temporary_objects()?.to_string();
                let state = [
                    SEARCH_PATH.to_owned(),
                    facts.user.clone(),
                    is_special,
                    identity,
                    facts.process_id.to_string(),
                ];
                vec![state.map(Some).to_vec()]
            }
            // It knows no DEFERRABLE, and has no configuration that is read anew.
            SessionQuestion::Settings => {
                vec![[self.settings_digest(), "off".to_owned(), "86400000000".to_owned()].map(Some).to_vec()]
            }
            SessionQuestion::Names => one(self.has_sql_statements.to_string()),
            // No cursor here goes backward.
            SessionQuestion::Cursor(name) => match self.portals.contains_key(name.as_bytes()) {
                true => one(false.to_string()),
                false => Vec::new(),
            },
        })
    }

    fn make_plain(&self) -> SqlResult<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, value) in SessionQuestion::plain_settings() {
            let mut settings = self.facts.settings();
            // What means nothing here is not there: it is as the question wants it.
            let before = match settings.get(name).map(str::to_owned) {
                Ok(before) => {
                    settings.set(name, Some(value), true)?;
                    before
                }
                Err(_) => value.to_owned(),
            };
            rows.push(vec![Some(before), Some(value.to_owned())]);
        }
        Ok(rows)
    }

    /// All settings but those that a question changes for itself, and the program's name.
    fn settings_digest(&self) -> String {
        let is_plain = |name: &str| {
            matches!(name, "jit" | "application_name" | "transaction_isolation" | "transaction_read_only")
                || SessionQuestion::plain_settings().any(|(plain, _)| plain == name)
        };
        let settings = self.facts.settings();
        let shaping = settings.all().filter(|(name, _)| !is_plain(name));
        shaping.map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    /// Whether a name may mean a temporary table or view. The catalogue's own views are temporary ones to SQLite.
    fn has_temporary_objects(&self) -> SqlResult<bool> {
        let found = self.texts("SELECT name FROM temp.sqlite_master WHERE type IN ('table', 'view')")?;
        Ok(found.iter().any(|name| !name.starts_with("onetrip_") && !catalog::is_catalog(None, name)))
    }

    fn texts(&self, sql: &str) -> SqlResult<Vec<String>> {
        let read = || {
            let mut statement = self.connection.prepare(sql)?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        read().map_err(|error| from_sqlite(&error))
    }

    /// The tables; views are left out, as what they read is not looked into.
    fn small_database(&self) -> SqlResult<SmallDatabase> {
        catalog::install(self.connection).map_err(|error| from_sqlite(&error))?;
        self.schema.refresh(self.schema_epoch());
        let read = || {
            let sql = "SELECT oid, name FROM temp.onetrip_table WHERE kind = 'r'";
            let mut statement = self.connection.prepare(sql)?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<(u32, String)>>>()
        };
        let named = read().map_err(|error| from_sqlite(&error))?;
        let mut tables = Vec::new();
        for (oid, name) in named {
            let Some(found) = self.schema.table(None, &name) else { continue };
            let computed = self.computed_columns(&name)?;
            let columns = (1..).zip(found.iter()).map(|(number, column)| purity::Column {
                name: column.name.as_str().into(),
                number,
                type_oid: column.ty.oid(),
                base_oid: 0,
                collation_oid: if column.ty.base.is_text() { DEFAULT_COLLATION } else { 0 },
                is_virtual: computed.contains(&column.name),
                prefetch: None,
            });
            let relation = ObjectName::qualified("public", &name);
            tables.push((oid, Columns { relation, columns: columns.collect() }));
        }
        Ok(SmallDatabase { version: 150_000, tables, ..SmallDatabase::default() })
    }

    /// Columns of a table that are computed when they are read.
    fn computed_columns(&self, table: &str) -> SqlResult<Vec<String>> {
        let quoted = table.replace('\'', "''");
        self.texts(&format!("SELECT name FROM pragma_table_xinfo('{quoted}') WHERE hidden = 2"))
    }
}

fn put_row(row: &Row, out: &mut Vec<u8>) {
    frame(out, backend::DATA_ROW, |out| {
        out.extend_from_slice(&(row.len() as u16).to_be_bytes());
        for value in row {
            match value {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(value) => {
                    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                    out.extend_from_slice(value.as_bytes());
                }
            }
        }
    });
}
