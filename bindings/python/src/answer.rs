//! The result of one statement.

use onetrip_client::{Done, Format, Place, ResultSet, Row};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::adapters::Functions;
use crate::arrow::{self, Buffers};
use crate::collected;
use crate::encoding::Checked;
use crate::errors::misuse;
use crate::loading::{Loaded, LoadedBinary, Loader, Session, any_needs_session};

/// Name, type id, type name, type modifier and size of a column.
type ColumnParts<'a> = (&'a str, u32, &'a str, i32, i16);

/// What a statement did, and its rows; values are made when they are asked for.
#[pyclass(module = "onetrip._native")]
pub(crate) struct Answer {
    done: Done,
    /// Whether its text is in no encoding that anybody knows: then it stays bytes.
    is_raw: bool,
    loaders: Vec<Loader>,
    /// Whether the collector of cycles has nothing to look for in a row.
    is_plain: bool,
    place: Place,
    /// Whether rows were given out as Arrow, and are gone.
    is_released: bool,
}

impl Answer {
    /// Wraps what a statement did.
    /// `session` tells the session's settings, where the rows' types depend on them.
    pub(crate) fn new(
        Checked { done, is_raw }: Checked,
        own: &Functions<'_, '_>,
        session: impl FnOnce() -> PyResult<Session>,
    ) -> PyResult<Self> {
        let (loaders, place) = (Vec::new(), Place::default());
        let mut made = Self { done, is_raw, loaders, is_plain: true, place, is_released: false };
        made.load_by(own, session)?;
        Ok(made)
    }

    /// Makes values by these functions from now on.
    pub(crate) fn load_by(
        &mut self,
        own: &Functions<'_, '_>,
        session: impl FnOnce() -> PyResult<Session>,
    ) -> PyResult<()> {
        let Some(rows) = &self.done.rows else { return Ok(()) };
        let py = own.texts.py();
        let types = || rows.columns().iter().map(|column| &column.ty);
        let mut session = if any_needs_session(types()) { session()? } else { Session::default() };
        session.is_raw = self.is_raw;
        let loader = |ty| match rows.format() {
            Format::Text => Loader::of(py, ty, own.texts, &session),
            Format::Binary => Loader::of_binary(py, ty, own, &session),
        };
        self.loaders = types().map(loader).collect::<PyResult<_>>()?;
        self.is_plain = self.loaders.iter().all(Loader::is_plain);
        Ok(())
    }

    #[inline]
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(rows) = &self.done.rows else { return Ok(None) };
        let Some(row) = rows.next_row(&mut self.place) else { return Ok(None) };
        let made = tuple(py, row, &self.loaders)?;
        if self.is_plain {
            collected::leave_out(&made);
        }
        Ok(Some(made))
    }

    /// The rows, of a statement that returns some.
    pub(crate) fn rows(&self) -> Option<&ResultSet> {
        self.done.rows.as_deref()
    }

    /// Where the next row stands.
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Leaves the rows that are left to somebody else: where they begin.
    pub(crate) fn leave(&mut self) -> Place {
        let end = self.rows().map(ResultSet::end).unwrap_or_default();
        std::mem::replace(&mut self.place, end)
    }

    /// Gives back the memory of rows before a place, which are not read again.
    pub(crate) fn release(&mut self, until: Place) {
        self.is_released = true;
        if let Some(rows) = &mut self.done.rows {
            rows.release(until);
        }
    }

    fn left(&self) -> usize {
        self.done.rows.as_ref().map_or(0, |rows| rows.len() - self.place.row())
    }
}

/// A row whose values are made as they are put into it.
#[inline]
fn tuple<'py>(py: Python<'py>, row: Row<'_>, loaders: &[Loader]) -> PyResult<Bound<'py, PyTuple>> {
    let mut values = row.values();
    if row.format() == Format::Binary {
        let columns = loaders.iter().zip(row.columns().iter());
        let value = |(loader, column): (_, &'_ onetrip_client::Column)| match values.next() {
            Some(value) => LoadedBinary(loader, &column.ty, value).into_pyobject(py),
            None => LoadedBinary(&Loader::Missing, &column.ty, Some(b"")).into_pyobject(py),
        };
        let made: Vec<Bound<'_, PyAny>> = columns.map(value).collect::<PyResult<_>>()?;
        return PyTuple::new(py, made);
    }
    let value = |loader| match values.next() {
        Some(value) => Loaded(loader, value),
        None => Loaded(&Loader::Missing, Some(b"")),
    };
    PyTuple::new(py, loaders.iter().map(value))
}

/// A row that was made as a list is: it goes straight into that. There is none where the rows are fewer than their number.
struct Made<'py>(PyResult<Option<Bound<'py, PyTuple>>>);

