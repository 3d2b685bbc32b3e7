//! A connection of the program's own, or one of a pool.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use onetrip_client::blocking::{Client, Pool, Pooled};
use pyo3::prelude::*;

use crate::conninfo::config;
use crate::errors::exception;
use crate::session::Session;

/// Who owns a session's connection.
pub(crate) enum Held {
    Own(Box<Client>),
    Pooled(Box<Pooled>),
}

impl Held {
    /// Ends the session, or gives the connection back.
    pub(crate) fn close(self) {
        match self {
            Self::Own(client) => client.close(),
            Self::Pooled(pooled) => drop(pooled),
        }
    }
}

impl Deref for Held {
    type Target = Client;

    fn deref(&self) -> &Client {
        match self {
            Self::Own(client) => client,
            Self::Pooled(pooled) => pooled,
        }
    }
}

impl DerefMut for Held {
    fn deref_mut(&mut self) -> &mut Client {
        match self {
            Self::Own(client) => client,
            Self::Pooled(pooled) => pooled,
        }
    }
}

/// Connections that are used in turn.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct ConnectionPool {
    pool: Pool,
}

#[pymethods]
impl ConnectionPool {
    /// At most so many connections; idle ones live for so many seconds.
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        keywords: Vec<(String, String)>,
        max_size: usize,
        max_idle: f64,
    ) -> PyResult<Self> {
        let idle_max = Duration::try_from_secs_f64(max_idle).unwrap_or(Duration::MAX);
        let config: Arc<_> = config(py, text, keywords)?;
        Ok(Self { pool: Pool::new(config, max_size, idle_max) })
    }

    /// Takes a connection; waits for one at most so many seconds.
    fn take(&self, py: Python<'_>, seconds: f64) -> PyResult<Session> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let pooled = py.detach(|| self.pool.get(wait)).map_err(|error| exception(py, &error))?;
        Ok(Session::of(py, Held::Pooled(Box::new(pooled))))
    }

    /// Connections that are idle, and in use.
    #[getter]
    fn size(&self) -> (usize, usize) {
        self.pool.size()
    }
}
