//! Parquet: a directory for each day and host, with one file.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onetrip_ledger::{Gaps, TraceReader};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{ExportError, Row, StatementRow, rows};

/// Rows held in memory before they are written as a group.
const GROUP_ROWS: usize = 64 * 1024;
/// Bytes that the rows of a group may take in memory, about.
const GROUP_BYTES: usize = 64 << 20;
/// What a file is called when it is complete. Until then its name begins with what readers of directories pass over.
const FILE: &str = "part-0.parquet";
const UNFINISHED: &str = "_part-0.unfinished";

/// The columns of [`crate::COLUMNS`] that are no directories, and of [`crate::STATEMENT_COLUMNS`].
pub const SCHEMA: &str = "message exchange {
    required int64 connection;
    required int64 exchange;
    required binary unit (STRING);
    required int64 sent_at (TIMESTAMP(MICROS,true));
    required int64 sent_at_ns;
    required int64 first_reply_at_ns;
    required int64 last_reply_at_ns;
    required int64 bytes_sent;
    required int64 bytes_received;
    required boolean starts_trip;
    required boolean may_share;
    required binary remedy (STRING);
    required binary obstacle (STRING);
    required binary transaction (STRING);
    required binary outcome (STRING);
    required binary scope (STRING);
    required binary request (STRING);
    required binary template (STRING);
    required int64 rows;
    required int64 cut_statements;
    required group statements (LIST) { repeated group list { required group element {
        required binary template (STRING);
        required binary kind (STRING);
        required group tables (LIST) { repeated group list { required binary element (STRING); } }
        required group compared (LIST) { repeated group list { required group element {
            required int64 parameter;
            required binary column_name (STRING);
        } } }
        required group bounds (LIST) { repeated group list { required int64 element; } }
        required group steps (LIST) { repeated group list { required binary element (STRING); } }
        required int64 rows;
        required int64 row_limit;
        required binary outcome (STRING);
        required group parameter_hashes (LIST) { repeated group list { optional binary element (STRING); } }
        required group parameters (LIST) { repeated group list { optional binary element (STRING); } }
        required group key_columns (LIST) { repeated group list { required binary element (STRING); } }
        required group key_hashes (LIST) { repeated group list { required binary element (STRING); } }
    } } }
}";

/// Makes the directory of an export, which may be there if nothing is in it.
///
/// # Errors
///
/// A directory that is not empty or cannot be made.
pub fn new_directory(directory: &Path) -> Result<(), ExportError> {
    fs::create_dir_all(directory)?;
    match fs::read_dir(directory)?.next() {
        Some(_) => Err(ExportError::NotEmpty(directory.display().to_string())),
        None => Ok(()),
    }
}

/// Writes `DIRECTORY/day=DAY/host=HOST/part-0.parquet` for each day and host of a trace, with one row per exchange.
///
/// # Errors
///
/// A trace that cannot be read, a directory that is not empty, or a file that cannot be written.
pub fn parquet(
    reader: &mut TraceReader,
    directory: &Path,
    read: impl FnMut(u64),
) -> Result<Gaps, ExportError> {
    new_directory(directory)?;
    let mut tables: BTreeMap<(String, String), Table> = BTreeMap::new();
    let gaps = rows(reader, read, |row| {
        let partition = (row.day.clone(), row.host.as_str().to_owned());
        if let Some(table) = tables.get_mut(&partition) {
            return table.add(row);
        }
        let (day, host) = &partition;
        let mut table = Table::create(directory.join(format!("day={day}")).join(format!("host={host}")))?;
        table.add(row)?;
        tables.insert(partition, table);
        Ok(())
    })?;
    tables.into_values().try_for_each(Table::finish)?;
    Ok(gaps)
}

/// One file.
struct Table {
    directory: PathBuf,
    writer: SerializedFileWriter<File>,
    group: Vec<Row>,
    group_bytes: usize,
}

impl Table {
    fn create(directory: PathBuf) -> Result<Self, ExportError> {
        fs::create_dir_all(&directory)?;
        let file = File::create(directory.join(UNFINISHED))?;
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        Ok(Self { directory, writer, group: Vec::new(), group_bytes: 0 })
    }

