//! Why a run has no result.

use std::io;

use onetrip_gateway::GatewayError;
use onetrip_ledger::trace::TraceError;
use onetrip_login::LoginError;
use onetrip_wire::WireError;

/// Why a run ended without its result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is no such workload.
    #[error("{0:?} is not a workload; `onetrip lab list` has the names")]
    UnknownWorkload(String),
    /// A workload's file says something that cannot be.
    #[error("workload {workload}: {reason}")]
    Workload {
        /// Its name.
        workload: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What a program read is not what it had to read: its time means nothing.
    #[error("wrong answer in {cell}: {what} is {found}, not {expected}")]
    WrongAnswer {
        /// Where in the matrix.
        cell: String,
        /// Which number.
        what: &'static str,
        /// What it had to be.
        expected: String,
        /// What it was.
        found: String,
    },
    /// A program took other trips than its workload says.
    #[error("wrong count in {cell}: {found} trips, not {expected}")]
    WrongTrips {
        /// Where in the matrix.
        cell: String,
        /// What the workload says.
        expected: String,
        /// What the gateway counted.
        found: u64,
    },
    /// The database answered with an error.
    #[error("{statement}: the database says {message} ({sqlstate})")]
    Refused {
        /// Beginning of what was asked.
        statement: String,
        /// SQLSTATE.
        sqlstate: String,
        /// Its message.
        message: String,
    },
    /// The database sent what the protocol does not allow here.
    #[error("the database broke the protocol")]
    Protocol(#[from] WireError),
    /// The database does not let the lab in, or the lab does not want to.
    #[error("cannot log in to the database")]
    Login(#[source] LoginError),
    /// A session of onetrip's client library failed.
    #[error("the client library")]
    Client(#[from] onetrip_client::Error),
    /// The connection failed.
    #[error("connection to the database")]
    Connection(#[source] io::Error),
    /// The database cannot be had.
    #[error("{0}")]
    Database(String),
    /// The gateway that counts cannot be had.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// A file cannot be read or written.
    #[error("{path}")]
    File {
        /// Which.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Samples that this lab did not write.
    #[error("{path} holds no samples of the lab: {reason}")]
    Samples {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A chart cannot be made a picture.
    #[error("a chart cannot be drawn")]
    Picture(#[from] onetrip_report::PngError),
    /// Somebody asked the run to end.
    #[error("stopped")]
    Stopped,
}

impl LabError {
    /// For `map_err` on what was done with a file.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |source| Self::File { path, source }
    }
}
