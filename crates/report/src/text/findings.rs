//! Findings, each with what shows it and what to change.

use onetrip_ledger::{Driver, Finding};

use super::{LINE_MAX, Page, scope_name};
use crate::Report;
use crate::number::{count, duration};
use crate::proof::proof;

/// Findings listed; the rest are in the other formats.
const FINDINGS_MAX: usize = 10;
/// Where a finding's details begin.
const INDENT: usize = 9;

pub(super) fn show(report: &Report<'_>, page: &mut Page) {
    let findings = &report.summary.findings;
    if findings.is_empty() {
        return;
    }
    page.heading(if report.is_worth_doing() {
        "Findings, most waiting first"
    } else {
        "Findings, too small to be worth doing here"
    });
    let shown = &findings[..findings.len().min(FINDINGS_MAX)];
    let head = Head::over(shown);
    for finding in shown {
        show_one(finding, &head, page);
    }
    page.left_out(FINDINGS_MAX, findings.len(), "findings; --format json has them all");
}

/// Widths of what the heads of findings have in common.
#[derive(Debug, Default)]
struct Head {
    title: usize,
    avoidable: usize,
    trips: usize,
    waited: usize,
}

impl Head {
    fn over(findings: &[Finding]) -> Self {
        let widest = |text: &dyn Fn(&Finding) -> String| {
            findings.iter().map(|finding| text(finding).chars().count()).max().unwrap_or(0)
        };
        Self {
            title: widest(&|finding| finding.code.title().into()),
            avoidable: widest(&|finding| count(finding.avoidable)),
            trips: widest(&|finding| count(finding.trips)),
            waited: widest(&|finding| duration(finding.waited_ns)),
        }
    }

    /// Columns of a head: the numbers, and what stands between them.
    fn width(&self) -> usize {
        let between = "  OT000     of  trips avoidable    waited".len() + 3;
        self.title + self.avoidable + self.trips + self.waited + between
    }
}

fn show_one(finding: &Finding, head: &Head, page: &mut Page) {
    show_head(finding, head, page);
    if let Some(statement) = finding.statements.first() {
        page.labelled_within(INDENT, "what ", statement, 2);
    }
    page.labelled_within(INDENT, "proof", &proof(finding), 3);
    let scopes: Vec<String> = finding.scopes.iter().map(|label| scope_name(label)).collect();
    if !scopes.is_empty() {
        page.labelled_within(INDENT, "where", &scopes.join(", "), 2);
    }
    let fix = match finding.driver {
        Driver::Unknown => finding.fix.clone(),
        driver => format!("{}: {}", driver.name(), finding.fix),
    };
    page.labelled(INDENT, "fix  ", &fix);
}

fn show_head(finding: &Finding, head: &Head, page: &mut Page) {
    let style = page.style;
    let (code, title) = (finding.code.as_str(), finding.code.title());
    let (avoidable, trips) = (count(finding.avoidable), count(finding.trips));
    let waited = duration(finding.waited_ns);
    if head.width() > LINE_MAX {
        let sentence = format!("{title}: {avoidable} of {trips} trips avoidable, {waited} waited");
        return page.labelled(2, code, &sentence);
    }
    let title = style.bold(&format!("{title:<0$}", head.title));
    let trips = format!("{avoidable:>0$} of {trips:>1$} trips avoidable", head.avoidable, head.trips);
    page.line(format!("  {}  {title}   {trips}   {waited:>1$} waited", style.mark(code), head.waited));
}
