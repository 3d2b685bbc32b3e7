//! `onetrip run PROGRAM`: which database the program means, how its environment is turned towards the gateway, and
//! the program's life as our child.

mod connections;
mod enclosed;
mod lead;
mod mysql_arguments;
mod mysql_client;
mod naming;
mod preload;
mod program;
mod redirect;
mod upstream;

use std::io;

pub use connections::{ClosedSince, ClosedThere, connections_of};
pub use lead::{Gateways, database_ports, is_database_port, lead_to_first, lead_to_known, leads_to};
pub(crate) use mysql_arguments::full_name;
pub use mysql_arguments::without_passwords;
pub use preload::Preload;
pub use program::{ChildExit, Program};
pub use redirect::{Change, Redirect, RedirectOptions, Untouched, redirect};
pub use upstream::{Source, Upstream};

use crate::ConninfoError;
use crate::intercept::InterceptError;
use crate::passfile::PassfileError;

/// The variable that web frameworks and hosting services keep the database's URL in.
pub const DATABASE_URL: &str = "DATABASE_URL";

/// Why a program cannot be run against the gateway.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The upstream that was asked for, or the PG* variables, cannot be understood.
    #[error("cannot tell where the database is")]
    Upstream(#[source] ConninfoError),
    /// A variable that was named is not set.
    #[error("the environment has no {variable}: set it, or leave --env {variable} out")]
    Missing {
        /// The variable.
        variable: String,
    },
    /// A variable that was named holds no connection text.
    #[error("{variable} cannot be pointed at the gateway")]
    Variable {
        /// The variable.
        variable: String,
        /// What is wrong with its value.
        #[source]
        source: ConninfoError,
    },
    /// A variable that was named leads to another server.
    #[error(
        "{variable} leads to {address}, but the gateway stands before {upstream}: name one with --upstream, or leave --env {variable} out"
    )]
    Elsewhere {
        /// The variable.
        variable: String,
        /// Where it leads.
        address: String,
        /// Where the gateway leads.
        upstream: String,
    },
    /// Variables name different servers, and nothing says which is meant.
    #[error(
        "{variable} leads to {address}, {other} leads to {other_address}: give the database that is meant, by --upstream HOST:PORT (`onetrip ping` takes it as its argument)"
    )]
    Several {
        /// A variable.
        variable: String,
        /// Where it leads.
        address: String,
        /// A variable that leads elsewhere.
        other: String,
        /// Where that leads.
        other_address: String,
    },
    /// The copy of the password file cannot be written.
    #[error("cannot make a password file for the gateway's address")]
    Passfile(#[source] PassfileError),
    /// No such program; shells exit with 127.
    #[error("{program}: not found (nor is a script's interpreter): check the name and PATH")]
    NotFound {
        /// The program.
        program: String,
    },
    /// A file that is no program; shells exit with 126.
    #[error("{program}: cannot be executed: make it executable (chmod +x), and begin a script with #!")]
    NotExecutable {
        /// The program.
        program: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// The program's connections cannot be intercepted.
    #[error("--redirect cannot be used: {0}")]
    Intercept(#[from] InterceptError),
    /// The operating system refused a new process or a signal handler.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl LaunchError {
    /// The exit code that shells, `env` and `timeout` use for such a failure.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => 127,
            Self::NotExecutable { .. } => 126,
            _ => 125,
        }
    }
}
