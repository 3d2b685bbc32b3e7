//! What is in the trace is in the export, under names.

mod shop;

use std::path::Path;

use onetrip_export::{COLUMNS, STATEMENT_COLUMNS, csv, json_lines};
use onetrip_ledger::trace::{TRACE_STREAM, TraceHeader};
use onetrip_ledger::{
    Exchange, Moment, Outcome, Statement, Steps, StreamEncoder, TraceReader, TraceWriter, UnitKind,
};
use serde_json::{Value, json};

/// A trace of one exchange, sent 5 ns after midnight of 27 November 2026.
fn trace(directory: &Path, parameter_texts: Vec<Vec<u8>>) -> TraceReader {
    let path = directory.join("a.trace");
    let mut stream = StreamEncoder::default();
    stream.template(1, b"SELECT * FROM shop.t WHERE id = $1 AND at < $2");
    stream.scope(1, b"GET /, \"all\"");
    stream.columns(1, [&b"id"[..], &b"owner_id"[..]]);
    stream.exchange(&Exchange {
        kind: UnitKind::Group,
        sent_at: Moment(5),
        first_reply_at: Moment(7),
        last_reply_at: Moment(9),
        starts_trip: true,
        scope: 1,
        request: 255,
        outcome: Outcome::Failed(*b"42P01"),
        statements: vec![Statement {
            template: 1,
            steps: Steps::BIND | Steps::EXECUTE,
            rows: 3,
            parameters: 2,
            columns: 1,
            key_columns: 2,
            results: 4,
            outcome: Outcome::Failed(*b"42P01"),
            ..Statement::default()
        }],
        parameters: vec![0xabc, 0],
        results: vec![1, 2, 3, 0xffff_ffff],
        parameter_texts,
        ..Exchange::default()
    });
    let header = TraceHeader { started_unix_nanos: 1_795_737_600_000_000_000, ..TraceHeader::now(true) };
    let mut writer = TraceWriter::create(&path, header).unwrap();
    let mut origin = StreamEncoder::default();
    origin.origin(b"test", b"[::1]:5432", 0, b"");
    writer.append(TRACE_STREAM, &origin.take_block()).unwrap();
    writer.append(4, &stream.take_block()).unwrap();
    TraceReader::open(&path).unwrap()
}

/// The lines of JSON, and their texts.
fn lines(reader: &mut TraceReader) -> Vec<(Value, String)> {
    let mut out = Vec::new();
    json_lines(reader, &mut out, |_| ()).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().map(|line| (serde_json::from_str(line).unwrap(), line.to_owned())).collect()
}

#[test]
fn a_line_of_json_holds_an_exchange() {
    let directory = tempfile::tempdir().unwrap();
    let lines = lines(&mut trace(directory.path(), Vec::new()));
    assert_eq!(lines.len(), 1);
    let line = &lines[0].0;
    for (name, value) in [
        ("day", json!("2026-11-27")),
        ("host", json!("---1--5432")),
        ("connection", json!(4)),
        ("exchange", json!(1)),
        ("unit", json!("group")),
        ("sent_at", json!("2026-11-27T00:00:00.000000Z")),
        ("sent_at_ns", json!(5)),
        ("last_reply_at_ns", json!(9)),
        ("scope", json!("GET /, \"all\"")),
        ("request", json!("00000000000000ff")),
        ("outcome", json!("42P01")),
        ("template", json!("SELECT * FROM shop.t WHERE id = $1 AND at < $2")),
        ("rows", json!(3)),
    ] {
        assert_eq!(line[name], value, "{name}");
    }
    let statement = &line["statements"][0];
    for (name, value) in [
        ("kind", json!("select")),
        ("tables", json!(["t"])),
        ("compared", json!([{"parameter": 1, "column_name": "id"}])),
        ("bounds", json!([2])),
        ("steps", json!(["bind", "execute"])),
        ("parameter_hashes", json!(["0000000000000abc", null])),
        ("parameters", json!([])),
        ("key_columns", json!(["id", "owner_id"])),
        ("key_hashes", json!(["00000001", "00000002", "00000003", "ffffffff"])),
    ] {
        assert_eq!(statement[name], value, "{name}");
    }
}

#[test]
fn texts_of_parameters_are_there_if_the_trace_keeps_values() {
    let directory = tempfile::tempdir().unwrap();
    let lines = lines(&mut trace(directory.path(), vec![b"7".to_vec(), Vec::new()]));
    let statement = &lines[0].0["statements"][0];
    assert_eq!(statement["parameters"], json!(["7", null]));
    assert_eq!(statement["parameter_hashes"], json!(["0000000000000abc", null]));
}

#[test]
fn a_line_of_csv_holds_an_exchange() {
    let directory = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    csv(&mut trace(directory.path(), Vec::new()), &mut out, |_| ()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let (names, line) = text.split_once('\n').unwrap();
    let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.split(',').collect::<Vec<_>>(), known);
    assert!(line.starts_with("2026-11-27,---1--5432,4,1,group,2026-11-27T00:00:00.000000Z,5,7,9,"), "{line}");
    assert!(line.contains(",\"GET /, \"\"all\"\"\","), "{line}");
    assert!(line.ends_with("}]\"\n") && line.contains(",\"[{\"\"template\"\":\"\"SELECT "), "{line}");
}

#[test]
fn columns_are_those_that_are_documented_and_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let lines = lines(&mut trace(directory.path(), Vec::new()));
    let (line, text) = &lines[0];
    let is_in_order = |columns: &[onetrip_export::Column], text: &str| {
        let places = columns.iter().map(|column| text.find(&format!("\"{}\":", column.name)).unwrap());
        places.collect::<Vec<_>>().is_sorted()
    };
    assert_eq!(line.as_object().unwrap().len(), COLUMNS.len());
    assert_eq!(line["statements"][0].as_object().unwrap().len(), STATEMENT_COLUMNS.len());
    let (exchange, statements) = text.split_once("\"statements\":").unwrap();
    assert!(is_in_order(&COLUMNS[..COLUMNS.len() - 1], exchange));
    assert!(is_in_order(STATEMENT_COLUMNS, statements));
}

#[test]
fn exchanges_are_numbered_in_each_connection() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.trace");
    shop::write(&path, 1, 3);
    let mut last = [0; 4];
    for (line, _) in lines(&mut TraceReader::open(&path).unwrap()) {
        let connection = line["connection"].as_u64().unwrap() as usize;
        last[connection] += 1;
        assert_eq!(line["exchange"], last[connection]);
    }
    assert!(last[1..].iter().all(|count| *count > 1), "{last:?}");
}