impl<'py> IntoPyObject<'py> for Made<'py> {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    #[inline]
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.0?.ok_or_else(|| misuse(py, "operational", "a result has fewer rows than were counted"))
    }
}

#[pymethods]
impl Answer {
    /// The command tag, as the server words it.
    #[getter]
    fn tag(&self) -> &str {
        self.done.tag.as_str()
    }

    /// Rows that were returned or changed; -1 for a statement that counts none.
    #[getter]
    fn count(&self) -> i64 {
        let counted = self.tag().ends_with(|sign: char| sign.is_ascii_digit());
        match &self.done.rows {
            _ if counted => i64::try_from(self.done.count()).unwrap_or(i64::MAX),
            // SHOW and EXPLAIN return rows that their tags do not count.
            Some(rows) if !self.done.has_more => i64::try_from(rows.len()).unwrap_or(i64::MAX),
            _ => -1,
        }
    }

    /// Name, type id, type name, type modifier and size of each column; `None` for a statement without rows.
    #[getter]
    fn columns(&self) -> Option<Vec<ColumnParts<'_>>> {
        let rows = self.done.rows.as_ref()?;
        let columns = rows.columns().iter();
        Some(
            columns
                .map(|column| {
                    let ty = &column.ty;
                    (&*column.name, ty.oid(), ty.name(), column.type_modifier, column.type_len)
                })
                .collect(),
        )
    }

    /// How many rows were read.
    #[getter]
    fn at(&self) -> usize {
        self.place.row()
    }

    fn __len__(&self) -> usize {
        self.done.rows.as_ref().map_or(0, |rows| rows.len())
    }

    /// The next row, or None.
    fn one<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.next(py)
    }

    /// Whether values came in their types' binary form.
    #[getter]
    fn is_binary(&self) -> bool {
        self.done.rows.as_ref().is_some_and(|rows| rows.format() == Format::Binary)
    }

    /// At most so many of the next rows.
    fn many<'py>(&mut self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyList>> {
        let count = most.min(self.left());
        PyList::new(py, (0..count).map(|_| Made(self.next(py))))
    }

    /// The rows that are left, by columns, as buffers of Arrow's; `None` for a column whose values have no one width.
    fn buffers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Option<Buffers<'py>>>> {
        match &self.done.rows {
            Some(rows) => arrow::columns(py, rows, self.place),
            None => Ok(Vec::new()),
        }
    }

    /// The rows that are left, by columns, as lists of values; `None` for a column that is not wanted.
    fn lists<'py>(&self, py: Python<'py>, wanted: Vec<bool>) -> PyResult<Vec<Option<Bound<'py, PyList>>>> {
        let Some(rows) = &self.done.rows else { return Ok(Vec::new()) };
        let mut lists: Vec<Option<Vec<Bound<'py, PyAny>>>> =
            wanted.into_iter().map(|is_wanted| is_wanted.then(|| Vec::with_capacity(self.left()))).collect();
        let last = lists.iter().rposition(Option::is_some).map_or(0, |at| at + 1);
        let mut place = self.place;
        while let Some(row) = rows.next_row(&mut place) {
            let mut values = row.values();
            for ((list, loader), column) in
                lists[..last].iter_mut().zip(&self.loaders).zip(row.columns().iter())
            {
                let value = values.next();
                let Some(list) = list else { continue };
                list.push(match (value, row.format()) {
                    (None, _) => Loaded(&Loader::Missing, Some(b"")).into_pyobject(py)?,
                    (Some(value), Format::Text) => Loaded(loader, value).into_pyobject(py)?,
                    (Some(value), Format::Binary) => {
                        LoadedBinary(loader, &column.ty, value).into_pyobject(py)?
                    }
                });
            }
        }
        lists.into_iter().map(|list| list.map(|list| PyList::new(py, list)).transpose()).collect()
    }

    /// Whether rows were given out as Arrow, and cannot be gone back to.
    #[getter]
    fn is_released(&self) -> bool {
        self.is_released
    }

    /// Goes to where so many rows were read.
    fn seek(&mut self, py: Python<'_>, row: usize) -> PyResult<()> {
        let rows: Option<&ResultSet> = self.done.rows.as_deref();
        if row < self.place.row() {
            if self.is_released {
                let problem = "the rows were given out as Arrow, and are not kept: run the statement again";
                return Err(misuse(py, "usage", problem));
            }
            self.place = Place::default();
        }
        while self.place.row() < row {
            if rows.and_then(|rows| rows.next_row(&mut self.place)).is_none() {
                break;
            }
        }
        Ok(())
    }
}
