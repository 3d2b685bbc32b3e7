//! What is in the trace is in the export, under names.

use onetrip_export::json_lines;
use onetrip_ledger::trace::TraceHeader;
use onetrip_ledger::{
    Exchange, Moment, Outcome, Statement, Steps, StreamEncoder, TraceReader, TraceWriter, UnitKind,
};

fn trace(directory: &std::path::Path) -> TraceReader {
    let path = directory.join("a.trace");
    let mut stream = StreamEncoder::default();
    stream.template(1, b"SELECT * FROM t WHERE id = $1");
    stream.scope(1, b"GET /");
    stream.exchange(&Exchange {
        kind: UnitKind::Group,
        sent_at: Moment(5),
        first_reply_at: Moment(7),
        last_reply_at: Moment(9),
        starts_trip: true,
        scope: 1,
        outcome: Outcome::Failed(*b"42P01"),
        statements: vec![Statement {
            template: 1,
            steps: Steps::BIND | Steps::EXECUTE,
            rows: 3,
            parameters: 2,
            outcome: Outcome::Failed(*b"42P01"),
            ..Statement::default()
        }],
        parameters: vec![0xabc, 0],
        ..Exchange::default()
    });
    let mut writer = TraceWriter::create(&path, TraceHeader::now(false)).unwrap();
    writer.append(4, &stream.take_block()).unwrap();
    TraceReader::open(&path).unwrap()
}

#[test]
fn a_line_of_json_holds_an_exchange() {
    let directory = tempfile::tempdir().unwrap();
    let mut out = Vec::new();
    json_lines(&mut trace(directory.path()), &mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1);
    let line = &lines[0];
    assert_eq!(line["connection"], 4);
    assert_eq!(line["unit"], "group");
    assert_eq!(line["last_reply_at_ns"], 9);
    assert_eq!(line["scope"], "GET /");
    assert_eq!(line["outcome"], "42P01");
    let statement = &line["statements"][0];
    assert_eq!(statement["template"], "SELECT * FROM t WHERE id = $1");
    assert_eq!(statement["steps"], serde_json::json!(["bind", "execute"]));
    assert_eq!(statement["parameters"], serde_json::json!(["0000000000000abc", null]));
}

#[cfg(feature = "parquet")]
#[test]
fn a_row_of_parquet_holds_an_exchange() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    onetrip_export::parquet(&mut trace(directory.path()), std::fs::File::create(&path).unwrap()).unwrap();
    let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect();
    assert_eq!(rows.len(), 1);
    for part in
        ["connection: 4", "template: \"SELECT * FROM t WHERE id = $1\"", "rows: 3", "starts_trip: true"]
    {
        assert!(rows[0].contains(part), "{part} is not in {}", rows[0]);
    }
}
