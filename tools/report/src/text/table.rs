//! Columns of numbers, then a text that takes the rest of the line.

use super::{LINE_MAX, Style};
use crate::clean::{width, wrap};

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
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, name)| {
                let cells = self.rows.iter().filter_map(|(cells, _)| cells.get(place));
                cells.map(|cell| width(cell)).fold(width(name), usize::max)
            })
            .collect();
        let numbers: usize = widths.iter().map(|width| width + GAP.len()).sum::<usize>() + INDENT.len();
        let room = LINE_MAX.saturating_sub(numbers).max(1);
        let heads: Vec<String> = self.columns.iter().map(|name| (*name).to_owned()).collect();
        let mut lines = vec![style.dim(&format!("{}{}", numbers_of(&heads, &widths), self.text))];
        for (cells, text) in &self.rows {
            let mut start = numbers_of(cells, &widths);
            for piece in wrap(text, room, 2) {
                lines.push(format!("{start}{piece}").trim_end().to_owned());
                start = " ".repeat(numbers);
            }
        }
        lines
    }
}

fn numbers_of(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::from(INDENT);
    for (cell, wide) in cells.iter().zip(widths) {
        line.push_str(&" ".repeat(wide.saturating_sub(width(cell))));
        line.push_str(cell);
        line.push_str(GAP);
    }
    line
}
