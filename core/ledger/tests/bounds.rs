//! What the analyzer keeps is bounded, and what it does not tell apart is counted.

use onetrip_heap::LIVE;
use onetrip_ledger::{Analyzer, Exchange, Moment, Mutes, Statement, Steps, StreamEncoder, Summary, UnitKind};

const TEXT_BYTES: usize = 1 << 20;

/// One statement, of this template and scope.
fn run(stream: &mut StreamEncoder, template: u32, scope: u32) {
    stream.exchange(&Exchange {
        kind: UnitKind::Query,
        starts_trip: true,
        scope,
        statements: vec![Statement { template, steps: Steps::EXECUTE, ..Statement::default() }],
        ..Exchange::default()
    });
}

fn summary(analyzer: Analyzer) -> Summary {
    analyzer.finish(&Mutes::default()).summary
}

#[test]
fn texts_beyond_64_mib_are_counted_together() {
    let before = LIVE.get();
    let (mut analyzer, mut stream) = (Analyzer::new(), StreamEncoder::default());
    // Connections come and go; each has one text of its own.
    for number in 1..=80 {
        stream.template(1, format!("SELECT 1 AS \"{number:03}{}\"", "x".repeat(TEXT_BYTES)).as_bytes());
        run(&mut stream, 1, 0);
        stream.closed(Moment(0), 0, 0, 0);
        analyzer.block(number, &stream.take_block()).unwrap();
    }
    let kept_mib = (LIVE.get() - before) >> 20;
    assert!((60..75).contains(&kept_mib), "{kept_mib} MiB");
    let summary = summary(analyzer);
    assert_eq!((summary.statements, summary.trips.total), (80, 80));
    assert_eq!(summary.gaps.untold_statements, 17, "{:?}", summary.gaps);
    assert!(summary.gaps.hides_findings());
}

#[test]
fn statements_of_too_many_scopes_are_counted_as_without_one() {
    let (mut analyzer, mut stream) = (Analyzer::new(), StreamEncoder::default());
    stream.template(1, b"SELECT 1");
    for id in 1..=10_100 {
        stream.scope(id, format!("/page/{id}").as_bytes());
        run(&mut stream, 1, id);
    }
    run(&mut stream, 1, 1);
    analyzer.block(1, &stream.take_block()).unwrap();
    let summary = summary(analyzer);
    assert_eq!((summary.statements, summary.scopes.len()), (10_101, 10_000));
    assert_eq!(summary.gaps.unscoped_statements, 101, "{:?}", summary.gaps);
}
