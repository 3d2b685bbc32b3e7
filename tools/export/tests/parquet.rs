//! What others read in a Parquet export: `cargo test -p onetrip-export --features parquet`.
#![cfg(feature = "parquet")]

mod shop;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use onetrip_export::{COLUMNS, ExportError, PARTITIONS, SCHEMA, STATEMENT_COLUMNS};
use onetrip_ledger::{Analyzer, Mutes, Summary, TraceReader};
use parquet::basic::Type;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Findings that contrib/spark computes.
const CODES: [&str; 3] = ["OT001", "OT002", "OT003"];

/// A trace with its export.
struct Exported {
    folder: TempDir,
}

impl Exported {
    fn new(seed: u64, connections: u32) -> Self {
        let exported = Self { folder: tempfile::tempdir().unwrap() };
        shop::write(&exported.trace(), seed, connections);
        onetrip_export::parquet(&mut exported.reader(), &exported.directory(), |_| ()).unwrap();
        exported
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("shop.trace")
    }

    fn reader(&self) -> TraceReader {
        TraceReader::open(&self.trace()).unwrap()
    }

    fn directory(&self) -> PathBuf {
        self.folder.path().join("export")
    }

    /// What the analyzer says, as contrib/spark/compare.py wants it.
    fn expected(&self) -> Value {
        let mut reader = self.reader();
        let started_unix_ns = reader.header().started_unix_nanos;
        let mut analyzer = Analyzer::new();
        while let Some(block) = reader.next_block().unwrap() {
            analyzer.block(block.stream, block.payload).unwrap();
        }
        let summary = analyzer.finish(&Mutes::default()).summary;
        json!({
            "started_unix_ns": started_unix_ns,
            "columns": COLUMNS.iter().map(|column| column.name).collect::<Vec<_>>(),
            "totals": {
                "trips": summary.trips.total,
                "connect": summary.trips.connect,
                "statements": summary.statements,
                "rows": summary.rows,
            },
            "templates": summary.templates.iter().map(|totals| json!({
                "template": totals.text,
                "trips": totals.trips,
                "executions": totals.executions,
                "rows": totals.rows,
                "waited_ns": totals.waited_ns,
                "waited_max_ns": totals.waited_max_ns,
                "bytes": totals.bytes,
            })).collect::<Vec<_>>(),
            "findings": findings(&summary),
        })
    }

    /// Lets contrib/spark/compare.py read the export; what it says.
    fn compare(&self, python: &Path, reader: &str) -> Result<String, String> {
        let expected = self.folder.path().join("expected.json");
        fs::write(&expected, self.expected().to_string()).unwrap();
        let output = Command::new(python)
            .arg(root().join("contrib/spark/compare.py"))
            .arg(reader)
            .args([self.directory(), expected])
            .output()
            .unwrap_or_else(|error| panic!("{}: {error}. Run: scripts/setup test", python.display()));
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

fn findings(summary: &Summary) -> Vec<Value> {
    let of_job = summary.findings.iter().filter(|finding| CODES.contains(&finding.code.as_str()));
    let shown = of_job.map(|finding| {
        json!({
            "code": finding.code.as_str(),
            "template": finding.statements[0],
            "source": finding.statements.get(1).cloned().unwrap_or_default(),
            "occurrences": finding.occurrences,
            "trips": finding.trips,
            "avoidable": finding.avoidable,
            "removed": finding.removed,
            "waited_ns": finding.waited_ns,
        })
    });
    shown.collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Python with the packages of clients/python/requirements.txt, or another one that has what the test needs.
fn python() -> PathBuf {
    std::env::var_os("ONETRIP_TEST_PYTHON").map_or(root().join(".venv/bin/python"), PathBuf::from)
}

#[test]
fn each_day_and_host_has_a_file() {
    let exported = Exported::new(1, 3);
    let mut rows = BTreeMap::new();
    for day in fs::read_dir(exported.directory()).unwrap() {
        let day = day.unwrap();
        let file = day.path().join("host=db.example-5432/part-0.parquet");
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "nothing is left over");
        let reader = SerializedFileReader::new(fs::File::open(&file).unwrap()).unwrap();
        rows.insert(day.file_name().into_string().unwrap(), reader.metadata().file_metadata().num_rows());
    }
    let days: Vec<&str> = rows.keys().map(String::as_str).collect();
    assert!(days.starts_with(&["day=2026-11-26", "day=2026-11-27"]), "{days:?}");
    let mut lines = Vec::new();
    onetrip_export::json_lines(&mut exported.reader(), &mut lines, |_| ()).unwrap();
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(rows.values().sum::<i64>(), lines as i64);
}

#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let exported = Exported::new(1, 1);
    let again = onetrip_export::parquet(&mut exported.reader(), &exported.directory(), |_| ());
    assert!(matches!(again, Err(ExportError::NotEmpty(_))), "{again:?}");
}

#[test]
fn the_schema_has_the_columns_that_are_documented() {
    let schema = parse_message_type(SCHEMA).unwrap();
    let kind = |field: &parquet::schema::types::Type| match field {
        field if field.is_group() => "list",
        field => match field.get_physical_type() {
            Type::BOOLEAN => "boolean",
            Type::BYTE_ARRAY => "string",
            _ if field.get_basic_info().logical_type_ref().is_some() => "timestamp",
            Type::INT64 => "int64",
            other => panic!("{other}"),
        },
    };
    let fields = |fields: &[std::sync::Arc<parquet::schema::types::Type>]| -> Vec<(String, &str)> {
        fields.iter().map(|field| (field.name().to_owned(), kind(field))).collect()
    };
    let documented = |columns: &[onetrip_export::Column]| -> Vec<(String, &str)> {
        let kind = |kind: &'static str| if kind.starts_with("list") { "list" } else { kind };
        columns.iter().map(|column| (column.name.to_owned(), kind(column.kind))).collect()
    };
    assert_eq!(fields(schema.get_fields()), documented(&COLUMNS[PARTITIONS..]));
    let statements = schema.get_fields().last().unwrap();
    let element = &statements.get_fields()[0].get_fields()[0];
    assert_eq!(fields(element.get_fields()), documented(STATEMENT_COLUMNS));
}

#[test]
fn duckdb_reads_it_and_the_rules_of_the_job_find_what_the_analyzer_finds() {
    let mut found = BTreeMap::<String, u64>::new();
    for seed in 1..=12 {
        let exported = Exported::new(seed, 6);
        let said = exported.compare(&python(), "duckdb");
        let said = said.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        print!("seed {seed}: {said}");
        for finding in exported.expected()["findings"].as_array().unwrap() {
            *found.entry(finding["code"].as_str().unwrap().into()).or_default() += 1;
        }
    }
    assert!(CODES.iter().all(|code| found.get(*code).is_some_and(|count| *count >= 10)), "{found:?}");
}

#[test]
#[ignore = "needs pyspark and Java: scripts/test-spark"]
fn the_job_on_spark_finds_what_the_analyzer_finds() {
    let exported = Exported::new(7, 12);
    let said = exported.compare(&python(), "spark").unwrap_or_else(|error| panic!("{error}"));
    assert!(CODES.iter().all(|code| said.contains(code)), "{said}");
}
