//! Columns of numbers, then a text that takes the rest of the line.

use super::Style;
use crate::clean::{width, wrap};
use crate::columns::{Align, Columns};

const INDENT: &str = "  ";
const GAP: &str = "   ";
/// Columns that the text has at least; where it has fewer, the last numbers are left out.
const TEXT_MIN: usize = 16;

/// A table whose last column is text of at most two lines.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) columns: &'a [&'a str],
    pub(super) text: &'a str,
    pub(super) rows: Vec<(Vec<String>, String)>,
}

impl Table<'_> {
    /// The lines, head first, none longer than so many columns.
    pub(super) fn lines(&self, style: Style, line_max: usize) -> Vec<String> {
        let fits = |starts: &[String]| starts.first().is_none_or(|head| width(head) + TEXT_MIN <= line_max);
        let mut starts = (1..=self.columns.len()).rev().map(|shown| self.starts(shown));
        let starts = starts.find(|starts| fits(starts)).unwrap_or_else(|| self.starts(1));
        let mut starts = starts.into_iter();
        let head = starts.next().unwrap_or_default();
        let before = width(&head);
        let room = line_max.saturating_sub(before).max(1);
        let mut lines = vec![style.dim(&format!("{head}{}", self.text))];
        for (mut start, (_, text)) in starts.zip(&self.rows) {
            for piece in wrap(text, room, 2) {
                lines.push(format!("{start}{piece}").trim_end().to_owned());
                start = " ".repeat(before);
            }
        }
        lines
    }

    /// What stands before the text in each line, head first: so many of the columns of numbers.
    fn starts(&self, shown: usize) -> Vec<String> {
        let columns = &self.columns[..shown];
        let mut numbers = columns.iter().fold(Columns::new(GAP), |all, _| all.column(Align::Right, 0));
        numbers.row(columns.iter().copied());
        self.rows.iter().for_each(|(cells, _)| numbers.row(cells.iter().take(shown).map(String::as_str)));
        numbers.lines().into_iter().map(|line| format!("{INDENT}{line}{GAP}")).collect()
    }
}
