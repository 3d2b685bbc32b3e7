//! Commands that this build lacks. Each is known by its name, so that it can say where it is to be had.

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::Args;

use crate::exit::ExitCode;

/// Where the whole command is to be had.
const WHOLE: &str =
    "an archive, a Debian package or `cargo install --locked --path tools/cli` installs one that has it";

/// The arguments of such a command. Nobody looks at them.
#[derive(Debug, Args)]
pub(crate) struct Lacking {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    ignored: Vec<OsString>,
}

/// Says that a command is not in this build, and what to install.
pub(crate) fn refuse(command: &str, feature: &str) -> Result<ExitCode> {
    bail!("`onetrip {command}` is not in this build (feature `{feature}`): {WHOLE}")
}

/// What `onetrip demo` says where it has no database to bring along.
#[cfg(not(feature = "embed"))]
pub(crate) fn no_database<T>() -> Result<T> {
    bail!(
        "`onetrip demo` has no database of its own in this build (feature `embed`): name one by --database; {WHOLE}"
    )
}
