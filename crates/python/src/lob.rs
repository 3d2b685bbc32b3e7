//! Large objects, read and written in pieces that travel together.

use std::io::Write;
use std::sync::Mutex;

use onetrip_client::blocking::{Client, Lob, LobSource};
use onetrip_client::core::Prefetch;
use onetrip_client::{Error, Oid, TransactionStatus};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::misuse;
use crate::session::{Session, locked};

/// A large object of which some has been fetched.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Object {
    lob: Mutex<Lob<'static>>,
}

#[pymethods]
impl Object {
    /// Its length in bytes, where it is known.
    #[getter]
    fn length(&self) -> Option<u64> {
        locked(&self.lob).length()
    }

    /// Bytes of memory that it takes.
    #[getter]
    fn memory(&self) -> usize {
        locked(&self.lob).memory()
    }

    /// The next bytes, at most so many; fewer at the end only.
    fn read<'py>(&self, py: Python<'py>, session: &Session, most: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = session.with(py, |client| read(client, &mut locked(&self.lob), most))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

fn read(client: &mut Client, lob: &mut Lob<'static>, most: usize) -> Result<Vec<u8>, Error> {
    let mut reader = client.read_lob(lob);
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let next = reader.fill()?;
        let count = next.len().min(most - bytes.len());
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&next[..count]);
        reader.consume(count);
    }
    Ok(bytes)
}

/// Fetches what is wanted of large objects in one trip; `prefetch` is -1, 0, a number of bytes, or None for auto.
#[pyfunction]
pub(crate) fn prefetch(
    py: Python<'_>,
    session: &Session,
    oids: Vec<Oid>,
    prefetch: Option<i64>,
    begins: bool,
) -> PyResult<Vec<Object>> {
    let level = match prefetch.map(Prefetch::from_number) {
        None => Prefetch::Auto,
        Some(Some(level)) => level,
        Some(None) => return Err(misuse(py, "usage", "prefetch is -1, 0, a number of bytes or None")),
    };
    let sources: Vec<(LobSource<'static>, Option<Prefetch>)> =
        oids.into_iter().map(|oid| (LobSource::Object(oid), None)).collect();
    let lobs = session.with(py, |client| {
        begin(client, begins)?;
        client.prefetch(&sources, Some(level))
    })?;
    Ok(lobs.into_iter().map(|lob| Object { lob: Mutex::new(lob) }).collect())
}

/// Makes a large object of bytes; its id.
#[pyfunction]
pub(crate) fn create_object(py: Python<'_>, session: &Session, data: &[u8], begins: bool) -> PyResult<Oid> {
    session.with(py, |client| {
        begin(client, begins)?;
        let oid = client.create_large_object()?;
        write(client, oid, 0, data).map(|()| oid)
    })
}

/// Writes into a large object from a position on.
#[pyfunction]
pub(crate) fn write_object(
    py: Python<'_>,
    session: &Session,
    oid: Oid,
    position: u64,
    data: &[u8],
    begins: bool,
) -> PyResult<()> {
    session.with(py, |client| {
        begin(client, begins)?;
        write(client, oid, position, data)
    })
}

fn begin(client: &mut Client, begins: bool) -> Result<(), Error> {
    if begins && client.transaction_status() == TransactionStatus::Idle { client.begin() } else { Ok(()) }
}

fn write(client: &mut Client, oid: Oid, position: u64, data: &[u8]) -> Result<(), Error> {
    let mut writer = client.write_large_object(oid, position)?;
    // What fails here shows in `finish`, with the server's reason.
    let _ = writer.write_all(data);
    writer.finish().map(drop)
}
