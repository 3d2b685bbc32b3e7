//! Servers as processes of their own: under which account, in which directory, and that they end with the lab.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::unistd::{Uid, User};
use tempfile::TempDir;

use crate::LabError;

/// A temporary directory and the account that it belongs to; no account is "as we are".
pub(crate) fn own_directory() -> Result<(TempDir, Option<String>), LabError> {
    let account = unprivileged_account()?;
    let directory = tempfile::Builder::new().prefix("onetrip-lab-").tempdir();
    let directory =
        directory.map_err(|error| LabError::Database(format!("no temporary directory: {error}")))?;
    if let Some(user) = &account {
        let owner = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
        std::os::unix::fs::chown(directory.path(), owner.0, owner.1)
            .map_err(LabError::file(directory.path()))?;
    }
    Ok((directory, account.map(|user| user.name)))
}

/// Whom to run servers as: most of them refuse root.
fn unprivileged_account() -> Result<Option<User>, LabError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let known = ["postgres", "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten());
    let missing = || LabError::Database("as root there has to be an account postgres or nobody".to_owned());
    known.map(Some).ok_or_else(missing)
}

/// A command under that account. The kernel sends it this signal when the lab dies, so that it cannot outlive it.
pub(crate) fn command(signal: &str, account: Option<&str>, program: &Path, directory: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.arg(format!("--pdeathsig={signal}"));
    if let Some(name) = account {
        command.args([&format!("--reuid={name}"), &format!("--regid={name}"), "--clear-groups"]);
    }
    command.arg("--").arg(program).current_dir(directory).stdin(Stdio::null());
    // PG* variables would redirect a PostgreSQL.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("HOME", directory);
    command
}

/// A port of this machine that nobody listens at.
pub(crate) fn free_port() -> Result<u16, LabError> {
    let probe = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::Connection)?;
    probe.local_addr().map(|address| address.port()).map_err(LabError::Connection)
}
