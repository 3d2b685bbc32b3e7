//! Budgets, and what differs from an earlier run.

use onetrip_ledger::budget::Verdict;
use onetrip_ledger::compare::Change;
use onetrip_ledger::{Code, Summary};

use super::{Page, ROWS_MAX, Table, scope_name};
use crate::Report;
use crate::clean::{clean, wrap};
use crate::number::{count, difference, percent};

pub(super) fn show_budgets(report: &Report<'_>, page: &mut Page) {
    if report.verdicts.is_empty() && report.fail_on.is_empty() {
        return;
    }
    page.heading("Budgets");
    for verdict in report.verdicts {
        show_rule(page, verdict.kept, &judgement(verdict, report.summary));
    }
    for code in report.fail_on {
        let found = report.finds(*code);
        let what = if found { "found" } else { "not found" };
        show_rule(page, !found, &format!("{code} {}: {what}", code.title()));
    }
}

/// A budget and what was counted, as a sentence.
pub(crate) fn judgement(verdict: &Verdict, summary: &Summary) -> String {
    let counted = count(verdict.counted);
    let counted = match verdict.measure.parse::<Code>() {
        Ok(code) => format!("{counted} avoidable trips of {code} {}", code.title()),
        Err(_) => format!("{counted} {}", clean(&verdict.measure).replace('-', " ")),
    };
    let scope = verdict.scope.as_ref().map(|scope| format!(" in {}", scope_name(scope))).unwrap_or_default();
    let lost = match (verdict.kept, summary.lost_bytes) {
        (false, 1..) => ", and records were lost",
        _ => "",
    };
    format!("{counted}{scope}, {} allowed{lost}", count(verdict.most))
}

fn show_rule(page: &mut Page, kept: bool, text: &str) {
    let style = page.style;
    let verdict = if kept { style.good("kept  ") } else { style.bad("BROKEN") };
    let mut lead = format!("  {verdict}  ");
    for line in wrap(text, super::LINE_MAX - 10, 2) {
        page.line(format!("{lead}{line}"));
        lead = " ".repeat(10);
    }
}

pub(super) fn show_comparison(report: &Report<'_>, page: &mut Page) {
    let Some(comparison) = report.comparison else { return };
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
