//! Results as buffers of columns, for NumPy.

use onetrip_client::{Place, ResultSet};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::batch::{Batch, Column, Field, Kind};

/// Name, length, NULLs, validity and data of a column.
pub(crate) type Buffers<'py> = (&'static str, usize, usize, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// The rows from a place on, by columns whose values have one width; `None` for others.
pub(crate) fn columns<'py>(
    py: Python<'py>,
    rows: &ResultSet,
    mut place: Place,
) -> PyResult<Vec<Option<Buffers<'py>>>> {
    let has_width = |kind: Kind| !matches!(kind, Kind::Text | Kind::Bytes | Kind::Time | Kind::Uuid);
    let mut fields = Field::of(rows.columns(), rows.format());
    for field in &mut fields {
        field.kind = Kind::of(&field.ty).filter(|kind| has_width(*kind)).unwrap_or(Kind::Null);
    }
    let mut batch = Batch::empty(&fields.into());
    batch.reserve(rows.len() - place.row(), usize::MAX);
    batch.add(py, rows, &mut place, usize::MAX, usize::MAX)?;
    let buffers = |column: &Column| {
        let (name, length, nulls, validity, data) = column.parts();
        (column.kind != Kind::Null)
            .then(|| (name, length, nulls, PyBytes::new(py, validity), PyBytes::new(py, data)))
    };
    Ok(batch.columns.iter().map(buffers).collect())
}
