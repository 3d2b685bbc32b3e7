use std::io::Write;
use std::sync::Arc;

use onetrip_ledger::TraceReader;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::{ExportError, Row, rows};

/// Rows held in memory before they are written as a group.
const GROUP_ROWS: usize = 64 * 1024;

/// One column per field of [`Row`]; of the statements, the last one's template, and all their rows.
const SCHEMA: &str = "message exchange {
    required int64 connection;
    required binary unit (STRING);
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
    required int64 statements;
    required binary template (STRING);
    required int64 rows;
}";

/// Writes one Parquet row per exchange.
///
/// # Errors
///
/// A trace that cannot be read, or a writer that fails.
pub fn parquet<W: Write + Send>(reader: &mut TraceReader, out: W) -> Result<(), ExportError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut writer = SerializedFileWriter::new(out, schema, properties)?;
    let mut group: Vec<Row> = Vec::new();
    rows(reader, |row| {
        group.push(row.clone());
        if group.len() >= GROUP_ROWS {
            write_group(&mut writer, &group)?;
            group.clear();
        }
        Ok(())
    })?;
    if !group.is_empty() {
        write_group(&mut writer, &group)?;
    }
    writer.close()?;
    Ok(())
}

fn write_group<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let numbers: [fn(&Row) -> u64; 8] = [
        |row| row.connection.into(),
        |row| row.sent_at_ns,
        |row| row.first_reply_at_ns,
        |row| row.last_reply_at_ns,
        |row| row.bytes_sent,
        |row| row.bytes_received,
        |row| row.statements.len() as u64,
        |row| row.statements.iter().map(|statement| statement.rows).sum(),
    ];
    let texts: [fn(&Row) -> &str; 5] = [
        |row| row.unit,
        |row| row.transaction,
        |row| &row.outcome,
        |row| &row.scope,
        |row| row.statements.last().map_or("", |statement| &statement.template),
    ];
    let number = |group: &mut _, of: fn(&Row) -> u64| {
        column::<_, Int64Type>(group, rows.iter().map(|row| i64::try_from(of(row)).unwrap_or(i64::MAX)))
    };
    let text = |group: &mut _, of: fn(&Row) -> &str| {
        column::<_, ByteArrayType>(group, rows.iter().map(|row| ByteArray::from(of(row))))
    };
    number(&mut group, numbers[0])?;
    text(&mut group, texts[0])?;
    for of in &numbers[1..6] {
        number(&mut group, *of)?;
    }
    column::<_, BoolType>(&mut group, rows.iter().map(|row| row.starts_trip))?;
    column::<_, BoolType>(&mut group, rows.iter().map(|row| row.may_share))?;
    text(&mut group, |row| row.remedy)?;
    text(&mut group, |row| row.obstacle)?;
    for of in &texts[1..4] {
        text(&mut group, *of)?;
    }
    number(&mut group, numbers[6])?;
    text(&mut group, texts[4])?;
    number(&mut group, numbers[7])?;
    group.close()?;
    Ok(())
}

fn column<W: Write + Send, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = values.collect();
    let missing = || ParquetError::General("the schema has fewer columns than are written".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}
