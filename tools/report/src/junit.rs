//! The rules as JUnit test cases, for whatever shows test results: a broken one has failed, one that could not be judged
//! is an error.

use std::fmt::Write;

use onetrip_ledger::Code;
use onetrip_ledger::judge::{Ruling, Verdict};

use crate::Report;
use crate::clean::{clean, cut, markup};
use crate::number::counted;
use crate::proof::proof;
use crate::text::doubts;
use crate::verdict::{class, code, name, sentence};

/// Findings listed below a failure.
const FINDINGS_MAX: usize = 3;
/// Columns of a statement there.
const STATEMENT_MAX: usize = 1000;

pub(crate) fn render(report: &Report<'_>) -> String {
    let verdicts = report.verdicts();
    let of = |ruling| verdicts.iter().filter(|verdict| verdict.ruling == ruling).count();
    let (failures, errors) = (of(Ruling::Broken), of(Ruling::Unjudged));
    let seconds = report.summary.elapsed_ns as f64 / 1e9;
    let tests = verdicts.len();
    let suite =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{seconds:.3}\"");
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {suite}>\n");
    let _ = writeln!(xml, "  <testsuite name=\"onetrip\" {suite} skipped=\"0\">");
    for verdict in verdicts {
        write_case(&mut xml, report, verdict);
    }
    let mut said = vec![report.headline()];
    said.extend(doubts(report));
    let _ = writeln!(xml, "    <system-out>{}</system-out>", markup(&said.join("\n")));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// The findings of `code`, or all, a few lines each.
fn details(report: &Report<'_>, code: Option<Code>) -> String {
    let fits = |finding: &&onetrip_ledger::Finding| code.is_none_or(|code| finding.code == code);
    let mut text = report.headline();
    for finding in report.summary.findings.iter().filter(fits).take(FINDINGS_MAX) {
        let avoidable = counted(finding.avoidable, "avoidable trip", "avoidable trips");
        let _ = write!(text, "\n\n{} {}: {avoidable}", finding.code, finding.code.title());
        if let Some(statement) = finding.statements.first() {
            let _ = write!(text, "\n  what   {}", cut(statement, STATEMENT_MAX));
        }
        let _ = write!(text, "\n  proof  {}\n  fix    {}", proof(finding), clean(&finding.fix));
    }
    text
}

fn write_case(xml: &mut String, report: &Report<'_>, verdict: &Verdict) {
    let (class, name) = (class(&verdict.rule), markup(&name(&verdict.rule)));
    let _ = write!(xml, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"0\"");
    let element = match verdict.ruling {
        Ruling::Kept => return xml.push_str("/>\n"),
        Ruling::Broken => "failure",
        Ruling::Unjudged => "error",
    };
    let sentence = markup(&sentence(verdict));
    let _ = write!(xml, ">\n      <{element} message=\"{sentence}\" type=\"{class}\">");
    xml.push_str(&markup(&details(report, code(&verdict.rule))));
    let _ = writeln!(xml, "</{element}>\n    </testcase>");
}
