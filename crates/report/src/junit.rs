//! Budgets and `--fail-on` rules as JUnit test cases, for whatever shows test results.

use std::fmt::Write;

use onetrip_ledger::Code;
use onetrip_ledger::budget::Verdict;

use crate::Report;
use crate::clean::{clean, cut, markup};
use crate::number::{count, counted};
use crate::proof::proof;
use crate::text::{judgement, scope_name};

/// Findings listed below a failure.
const FINDINGS_MAX: usize = 3;
/// Columns of a statement there.
const STATEMENT_MAX: usize = 1000;

/// One test case; `failure` is the sentence that says why, and what shows it.
#[derive(Debug)]
struct Case {
    class: &'static str,
    name: String,
    failure: Option<(String, String)>,
}

pub(crate) fn render(report: &Report<'_>) -> String {
    let budgets = report.verdicts.iter().map(|verdict| budget_case(report, verdict));
    let rules = report.fail_on.iter().map(|code| rule_case(report, *code));
    let cases: Vec<Case> = budgets.chain(rules).collect();
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let seconds = report.summary.elapsed_ns as f64 / 1e9;
    let suite =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\" time=\"{seconds:.3}\"", cases.len());
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {suite}>\n");
    let _ = writeln!(xml, "  <testsuite name=\"onetrip\" {suite} skipped=\"0\">");
    for case in &cases {
        write_case(&mut xml, case);
    }
    let _ = writeln!(xml, "    <system-out>{}</system-out>", markup(&report.headline()));
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn budget_case(report: &Report<'_>, verdict: &Verdict) -> Case {
    let failure = (!verdict.kept)
        .then(|| (judgement(verdict, report.summary), details(report, verdict.measure.parse().ok())));
    let scope = verdict.scope.as_ref().map(|scope| format!(" in {}", scope_name(scope))).unwrap_or_default();
    let name = format!("{}{scope} <= {}", clean(&verdict.measure), count(verdict.most));
    Case { class: "onetrip.budget", name, failure }
}

fn rule_case(report: &Report<'_>, code: Code) -> Case {
    let failure = report.finds(code).then(|| {
        let of_code = report.summary.findings.iter().filter(|finding| finding.code == code);
        let avoidable = of_code.map(|finding| finding.avoidable).sum();
        let trips = counted(avoidable, "avoidable trip", "avoidable trips");
        (format!("{code} {}: {trips}", code.title()), details(report, Some(code)))
    });
    Case { class: "onetrip.fail-on", name: format!("no {code} {}", code.title()), failure }
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

fn write_case(xml: &mut String, case: &Case) {
    let name = markup(&case.name);
    let _ = write!(xml, "    <testcase classname=\"{}\" name=\"{name}\" time=\"0\"", case.class);
    match &case.failure {
        None => xml.push_str("/>\n"),
        Some((sentence, details)) => {
            let sentence = markup(sentence);
            let _ = write!(xml, ">\n      <failure message=\"{sentence}\" type=\"{}\">", case.class);
            xml.push_str(&markup(details));
            xml.push_str("</failure>\n    </testcase>\n");
        }
    }
}
