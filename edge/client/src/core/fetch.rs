//! How many rows to ask for at once.

use std::num::NonZeroU32;

/// Rows of the first part of an automatic fetch, when nothing is known about them yet.
const FIRST_ROWS: u32 = 500;

/// How many rows a cursor fetches at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fetch {
    /// So many, and no more before they are asked for.
    Rows(NonZeroU32),
    /// As many as fit into the memory for reading ahead, once the first part has told how large they are; the next part
    /// is on its way while one is read.
    #[default]
    Auto,
}

/// The parts of one cursor.
#[derive(Debug, Clone)]
pub struct Window {
    fetch: Fetch,
    rows: u64,
    bytes: u64,
}

impl Window {
    /// Before the first part.
    pub fn new(fetch: Fetch) -> Self {
        Self { fetch, rows: 0, bytes: 0 }
    }

    /// How many rows to ask for next, within `room` bytes for what is being read and what is on its way.
    pub fn next_rows(&self, room: usize) -> Option<NonZeroU32> {
        match self.fetch {
            Fetch::Rows(rows) => Some(rows),
            Fetch::Auto if self.rows == 0 => NonZeroU32::new(FIRST_ROWS),
            Fetch::Auto => {
                let row_bytes = (self.bytes / self.rows).max(1);
                let rows = u32::try_from(room as u64 / 2 / row_bytes).unwrap_or(u32::MAX);
                NonZeroU32::new(rows.clamp(1, i32::MAX as u32))
            }
        }
    }

    /// Whether the next part is asked for while one is read.
    pub fn reads_ahead(&self) -> bool {
        self.fetch == Fetch::Auto
    }

    /// A part came.
    pub fn came(&mut self, rows: usize, bytes: usize) {
        self.rows += rows as u64;
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_part_is_as_large_as_memory_allows() {
        let mut window = Window::new(Fetch::Auto);
        assert_eq!(window.next_rows(1 << 20).map(NonZeroU32::get), Some(FIRST_ROWS));
        window.came(500, 50_000);
        assert_eq!(window.next_rows(1 << 20).map(NonZeroU32::get), Some(5242));
        window.came(1, 100 << 20);
        assert_eq!(window.next_rows(1000).map(NonZeroU32::get), Some(1), "at least one row");
    }
}