    fn add(&mut self, row: Row) -> Result<(), ExportError> {
        self.group_bytes += size(&row);
        self.group.push(row);
        if self.group.len() >= GROUP_ROWS || self.group_bytes >= GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let rows = std::mem::take(&mut self.group);
        let mut group = Group { writer: self.writer.next_row_group()?, rows: &rows };
        group.exchanges()?;
        group.statements()?;
        group.writer.close()?;
        self.group_bytes = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<(), ExportError> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        self.writer.close()?;
        fs::rename(self.directory.join(UNFINISHED), self.directory.join(FILE))?;
        Ok(())
    }
}

/// About what a row takes in memory. Its template is shared with others.
fn size(row: &Row) -> usize {
    const HASH_BYTES: usize = 48;
    let of_text = |text: &Option<String>| text.as_ref().map_or(0, String::len) + HASH_BYTES;
    let of_statement = |statement: &StatementRow| {
        let values = statement.parameter_hashes.len() + statement.key_hashes.len();
        let texts: usize = statement.parameters.iter().map(of_text).sum();
        size_of::<StatementRow>() + values * HASH_BYTES + texts
    };
    size_of::<Row>() + row.scope.len() + row.statements.iter().map(of_statement).sum::<usize>()
}

/// Rows that are written, column by column in the order of [`SCHEMA`].
struct Group<'a> {
    writer: SerializedRowGroupWriter<'a, File>,
    rows: &'a [Row],
}

/// Values of a column, and the levels that say which list each belongs to.
struct Leaf<T> {
    values: Vec<T>,
    /// How much of the way to the value is there: 1 a statement, 2 a place in its list, 3 a value that is not null.
    definitions: Vec<i16>,
    /// Where the list goes on: 0 a new row, 1 a new statement, 2 a new place.
    repetitions: Vec<i16>,
}

