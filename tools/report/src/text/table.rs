//! Columns of numbers, then a text that takes the rest of the line.

use super::{LINE_MAX, Style};
use crate::clean::{width, wrap};
use crate::columns::{Align, Columns};

const INDENT: &str = "  ";
const GAP: &str = "   ";

/// A table whose last column is text of at most two lines.
#[derive(Debug)]
pub(super) struct Table<'a> {
    pub(super) columns: &'a [&'a str],
    pub(super) text: &'a str,
    pub(super) rows: Vec<(Vec<String>, String)>,
}

impl Table<'_> {
    /// The lines, head first.
    pub(super) fn lines(&self, style: Style) -> Vec<String> {
        let mut numbers = self.columns.iter().fold(Columns::new(GAP), |all, _| all.column(Align::Right, 0));
        numbers.row(self.columns.iter().copied());
        self.rows.iter().for_each(|(cells, _)| numbers.row(cells.iter().map(String::as_str)));
        let mut starts = numbers.lines().into_iter().map(|line| format!("{INDENT}{line}{GAP}"));
        let head = starts.next().unwrap_or_default();
        let before = width(&head);
        let room = LINE_MAX.saturating_sub(before).max(1);
        let mut lines = vec![style.dim(&format!("{head}{}", self.text))];
        for (mut start, (_, text)) in starts.zip(&self.rows) {
            for piece in wrap(text, room, 2) {
                lines.push(format!("{start}{piece}").trim_end().to_owned());
                start = " ".repeat(before);
            }
        }
        lines
    }
}
