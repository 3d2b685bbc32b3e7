//! Text in columns, for terminals.

use crate::clean::width;

/// Where a text stands in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Names.
    Left,
    /// Numbers.
    Right,
}

/// A table of short texts. Each column is as wide as its widest text, and a cell may span several columns.
#[derive(Debug, Clone)]
pub struct Columns {
    gap: &'static str,
    columns: Vec<(Align, usize)>,
    rows: Vec<Vec<(String, usize)>>,
}

impl Columns {
    /// No columns yet; `gap` will stand between them.
    pub fn new(gap: &'static str) -> Self {
        Self { gap, columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column that is at least so wide, in columns of a terminal.
    #[must_use]
    pub fn column(mut self, align: Align, width_min: usize) -> Self {
        self.columns.push((align, width_min));
        self
    }

    /// Adds a row of one text for each column; those that are left out are empty.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.row_of_spans(cells.into_iter().map(|cell| (cell, 1)));
    }

    /// Adds a row of texts that span so many columns each. A text stands in its span as in the span's last column.
    pub fn row_of_spans<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = (T, usize)>) {
        self.rows.push(cells.into_iter().map(|(cell, span)| (cell.into(), span.max(1))).collect());
    }

    /// The rows, all filled up with blanks to the width of the table.
    pub fn lines(&self) -> Vec<String> {
        let widths = self.widths();
        self.rows.iter().map(|row| self.line(row, &widths)).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(|(_, width_min)| *width_min).collect();
        // Those that span several columns last: they only need what the others leave.
        for is_spanning in [false, true] {
            for row in &self.rows {
                let mut first = 0;
                for (text, span) in row {
                    let end = (first + span).min(widths.len());
                    if (*span > 1) == is_spanning && first < end {
                        let missing = width(text).saturating_sub(self.room(&widths[first..end]));
                        widths[end - 1] += missing;
                    }
                    first = end;
                }
            }
        }
        widths
    }

    /// Room in neighbouring columns of these widths.
    fn room(&self, widths: &[usize]) -> usize {
        widths.iter().sum::<usize>() + width(self.gap) * widths.len().saturating_sub(1)
    }

    fn line(&self, row: &[(String, usize)], widths: &[usize]) -> String {
        let mut line = String::new();
        let mut cells = row.iter();
        let mut first = 0;
        while first < widths.len() {
            let (text, span) = cells.next().map_or(("", 1), |(text, span)| (text.as_str(), *span));
            let end = (first + span).min(widths.len());
            if first > 0 {
                line.push_str(self.gap);
            }
            let blanks = " ".repeat(self.room(&widths[first..end]).saturating_sub(width(text)));
            match self.columns[end - 1].0 {
                Align::Left => line.extend([text, &blanks]),
                Align::Right => line.extend([&blanks, text]),
            }
            first = end;
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let mut table = Columns::new("  ").column(Align::Left, 0).column(Align::Right, 5);
        table.row(["way", "trips"]);
        table.row(["one by one", "12 µs"]);
        table.row(["all"]);
        assert_eq!(table.lines(), ["way         trips", "one by one  12 µs", "all              "]);
    }

    #[test]
    fn a_text_over_several_columns_ends_where_the_last_one_ends() {
        let mut table =
            Columns::new(" ").column(Align::Left, 0).column(Align::Right, 0).column(Align::Right, 0);
        table.row_of_spans([("", 1), ("far away", 2)]);
        table.row(["a", "1", "22"]);
        assert_eq!(table.lines(), ["  far away", "a 1     22"]);
    }
}
