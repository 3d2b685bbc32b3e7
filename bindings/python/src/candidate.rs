//! The servers that connection text names, for who connects by an event loop.

use std::sync::Arc;

use onetrip_client::{Config, ConnectError, TargetSession};
use onetrip_target::Host;
use onetrip_target::address::{Address, candidates};
use onetrip_target::tls::connector;
use pyo3::prelude::*;

use crate::conninfo::{config, target};
use crate::errors::exception;

/// How to connect with one of the servers that connection text names.
#[pyclass(frozen, module = "onetrip._native")]
pub(crate) struct Candidate {
    pub(crate) config: Arc<Config>,
    pub(crate) host: Host,
    address: Address,
    wanted: TargetSession,
}

#[pymethods]
impl Candidate {
    /// Host and port; the path and no port for a unix socket.
    #[getter]
    fn address(&self) -> (String, Option<u16>) {
        match &self.address {
            Address::Tcp(address) => (address.ip().to_string(), Some(address.port())),
            Address::Unix(path) => (path.to_string_lossy().into_owned(), None),
        }
    }

    /// Where the connection leads, as [`crate::session::Session`] says it.
    fn target(&self) -> Vec<(String, String)> {
        target(&self.config, &self.host, &self.address)
    }

    /// Longest wait for the connection, in seconds.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.config.conninfo.connect_timeout.map(|timeout| timeout.as_secs_f64())
    }

    /// The kind of server that is wanted, by libpq's word.
    #[getter]
    fn wanted(&self) -> &'static str {
        self.wanted.as_str()
    }

    /// Whether a server with these two traits will do.
    fn accepts(&self, is_standby: bool, is_read_only: bool) -> bool {
        self.wanted.accepts(is_standby, is_read_only)
    }

    /// Whether each of TLS and plain may be tried, in order.
    fn ways(&self, py: Python<'_>) -> PyResult<Vec<bool>> {
        let plan = connector(&self.config.conninfo).map_err(|error| refused(py, error.into()))?;
        Ok(match plan.filter(|plan| plan.applies_to(&self.host)) {
            None => vec![false],
            Some(plan) if plan.starts_plain() => vec![false, true],
            Some(plan) if plan.may_be_plain() => vec![true, false],
            Some(_) => vec![true],
        })
    }
}

pub(crate) fn refused(py: Python<'_>, error: ConnectError) -> PyErr {
    exception(py, &error.into())
}

/// The servers to try, in order. Names are looked up here: that may wait, without the GIL.
#[pyfunction]
pub(crate) fn addresses(
    py: Python<'_>,
    text: &str,
    keywords: Vec<(String, String)>,
) -> PyResult<Vec<Candidate>> {
    let config = config(py, text, keywords)?;
    let wanted = config.target_session().map_err(|error| refused(py, error))?;
    let found = py.detach(|| {
        let found = candidates(&config.conninfo).map(|(host, address)| {
            let config = Arc::clone(&config);
            Ok(Candidate {
                config,
                host: host.clone(),
                address: address.map_err(ConnectError::from)?,
                wanted,
            })
        });
        found.collect::<Vec<Result<_, ConnectError>>>()
    });
    // A name that is not known is no reason not to try the others.
    let (mut known, mut failed) = (Vec::new(), None);
    for candidate in found {
        match candidate {
            Ok(candidate) => known.push(candidate),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) if known.is_empty() => Err(refused(py, error)),
        _ => Ok(known),
    }
}
