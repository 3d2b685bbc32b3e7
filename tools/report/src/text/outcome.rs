//! Budgets, and what differs from an earlier run.

use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Ruling, Verdict};

use super::{Page, ROWS_MAX, Table};
use crate::Report;
use crate::clean::wrap;
use crate::number::{count, difference, percent};
use crate::verdict::sentence;

/// Verdicts listed, unless more did not pass.
const VERDICTS_MAX: usize = 20;

pub(super) fn show_budgets(report: &Report<'_>, page: &mut Page) {
    if report.verdicts().is_empty() {
        return;
    }
    page.heading("Checks");
    // What is wrong comes first; of a long list of what passed the end is left out.
    let verdicts = report.worst_first();
    let wrong = verdicts.iter().filter(|verdict| verdict.ruling != Ruling::Passed).count();
    let shown = verdicts.len().min(wrong.max(VERDICTS_MAX));
    for verdict in &verdicts[..shown] {
        show_rule(page, verdict);
    }
    page.left_out(shown, verdicts.len(), "that passed");
}

fn show_rule(page: &mut Page, verdict: &Verdict) {
    let style = page.style;
    let word = match verdict.ruling {
        Ruling::Passed => style.good("passed  "),
        Ruling::Unjudged => style.bad("UNJUDGED"),
        Ruling::Failed => style.bad("FAILED  "),
    };
    let mut lead = format!("  {word}  ");
    for line in wrap(&sentence(verdict), page.width - 12, 3) {
        page.line(format!("{lead}{line}"));
        lead = " ".repeat(12);
    }
}

pub(super) fn show_comparison(report: &Report<'_>, page: &mut Page) {
    let Some(comparison) = report.comparison() else { return };
    let trips = comparison.trips;
    let share = match trips.before {
        0 => String::new(),
        before => format!(", {}", percent(trips.difference().unsigned_abs(), before)),
    };
    page.heading(&match trips.difference() {
        0 => format!("Compared with the earlier run: {} trips as before", count(trips.now)),
        more => format!(
            "Compared with the earlier run: {} → {} trips ({}{share} {})",
            count(trips.before),
            count(trips.now),
            difference(more),
            if more < 0 { "fewer" } else { "more" }
        ),
    });
    let findings = comparison.findings.iter().map(|(code, statement, change)| {
        (*change, format!("{code} {}: {statement}", code.title()).trim_end_matches(": ").to_owned())
    });
    let statements = comparison.statements.iter().map(|(text, change)| (*change, text.clone()));
    let (findings, statements): (Vec<_>, Vec<_>) = (findings.collect(), statements.collect());
    for (title, is_better) in [("Better", true), ("Worse", false)] {
        let of_side = |changes: &[(Change, String)]| -> Vec<(Change, String)> {
            changes.iter().filter(|(change, _)| (change.difference() < 0) == is_better).cloned().collect()
        };
        show_changes(page, &format!("{title}: avoidable trips"), "finding", of_side(&findings));
        show_changes(page, &format!("{title}: trips"), "statement", of_side(&statements));
    }
}

fn show_changes(page: &mut Page, title: &str, what: &str, changes: Vec<(Change, String)>) {
    if changes.is_empty() {
        return;
    }
    let all = changes.len();
    page.heading(title);
    let rows = changes.into_iter().take(ROWS_MAX).map(|(change, text)| {
        (vec![count(change.before), count(change.now), difference(change.difference())], text)
    });
    page.table(&Table { columns: &["before", "now", "change"], text: what, rows: rows.collect() });
    page.left_out(ROWS_MAX, all, &format!("{what}s"));
}
