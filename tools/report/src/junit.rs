//! The rules as JUnit test cases, for programs that show test results. A check that failed is a failed case. A rule that
//! could not be judged is an error.

use std::fmt::Write;
use std::time::Duration;

use onetrip_ledger::Code;
use onetrip_ledger::judge::{Ruling, Verdict};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use crate::Report;
use crate::clean::{clean, clean_lines, cut};
use crate::number::counted;
use crate::proof::proof;
use crate::sites::lines;
use crate::text::doubts;
use crate::verdict::{class, code, name, sentence};

/// Findings listed below a failure.
const FINDINGS_MAX: usize = 3;
/// Columns of a statement there.
const STATEMENT_MAX: usize = 1000;

/// The rules as test cases in JUnit's XML.
pub fn junit(report: &Report<'_>) -> String {
    let time = Duration::from_nanos(report.summary.elapsed_ns);
    let mut suite = TestSuite::new("onetrip");
    suite.set_time(time);
    suite.add_test_cases(report.verdicts().iter().map(|verdict| case(report, verdict)));
    let mut said = vec![report.headline()];
    said.extend(doubts(report));
    suite.set_system_out(clean_lines(&said.join("\n")));
    let mut suites = quick_junit::Report::unnamed();
    suites.set_time(time);
    suites.add_test_suite(suite);
    // Writing to memory does not fail, and what is written is text.
    suites.to_string().unwrap_or_default()
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
        for line in lines(finding) {
            let _ = write!(text, "\n  line   {line}");
        }
        let _ = write!(text, "\n  proof  {}\n  fix    {}", proof(finding), clean(&finding.fix));
    }
    text
}

fn case(report: &Report<'_>, verdict: &Verdict) -> TestCase {
    let class = class(&verdict.rule);
    let failed = |kind| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(clean_lines(&sentence(verdict)));
        status.set_type(class);
        status.set_description(clean_lines(&details(report, code(&verdict.rule))));
        status
    };
    let status = match verdict.ruling {
        Ruling::Passed => TestCaseStatus::success(),
        Ruling::Failed => failed(NonSuccessKind::Failure),
        Ruling::Unjudged => failed(NonSuccessKind::Error),
    };
    let mut case = TestCase::new(clean_lines(&name(&verdict.rule)), status);
    case.set_classname(class);
    case.set_time(Duration::ZERO);
    case
}
