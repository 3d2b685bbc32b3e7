//! Findings, each with what shows it and what to change.

use onetrip_forecast::Prices;
use onetrip_ledger::{Driver, Finding};

use super::{Page, Paint, Style};
use crate::Report;
use crate::clean::{scope_name, statement_text};
use crate::number::{count, duration};
use crate::proof::proof;
use crate::remedies::{fate, remedy};
use crate::sites::lines;

/// Findings listed; the rest are in the other formats.
const FINDINGS_MAX: usize = 10;
/// Share of all trips, or of all waiting, from which a finding is severe, in per cent.
const SEVERE_PERCENT: u128 = 20;
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
    let head = Head::over(shown, target(report));
    for finding in shown {
        show_one(finding, &head, severity(report, finding), page);
    }
    page.left_out(FINDINGS_MAX, findings.len(), "findings; --format json has them all");
    let style = page.style;
    page.paragraph(&format!("  onetrip explain {} tells more", findings[0].code), |line| style.dim(line));
}

/// Widths of what the heads of findings have in common.
#[derive(Debug, Default)]
struct Head {
    title: usize,
    avoidable: usize,
    trips: usize,
    waited: usize,
    /// Width of the price at the target, and that round-trip time in nanoseconds; none where nothing is priced.
    price: Option<(usize, u64)>,
}

impl Head {
    fn over(findings: &[Finding], target: Option<u64>) -> Self {
        let widest = |text: &dyn Fn(&Finding) -> String| {
            findings.iter().map(|finding| text(finding).chars().count()).max().unwrap_or(0)
        };
        Self {
            title: widest(&|finding| finding.code.title().into()),
            avoidable: widest(&|finding| count(finding.avoidable)),
            trips: widest(&|finding| count(finding.trips)),
            waited: widest(&|finding| duration(finding.waited_ns)),
            price: target.map(|rtt| (widest(&|finding| price(finding, rtt)), rtt)),
        }
    }

    /// Columns of a head: the numbers, and what stands between them.
    fn width(&self) -> usize {
        let between = "  OT000     of  trips avoidable    waited".len() + 3;
        let price = self.price.map_or(0, |(width, rtt)| width + "    at ".len() + duration(rtt).len());
        self.title + self.avoidable + self.trips + self.waited + between + price
    }
}

/// The round-trip time that findings are priced at, in nanoseconds.
fn target(report: &Report<'_>) -> Option<u64> {
    report.prices().and_then(Prices::target).map(|price| price.rtt_ns)
}

/// What the fix saves at that round-trip time.
fn price(finding: &Finding, rtt_ns: u64) -> String {
    duration(finding.price_ns(rtt_ns as f64) as u64)
}

/// The colour of a finding: red if it holds a large share of all trips or of all waiting, none where nothing is worth doing.
fn severity(report: &Report<'_>, finding: &Finding) -> Paint {
    let summary = report.summary;
    let waited_all = summary.times.server_ns.saturating_add(summary.times.wire_ns);
    let is_large = |part: u64, whole: u64| u128::from(part) * 100 >= u128::from(whole) * SEVERE_PERCENT;
    if !report.is_worth_doing() {
        Style::dim
    } else if is_large(finding.avoidable, summary.trips.total) || is_large(finding.waited_ns, waited_all) {
        Style::bad
    } else {
        Style::mark
    }
}

fn show_one(finding: &Finding, head: &Head, paint: Paint, page: &mut Page) {
    show_head(finding, head, paint, page);
    if let Some(statement) = finding.statements.first() {
        page.labelled_within(INDENT, "what ", statement_text(statement), 2);
    }
    page.labelled_within(INDENT, "proof", &proof(finding), 3);
    let lines = lines(finding);
    if !lines.is_empty() {
        page.labelled_within(INDENT, "line ", &lines.join("; "), 3);
    }
    let scopes: Vec<String> = finding.scopes.iter().map(|label| scope_name(label)).collect();
    if !scopes.is_empty() {
        page.labelled_within(INDENT, "where", &scopes.join(", "), 2);
    }
    let fix = match finding.driver {
        Driver::UNKNOWN => finding.fix.clone(),
        driver => format!("{}: {}", driver.name(), finding.fix),
    };
    page.labelled(INDENT, "fix  ", &fix);
    if let Some(fate) = fate(finding) {
        page.labelled_within(INDENT, "left ", &fate, 3);
    }
    if let Some(remedy) = remedy(finding) {
        page.labelled(INDENT, "or   ", &remedy);
    }
}

fn show_head(finding: &Finding, head: &Head, paint: Paint, page: &mut Page) {
    let style = page.style;
    let (code, title) = (finding.code.as_str(), finding.code.title());
    let (avoidable, trips) = (count(finding.avoidable), count(finding.trips));
    let waited = duration(finding.waited_ns);
    if head.width() > page.width {
        let priced = head
            .price
            .map_or(String::new(), |(_, rtt)| format!(", {} at {}", price(finding, rtt), duration(rtt)));
        let sentence = format!("{title}: {avoidable} of {trips} trips avoidable, {waited} waited{priced}");
        return page.painted(2, (code, paint), &sentence, usize::MAX);
    }
    let title = style.bold(&format!("{title:<0$}", head.title));
    let trips = format!("{avoidable:>0$} of {trips:>1$} trips avoidable", head.avoidable, head.trips);
    let priced = head.price.map_or(String::new(), |(width, rtt)| {
        format!("   {:>width$} at {}", price(finding, rtt), duration(rtt))
    });
    page.line(format!(
        "  {}  {title}   {trips}   {waited:>1$} waited{priced}",
        paint(style, code),
        head.waited
    ));
}
