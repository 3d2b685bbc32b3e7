//! What a program sees of its surroundings, as a value: resolving settings never reads anything global.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::ConninfoError;

/// Environment variables and the few facts about the operating system that libpq's rules depend on.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    /// Name of the operating-system user, libpq's default for `user`.
    pub user: Option<String>,
    /// Where `.pgpass`, `.pg_service.conf` and `.postgresql/` are looked for.
    pub home: Option<PathBuf>,
    /// Directories that may hold the server's socket when no host is given, best first.
    pub socket_directories: Vec<PathBuf>,
    /// Option files of this machine for MySQL's clients, in the order in which they are read.
    pub option_files: Vec<PathBuf>,
    /// The program that is to be run, and its arguments; none where there is no program.
    pub command: Vec<OsString>,
    /// Where `pg_service.conf` of the whole system stands unless PGSYSCONFDIR says otherwise.
    pub system_configuration: Option<PathBuf>,
}

impl Environment {
    /// The surroundings of this process, read once.
    pub fn of_this_process() -> Self {
        let account = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let mut environment = Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            socket_directories: ["/var/run/postgresql", "/tmp"].map(PathBuf::from).to_vec(),
            option_files: ["/etc/my.cnf", "/etc/mysql/my.cnf"].map(PathBuf::from).to_vec(),
            system_configuration: Some(PathBuf::from("/etc/postgresql-common")),
            ..Self::default()
        };
        // libpq takes the home directory from HOME first, the user name from the account only.
        let home = environment.os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        environment.home = home.or_else(|| account.as_ref().map(|account| account.dir.clone()));
        environment.user = account.map(|account| account.name);
        environment
    }

    /// An environment with these variables only: no user, no home, no socket directories.
    pub fn with_variables<N: Into<String>, V: Into<OsString>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables, ..Self::default() }
    }

    /// The value of a variable, `None` when it is not set.
    ///
    /// # Errors
    /// [`ConninfoError::NotUtf8`] when the value is not UTF-8.
    pub fn var(&self, name: &str) -> Result<Option<&str>, ConninfoError> {
        match self.os(name) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(value) => Ok(Some(value)),
                None => Err(ConninfoError::NotUtf8 { place: name.to_owned() }),
            },
        }
    }

    /// The value of a variable as the operating system holds it.
    pub fn os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str)
    }

    /// All variables whose values are text, sorted by their names.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str()?)))
    }

    /// Sets a variable in this value (not in the process).
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.insert(name.to_owned(), value.into());
    }

    /// Removes a variable from this value (not from the process).
    pub fn unset(&mut self, name: &str) {
        self.variables.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_this_process_is_what_the_system_says() {
        let environment = Environment::of_this_process();
        assert_eq!(environment.os("PATH"), std::env::var_os("PATH").as_deref());
        assert_eq!(environment.os("ONETRIP_NO_SUCH_VARIABLE"), None);
    }

    #[test]
    fn changes_stay_in_the_value() {
        let mut environment = Environment::with_variables([("A", "1")]);
        environment.set("ONETRIP_TEST_B", "2");
        environment.unset("A");
        assert_eq!((environment.var("A"), environment.var("ONETRIP_TEST_B")), (Ok(None), Ok(Some("2"))));
        assert_eq!(std::env::var_os("ONETRIP_TEST_B"), None);
    }
}
