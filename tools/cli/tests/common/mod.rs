//! What the tests of the command share: the command with a clean environment.

use std::process::Command;

/// The command, with no setting of this machine's user but the role and database of the throw-away servers.
pub(crate) fn onetrip() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onetrip"));
    for (name, _) in std::env::vars_os() {
        let is_setting = name.to_str().is_some_and(|name| name.starts_with("PG") || name == "DATABASE_URL");
        if is_setting {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("PGUSER", "onetrip").env("PGDATABASE", "postgres");
    command
}
