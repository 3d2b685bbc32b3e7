//! The report for a pull request, in GitHub's Markdown. Strangers' text appears only in code spans, in which nothing
//! is a link, a mention or markup.

use onetrip_ledger::judge::compare::Change;
use onetrip_ledger::judge::{Comparison, Ruling};
use onetrip_ledger::{Finding, ScopeTotals};

use crate::Report;
use crate::clean::{clean, cut, scope_name};
use crate::number::{count, difference, duration};
use crate::text::doubts;
use crate::verdict::{sentence, word};

/// Rows of a table.
const ROWS_MAX: usize = 20;
/// Columns of a statement.
const STATEMENT_MAX: usize = 160;

/// The report as Markdown for a pull request: verdicts, tests or scopes, findings, what changed.
pub fn markdown(report: &Report<'_>) -> String {
    let mut page = vec![format!("### onetrip: {}", title(report)), plain(&report.headline())];
    let doubts = doubts(report);
    if !doubts.is_empty() {
        page.push(doubts.iter().map(|doubt| format!("- {}\n", plain(doubt))).collect());
    }
    page.extend(verdicts(report));
    page.extend(report.comparison().map(changes));
    if report.summary.sessions > 0 {
        page.extend(scopes(report));
        page.extend(findings(&report.summary.findings));
    }
    let parts: Vec<&str> = page.iter().map(|part| part.trim_end()).collect();
    parts.join("\n\n") + "\n"
}

fn title(report: &Report<'_>) -> &'static str {
    match report.ruling() {
        Ruling::Failed => "a check failed",
        Ruling::Unjudged => "could not be judged",
        Ruling::Passed if report.verdicts().is_empty() => "round trips",
        Ruling::Passed => "all checks passed",
    }
}

fn verdicts(report: &Report<'_>) -> Option<String> {
    let verdicts = report.worst_first();
    let rows = verdicts.iter().map(|verdict| {
        let word = word(verdict.ruling);
        let word = if verdict.ruling == Ruling::Passed { word.to_owned() } else { format!("**{word}**") };
        vec![word, code(&sentence(verdict))]
    });
    table(&["", "check"], 0, rows.collect(), "checks")
}

fn scopes(report: &Report<'_>) -> Option<String> {
    let scopes = &report.summary.scopes;
    if scopes.len() < 2 && !report.is_of_tests() {
        return None;
    }
    let has_requests = scopes.iter().any(|scope| scope.requests > 0);
    let row = |scope: &ScopeTotals| {
        let mut cells = vec![count(scope.trips), count(scope.statements), duration(scope.waited_ns)];
        if has_requests {
            let number = |number| if scope.requests > 0 { count(number) } else { String::new() };
            cells.extend([scope.requests, scope.request_trips_median, scope.request_trips_max].map(number));
        }
        cells.push(code(&cut(&scope_name(&scope.label), STATEMENT_MAX)));
        cells
    };
    let (what, many) = if report.is_of_tests() { ("test", "tests") } else { ("scope", "scopes") };
    let columns: &[&str] = if has_requests {
        &["trips", "statements", "waited", "requests", "median", "most", what]
    } else {
        &["trips", "statements", "waited", what]
    };
    table(columns, columns.len() - 1, scopes.iter().map(row).collect(), many)
}

fn findings(findings: &[Finding]) -> Option<String> {
    let row = |finding: &Finding| {
        let statement =
            finding.statements.first().map_or(String::new(), |text| code(&cut(text, STATEMENT_MAX)));
        vec![
            count(finding.avoidable),
            duration(finding.waited_ns),
            format!("{} {}", finding.code, plain(finding.code.title())),
            statement,
            plain(&clean(&finding.fix)),
        ]
    };
    table(
        &["avoidable", "waited", "finding", "statement", "fix"],
        2,
        findings.iter().map(row).collect(),
        "findings",
    )
}

fn changes(comparison: &Comparison) -> String {
    let trips = comparison.trips;
    let lead = match trips.difference() {
        0 => format!("Compared with the earlier run: {} trips as before.", count(trips.now)),
        more => format!(
            "Compared with the earlier run: {} → {} trips ({}).",
            count(trips.before),
            count(trips.now),
            difference(more)
        ),
    };
    let row = |change: &Change, text: String| {
        vec![count(change.before), count(change.now), difference(change.difference()), text]
    };
    let finding = |(found, statement, change): &(onetrip_ledger::Code, String, Change)| {
        let statement =
            if statement.is_empty() { String::new() } else { code(&cut(statement, STATEMENT_MAX)) };
        row(change, format!("avoidable: {found} {statement}").trim_end().to_owned())
    };
    let rows = comparison.findings.iter().map(finding);
    let statements = comparison.statements.iter();
    let statements = statements.map(|(text, change)| row(change, code(&cut(text, STATEMENT_MAX))));
    match table(&["before", "now", "change", "what"], 3, rows.chain(statements).collect(), "changes") {
        Some(table) => format!("{lead}\n\n{table}"),
        None => lead,
    }
}

/// A table whose first `numbers` columns are numbers; `None` without rows.
fn table(columns: &[&str], numbers: usize, rows: Vec<Vec<String>>, what: &str) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rules: Vec<String> =
        (0..columns.len()).map(|column| if column < numbers { "--:" } else { "---" }.to_owned()).collect();
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let mut table = line(&head) + &line(&rules);
    rows.iter().take(ROWS_MAX).for_each(|row| table.push_str(&line(row)));
    if rows.len() > ROWS_MAX {
        table.push_str(&format!("\n… and {} more {what}\n", count((rows.len() - ROWS_MAX) as u64)));
    }
    Some(table)
}

/// Text in a code span: its fence is longer than any run of backticks inside.
fn code(text: &str) -> String {
    let text = clean(text).replace('|', "\\|");
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Text without markup.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in clean(text).chars() {
        match character {
            // An escaped one would still mention people.
            '@' => plain.push_str("<code>@</code>"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '$' => plain.extend(['\\', character]),
            // What looks like an address would become a link.
            ':' if plain.ends_with("http") || plain.ends_with("https") => plain.push_str("<code>:</code>"),
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_text_is_neither_markup_nor_a_mention() {
        assert_eq!(code("a `b` ``c"), "```a `b` ``c```");
        assert_eq!(code("`x|y`"), "`` `x\\|y` ``");
        assert_eq!(code("two\nlines\u{1b}[1m"), "`two lines\\u{1b}[1m`");
        assert_eq!(plain("@all <b> [x](y) #1"), "<code>@</code>all &lt;b&gt; \\[x\\](y) \\#1");
        assert_eq!(plain("see http://x"), "see http<code>:</code>//x");
    }
}
