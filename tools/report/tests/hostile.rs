//! Text from strangers: no line too wide, no sequence that a terminal or a parser acts upon.

mod common;

use common::{crowded, driver, finding, story, template};
use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Comparison, Judgement, Measure, Reason, Rule, Ruling, Verdict};
use onetrip_ledger::network::{NamedPath, NetworkSummary};
use onetrip_ledger::sides::{NamedSplit, Split, TwoSides};
use onetrip_ledger::{Code, Evidence, Finding, Obstacle, Refusal, ScopeTotals, Summary};
use onetrip_report::{Report, RunInfo, Style};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

/// A report in which every text is `text`.
fn shown(text: &str, check: impl Fn(Report<'_>)) {
    let walk =
        Evidence::Walk { sources: vec![(1, text.into()), (u16::MAX, text.into())], rows: (1, u64::MAX) };
    let found = finding(Code::Loop, driver("hibernate"), [u64::MAX, u64::MAX, u64::MAX - 1, u64::MAX], walk);
    let summary = Summary {
        upstream: text.into(),
        templates: vec![template(text, 412, 3, 9_000_000)],
        scopes: vec![
            ScopeTotals { label: text.into(), trips: u64::MAX, ..ScopeTotals::default() },
            ScopeTotals { label: "b".into(), trips: 1, requests: u64::MAX, ..ScopeTotals::default() },
        ],
        findings: vec![Finding {
            statements: vec![text.into(), text.into()],
            scopes: vec![text.into(); 5],
            spots: Vec::new(),
            sites: Vec::new(),
            fix: text.into(),
            left: [(Obstacle::Impure, 7)].into(),
            impure: Some(text.into()),
            ..found
        }],
        ..story()
    };
    let verdict = |rule: Rule, ruling| Verdict {
        rule,
        ruling,
        counted: 412,
        allowed: Some(3),
        reason: (ruling == Ruling::Unjudged).then(|| Reason::loss(text)),
    };
    let limit = || Rule::Limit { measure: Measure::Trips, scope: Some(text.into()) };
    let snapshot = Rule::Snapshot { measure: Measure::RequestTripsMost, scope: Some(text.into()) };
    let verdicts = vec![
        verdict(limit(), Ruling::Passed),
        verdict(limit(), Ruling::Failed),
        verdict(limit(), Ruling::Unjudged),
        verdict(Rule::FailOn(Code::Loop), Ruling::Failed),
        verdict(Rule::Increase { base: text.into() }, Ruling::Failed),
        verdict(snapshot, Ruling::Failed),
        verdict(Rule::Trace, Ruling::Unjudged),
    ];
    let comparison = Comparison {
        trips: Change { before: 0, now: u64::MAX >> 1 },
        statements: vec![(text.into(), Change { before: 9, now: 1 })],
        findings: vec![(Code::Loop, text.into(), Change { before: 1, now: 9 })],
    };
    let run = RunInfo {
        command: vec![text.into(), text.into()],
        exit_code: Some(-1),
        signal: None,
        trace: Some(text.into()),
        trace_error: Some(text.into()),
        has_tests: true,
        pointed: vec![text.into()],
        redirected: None,
    };
    let judgement = Judgement { verdicts, comparison: Some(comparison) };
    let refusal = Refusal { sqlstate: text.into(), message: text.into(), sessions: 1 };
    let unopened = Summary { sessions: 0, refusals: vec![refusal], ..summary.clone() };
    let named =
        NamedPath { client: text.into(), server: text.into(), protocol: text.into(), ..NamedPath::default() };
    let network = NetworkSummary { connections: 9, paths: vec![named; 3], ..NetworkSummary::default() };
    let seen_as = Some([text.into(), text.into()]);
    let split = Split { turns: 1, ..Split::default() };
    let named = NamedSplit { client: text.into(), server: text.into(), seen_as, split };
    let sides = TwoSides { connections: 9, totals: split, paths: vec![named; 3], ..TwoSides::default() };
    let command = vec![text.to_owned(); 3];
    for summary in [&summary, &unopened] {
        check(Report {
            summary,
            run: Some(&run),
            judgement: Some(&judgement),
            prices: None,
            network: Some(&network),
            sides: Some(&sides),
            how_to_connect: text,
            command: &command,
        });
    }
}

fn is_harmless(report: Report<'_>) {
    let text = onetrip_report::text(&report, Style::Plain);
    for line in text.lines() {
        assert!(line.width() <= 100, "{} columns: {line:?}", line.width());
        assert!(line.chars().count() <= 100, "bounded even where characters take no column");
    }
    let steers = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(steers), "{text:?}");
    let colored = onetrip_report::text(&report, Style::Colored);
    let mut uncolored = colored;
    for sequence in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"] {
        uncolored = uncolored.replace(sequence, "");
    }
    assert_eq!(uncolored, text, "colour changes nothing else");
    let json = onetrip_report::json(&report);
    assert!(!json.contains(steers), "{json:?}");
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
    let markdown = onetrip_report::markdown(&report);
    assert!(!markdown.contains(steers), "{markdown:?}");
    assert!(report.verdicts_of(Ruling::Failed).all(|line| !line.contains(|c: char| c.is_control())));
    let junit = onetrip_report::junit(&report);
    assert!(!junit.contains(steers), "{junit:?}");
    roxmltree::Document::parse(&junit).unwrap();
}

#[test]
fn no_text_reaches_the_terminal_as_a_command_or_breaks_the_page() {
    let long = "SELECT ".to_owned() + &"a_column, ".repeat(20_000) + "FROM t";
    let texts = [
        "\x1b]0;owned\x07\x1b[2J\x1b[31m; \u{9b}1;31m",
        "\u{202e}drowssap\u{202c} \u{200b}\u{feff}\u{2066}x\u{2069}",
        "line\r\noverwritten\rline \u{85} \u{2028} \u{b}",
        "]]> <!-- & \" ' </failure> \u{fffe}\u{ffff} \u{0}",
        "表形式のとても長い文".repeat(60).leak(),
        "👩‍👩‍👧‍👦🇩🇪é".repeat(90).leak(),
        "e\u{301}\u{301}\u{301}".repeat(3_000).leak(),
        "x".repeat(100_000).leak(),
        "' '' \\ ` $( ) ; \t",
        "",
        long.leak(),
    ];
    for text in texts {
        shown(text, is_harmless);
    }
}

#[test]
fn a_statement_takes_two_lines_at_most() {
    let word = "unmistakable_column";
    let mut summary = crowded();
    summary.findings.clear();
    summary.templates = vec![template(&format!("SELECT {}", format!("{word}, ").repeat(50)), 3, 3, 3)];
    let text = onetrip_report::text(&Report::new(&summary), Style::Plain);
    assert_eq!(text.lines().filter(|line| line.contains(word)).count(), 2);
}

#[test]
fn the_json_keeps_texts_as_they_were() {
    let text = "SELECT '\u{9b}31m\u{202e}', \"é👩‍👧\u{e0001}\"\n";
    shown(text, |report| {
        let json: serde_json::Value = serde_json::from_str(&onetrip_report::json(&report)).unwrap();
        assert_eq!(json["templates"][0]["text"], text);
    });
}

proptest! {
    #[test]
    fn any_text_is_harmless(text in "\\PC{0,300}|[\\x00-\\u{ff}\\u{2000}-\\u{20ff} ]{0,300}") {
        shown(&text, is_harmless);
    }
}
