use crate::{ResultSet, Row};

/// A place in a result that is kept, for readers that cannot keep an iterator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    byte: usize,
    row: usize,
}

impl Place {
    /// How many rows stand before it.
    pub fn row(self) -> usize {
        self.row
    }
}

impl ResultSet {
    /// The place behind the last row.
    pub fn end(&self) -> Place {
        Place { byte: self.memory_used(), row: self.len() }
    }

    /// The row behind a place, which moves on behind it; `None` at the end.
    pub fn next_row(&self, place: &mut Place) -> Option<Row<'_>> {
        let row = self.row_at(&mut place.byte)?;
        place.row += 1;
        Some(row)
    }
}
