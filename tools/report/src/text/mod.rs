//! The report for a terminal.

mod distance;
mod findings;
pub(crate) mod network;
mod outcome;
mod overview;
mod paint;
pub(crate) mod sides;
mod table;

use onetrip_ledger::judge::Ruling;

use self::table::Table;
use crate::Report;
use crate::clean::{scope_name, statement_text, wrap};
use crate::number::{count, duration};

pub(crate) use distance::bandwidth;
pub(crate) use overview::{all_time, doubts, facts, parts};
pub use paint::{Screen, Style};

/// Statements, scopes and changes listed.
const ROWS_MAX: usize = 10;

/// How a label is painted.
type Paint = fn(Style, &str) -> String;

/// Lines under headings, with one empty line between sections.
#[derive(Debug, Default)]
struct Page {
    style: Style,
    /// No line is wider, in columns.
    width: usize,
    lines: Vec<String>,
}

/// The report for a terminal, no line wider than the screen (a style alone stands for 100 columns), with a line feed at
/// its end.
pub fn text(report: &Report<'_>, screen: impl Into<Screen>) -> String {
    let mut page = Page::new(screen.into());
    let style = page.style;
    page.paragraph(&report.headline(), |line| style.bold(line));
    let (summary, is_open) = (report.summary, report.summary.sessions > 0);
    if summary.trips.total == 0 && summary.connections == 0 {
        for line in report.how_to_connect.lines() {
            page.paragraph(line, str::to_owned);
        }
    }
    // What is wrong comes first, then what is worst.
    let is_passed = report.ruling() == Ruling::Passed;
    if !is_passed {
        outcome::show_budgets(report, &mut page);
    }
    overview::show(report, &mut page);
    if is_open {
        findings::show(report, &mut page);
        overview::show_times(summary, &mut page);
        if let Some(prices) = report.prices() {
            distance::show(prices, &mut page);
        }
        if let Some(network) = report.network {
            network::show(network, &mut page);
        }
        if let Some(sides) = report.sides {
            sides::show(sides, &mut page);
        }
        show_statements(report, &mut page);
        show_scopes(report, &mut page);
    }
    if is_passed {
        outcome::show_budgets(report, &mut page);
    }
    outcome::show_comparison(report, &mut page);
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

/// Only what it costs at other distances, for a terminal; empty without prices.
pub fn forecast_text(report: &Report<'_>, screen: impl Into<Screen>) -> String {
    let mut page = Page::new(screen.into());
    let style = page.style;
    page.paragraph(&report.headline(), |line| style.bold(line));
    if let Some(prices) = report.prices() {
        distance::show(prices, &mut page);
    }
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

impl Page {
    fn new(screen: Screen) -> Self {
        Self { style: screen.style, width: screen.width(), lines: Vec::new() }
    }

    /// Begins a section.
    fn heading(&mut self, text: &str) {
        let style = self.style;
        self.lines.push(String::new());
        self.paragraph(text, |line| style.bold(line));
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn table(&mut self, table: &Table<'_>) {
        self.lines.extend(table.lines(self.style, self.width));
    }

    /// Text in as many lines as it needs, each keeping the indentation of the first.
    fn paragraph(&mut self, text: &str, paint: impl Fn(&str) -> String) {
        let indent = text.chars().take_while(|character| *character == ' ').count().min(self.width / 2);
        for line in wrap(text, self.width - indent, usize::MAX) {
            let line = if line.is_empty() { line } else { format!("{}{}", " ".repeat(indent), paint(&line)) };
            self.lines.push(line);
        }
    }

    /// A label, then text in as many lines as it needs.
    fn labelled(&mut self, indent: usize, label: &str, text: &str) {
        self.labelled_within(indent, label, text, usize::MAX);
    }

    fn labelled_within(&mut self, indent: usize, label: &str, text: &str, lines_max: usize) {
        self.painted(indent, (label, Style::dim), text, lines_max);
    }

    fn painted(&mut self, indent: usize, label: (&str, Paint), text: &str, lines_max: usize) {
        let (label, paint) = label;
        let start = indent + crate::clean::width(label) + 2;
        let mut lead = format!("{}{}  ", " ".repeat(indent), paint(self.style, label));
        for line in wrap(text, self.width - start, lines_max) {
            self.lines.push(format!("{lead}{line}"));
            lead = " ".repeat(start);
        }
    }

    /// Says what a list leaves out.
    fn left_out(&mut self, shown: usize, all: usize, what: &str) {
        if all > shown {
            let style = self.style;
            let more = count((all - shown) as u64);
            self.paragraph(&format!("  … and {more} more {what}"), |line| style.dim(line));
        }
    }
}

fn show_statements(report: &Report<'_>, page: &mut Page) {
    let templates = &report.summary.templates;
    if templates.is_empty() {
        return;
    }
    page.heading("Statements, most trips first");
    let rows = templates.iter().take(ROWS_MAX).map(|template| {
        let numbers = vec![
            count(template.trips),
            count(template.executions),
            count(template.rows),
            duration(template.waited_ns),
        ];
        (numbers, statement_text(&template.text).to_owned())
    });
    page.table(&Table {
        columns: &["trips", "runs", "rows", "waited"],
        text: "statement",
        rows: rows.collect(),
    });
    page.left_out(ROWS_MAX, templates.len(), "statements");
}

fn show_scopes(report: &Report<'_>, page: &mut Page) {
    let scopes = &report.summary.scopes;
    if scopes.len() < 2 && !report.is_of_tests() {
        return;
    }
    let requests = scopes.iter().any(|scope| scope.requests > 0);
    page.heading(if report.is_of_tests() { "Tests, most trips first" } else { "Scopes, most trips first" });
    let rows = scopes.iter().take(ROWS_MAX).map(|scope| {
        let mut numbers = vec![count(scope.trips), count(scope.statements), duration(scope.waited_ns)];
        if requests {
            let each = format!("{}/{}", count(scope.request_trips_median), count(scope.request_trips_max));
            let of_requests = [count(scope.requests), each];
            numbers.extend(of_requests.map(|cell| if scope.requests > 0 { cell } else { String::new() }));
        }
        (numbers, scope_name(&scope.label))
    });
    let columns: &[&str] = if requests {
        &["trips", "statements", "waited", "requests", "median/most"]
    } else {
        &["trips", "statements", "waited"]
    };
    let (one, many) = if report.is_of_tests() { ("test", "tests") } else { ("scope", "scopes") };
    page.table(&Table { columns, text: one, rows: rows.collect() });
    page.left_out(ROWS_MAX, scopes.len(), many);
}