impl Group<'_> {
    fn exchanges(&mut self) -> Result<(), ParquetError> {
        self.number(|row| row.connection.into())?;
        self.number(|row| row.exchange)?;
        self.text(|row| row.unit)?;
        self.number(|row| row.sent_at.0)?;
        self.number(|row| row.sent_at_ns)?;
        self.number(|row| row.first_reply_at_ns)?;
        self.number(|row| row.last_reply_at_ns)?;
        self.number(|row| row.bytes_sent)?;
        self.number(|row| row.bytes_received)?;
        self.flag(|row| row.starts_trip)?;
        self.flag(|row| row.may_share)?;
        self.text(|row| row.remedy)?;
        self.text(|row| row.obstacle)?;
        self.text(|row| row.transaction)?;
        self.text(|row| &row.outcome)?;
        self.text(|row| &row.scope)?;
        self.text(|row| &row.request)?;
        self.text(|row| &row.template.text)?;
        self.number(|row| row.rows)?;
        self.number(|row| row.cut_statements)
    }

    fn statements(&mut self) -> Result<(), ParquetError> {
        self.of_statement::<ByteArrayType>(|statement| bytes(&statement.template.text))?;
        self.of_statement::<ByteArrayType>(|statement| bytes(statement.template.kind))?;
        self.texts(|statement| &statement.template.tables)?;
        self.list::<Int64Type>(false, |statement, out| {
            out.extend(statement.template.compared.iter().map(|(parameter, _)| Some(i64::from(*parameter))));
        })?;
        self.list::<ByteArrayType>(false, |statement, out| {
            out.extend(statement.template.compared.iter().map(|(_, column)| Some(bytes(column))));
        })?;
        self.list::<Int64Type>(false, |statement, out| {
            out.extend(statement.template.bounds.iter().map(|bound| Some(i64::from(*bound))));
        })?;
        self.list::<ByteArrayType>(false, |statement, out| {
            out.extend(statement.steps.iter().map(|step| Some(bytes(step))));
        })?;
        self.of_statement::<Int64Type>(|statement| integer(statement.rows))?;
        self.of_statement::<Int64Type>(|statement| statement.row_limit.into())?;
        self.of_statement::<ByteArrayType>(|statement| bytes(&statement.outcome))?;
        self.values(|statement| &statement.parameter_hashes)?;
        self.values(|statement| &statement.parameters)?;
        self.texts(|statement| &statement.key_columns)?;
        self.texts(|statement| &statement.key_hashes)
    }

    fn number(&mut self, of: impl Fn(&Row) -> u64) -> Result<(), ParquetError> {
        self.of_row::<Int64Type>(|row| integer(of(row)))
    }

    fn flag(&mut self, of: impl Fn(&Row) -> bool) -> Result<(), ParquetError> {
        self.of_row::<BoolType>(of)
    }

    fn text(&mut self, of: impl Fn(&Row) -> &str) -> Result<(), ParquetError> {
        self.of_row::<ByteArrayType>(|row| bytes(of(row)))
    }

    fn of_row<T: DataType>(&mut self, of: impl Fn(&Row) -> T::T) -> Result<(), ParquetError> {
        let values: Vec<T::T> = self.rows.iter().map(of).collect();
        self.write::<T>(&values, None, None)
    }

    /// A column with a value for each statement.
    fn of_statement<T: DataType>(&mut self, of: impl Fn(&StatementRow) -> T::T) -> Result<(), ParquetError> {
        let mut leaf = Leaf::default();
        for row in self.rows {
            if row.statements.is_empty() {
                leaf.level(0, 0);
            }
            for (position, statement) in row.statements.iter().enumerate() {
                leaf.level(1, i16::from(position > 0));
                leaf.values.push(of(statement));
            }
        }
        self.leaf::<T>(&leaf)
    }

    /// A column with a list for each statement, which `of` fills. Only a nullable one may have `None`.
    fn list<T: DataType>(
        &mut self,
        is_nullable: bool,
        of: impl Fn(&StatementRow, &mut Vec<Option<T::T>>),
    ) -> Result<(), ParquetError> {
        let mut leaf = Leaf::default();
        let mut values = Vec::new();
        for row in self.rows {
            if row.statements.is_empty() {
                leaf.level(0, 0);
            }
            for (position, statement) in row.statements.iter().enumerate() {
                let begins = i16::from(position > 0);
                of(statement, &mut values);
                if values.is_empty() {
                    leaf.level(1, begins);
                }
                for (place, value) in values.drain(..).enumerate() {
                    let is_there = is_nullable && value.is_some();
                    leaf.level(2 + i16::from(is_there), if place > 0 { 2 } else { begins });
                    leaf.values.extend(value);
                }
            }
        }
        self.leaf::<T>(&leaf)
    }

    fn texts(&mut self, of: impl Fn(&StatementRow) -> &[String]) -> Result<(), ParquetError> {
        self.list::<ByteArrayType>(false, |statement, out| {
            out.extend(of(statement).iter().map(|text| Some(bytes(text))));
        })
    }

    fn values(&mut self, of: impl Fn(&StatementRow) -> &[Option<String>]) -> Result<(), ParquetError> {
        self.list::<ByteArrayType>(true, |statement, out| {
            out.extend(of(statement).iter().map(|text| text.as_deref().map(bytes)));
        })
    }

    fn leaf<T: DataType>(&mut self, leaf: &Leaf<T::T>) -> Result<(), ParquetError> {
        self.write::<T>(&leaf.values, Some(&leaf.definitions), Some(&leaf.repetitions))
    }

    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        definitions: Option<&[i16]>,
        repetitions: Option<&[i16]>,
    ) -> Result<(), ParquetError> {
        let missing = || ParquetError::General("the schema has fewer columns than are written".into());
        let mut column = self.writer.next_column()?.ok_or_else(missing)?;
        column.typed::<T>().write_batch(values, definitions, repetitions)?;
        column.close()
    }
}

impl<T> Leaf<T> {
    fn level(&mut self, definition: i16, repetition: i16) {
        self.definitions.push(definition);
        self.repetitions.push(repetition);
    }
}

impl<T> Default for Leaf<T> {
    fn default() -> Self {
        Self { values: Vec::new(), definitions: Vec::new(), repetitions: Vec::new() }
    }
}

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text)
}

fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
