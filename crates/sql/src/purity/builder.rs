//! From rows of the catalogue query to a [`Catalogue`].

use super::catalogue::Catalogue;

/// Reads what users have added to a database: one statement without parameters, for PostgreSQL 12 to 18.
pub const CATALOGUE_QUERY: &str = include_str!("catalogue.sql");

/// Most rows of a catalogue. A database with more is not judged.
pub const CATALOGUE_ROWS_MAX: usize = 20_000;

/// Most bytes of a catalogue's columns.
pub const CATALOGUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why there is no catalogue; without one, every statement is unsafe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    /// The database holds more objects than are judged.
    #[error("the database has too many objects to judge")]
    TooLarge,
    /// A row is not one of [`CATALOGUE_QUERY`].
    #[error("a row of the catalogue query is malformed")]
    Malformed,
    /// A row that must be there never came.
    #[error("the catalogue query gave no {0}")]
    Missing(&'static str),
    /// The server's version is outside of 12 to 18.
    #[error("server version {0} is not known")]
    Version(u32),
}

/// Takes the rows of [`CATALOGUE_QUERY`] one by one.
#[derive(Debug, Default)]
pub struct CatalogueBuilder {
    catalogue: Catalogue,
    rows: usize,
    bytes: usize,
}

impl CatalogueBuilder {
    /// Takes one row, in text format; `None` is NULL.
    ///
    /// # Errors
    ///
    /// [`CatalogueError::TooLarge`] and [`CatalogueError::Malformed`]; the builder is of no use afterwards.
    pub fn row(&mut self, columns: &[Option<&[u8]>]) -> Result<(), CatalogueError> {
        self.rows += 1;
        self.bytes += columns.iter().flatten().map(|column| column.len()).sum::<usize>();
        if self.rows > CATALOGUE_ROWS_MAX || self.bytes > CATALOGUE_BYTES_MAX {
            return Err(CatalogueError::TooLarge);
        }
        Ok(())
    }

    /// All rows came.
    ///
    /// # Errors
    ///
    /// [`CatalogueError::Missing`] and [`CatalogueError::Version`].
    pub fn finish(self) -> Result<Catalogue, CatalogueError> {
        Ok(self.catalogue)
    }
}
