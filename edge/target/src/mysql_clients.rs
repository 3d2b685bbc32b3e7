//! What the clients of MySQL and MariaDB read: which option files and groups, which variables, and which short options have a
//! value.
//!
//! Source: `--help` and `--print-defaults` of MariaDB 10.11's clients; MySQL Reference Manual, "Using Option Files" and
//! "Environment Variables".

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Environment;

/// A client, whichever server it came with.
#[derive(Debug)]
pub(crate) struct Client {
    /// Its name with MySQL, which is a group of options for both.
    pub(crate) mysql: &'static str,
    /// Its name with MariaDB.
    mariadb: &'static str,
    /// The group that only MariaDB's has.
    mariadb_group: &'static str,
    /// Short options with a value, which may be the next word.
    pub(crate) with_value: &'static str,
    /// Whether it reads `MYSQL_HOST`.
    pub(crate) reads_host: bool,
}

const CLIENTS: [Client; 7] = [
    client("mysql", "mariadb", "mariadb-client", "hPSuDe", true),
    client("mysqldump", "mariadb-dump", "mariadb-dump", "hPSurTw", false),
    client("mysqladmin", "mariadb-admin", "mariadb-admin", "hPSuci", false),
    client("mysqlimport", "mariadb-import", "mariadb-import", "hPSuc", false),
    client("mysqlshow", "mariadb-show", "mariadb-show", "hPSuc", false),
    client("mysqlcheck", "mariadb-check", "mariadb-check", "hPSu", false),
    client("mysqlslap", "mariadb-slap", "mariadb-slap", "hPSuceiqxyF", false),
];

const fn client(
    mysql: &'static str,
    mariadb: &'static str,
    mariadb_group: &'static str,
    with_value: &'static str,
    reads_host: bool,
) -> Client {
    Client { mysql, mariadb, mariadb_group, with_value, reads_host }
}

/// What differs between the clients of both servers, and programs with a library of one.
#[derive(Debug)]
pub(crate) struct Habits {
    /// Groups that each program reads.
    pub(crate) groups: &'static [&'static str],
    /// The first that is set names the directory of a further `my.cnf`.
    pub(crate) homes: &'static [&'static str],
    /// The first that is set says what may stand at the end of groups' names.
    pub(crate) suffixes: &'static [&'static str],
    /// The first that is set names the socket.
    pub(crate) sockets: &'static [&'static str],
    /// Whether there is a `.mylogin.cnf`.
    pub(crate) has_login_file: bool,
    /// MariaDB's clients have groups by their own names. A port or a socket among their arguments also says how to get there.
    pub(crate) is_mariadb: bool,
}

const OF_MYSQL: Habits = Habits {
    groups: &["client"],
    homes: &["MYSQL_HOME"],
    suffixes: &["MYSQL_GROUP_SUFFIX"],
    sockets: &["MYSQL_UNIX_PORT"],
    has_login_file: true,
    is_mariadb: false,
};
const OF_MARIADB: Habits = Habits {
    groups: &["client", "client-server", "client-mariadb"],
    homes: &["MARIADB_HOME", "MYSQL_HOME"],
    suffixes: &["MARIADB_GROUP_SUFFIX", "MYSQL_GROUP_SUFFIX"],
    sockets: &["MYSQL_UNIX_PORT", "MARIADB_UNIX_PORT"],
    has_login_file: false,
    is_mariadb: true,
};
/// Nobody knows which library another program has.
const OF_OTHERS: Habits = Habits { groups: OF_MARIADB.groups, homes: &[], ..OF_MYSQL };

/// A program that may read option files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// One of the clients, or another program.
    pub(crate) client: Option<&'static Client>,
    pub(crate) habits: &'static Habits,
}

impl Reader {
    /// A program that came with neither server.
    pub(crate) const OTHER: Self = Self { client: None, habits: &OF_OTHERS };

    /// The client that a command runs, if it is one.
    pub(crate) fn of_command(command: &[OsString], environment: &Environment) -> Option<Self> {
        let program = Path::new(command.first()?);
        let client = client_named(program.file_name()?.to_str()?)?;
        let is_mariadb = is_mariadb(client, program, environment);
        Some(Self { client: Some(client), habits: if is_mariadb { &OF_MARIADB } else { &OF_MYSQL } })
    }

    /// The groups of options that it reads, without what a suffix adds.
    pub(crate) fn groups(self) -> Vec<String> {
        let mut groups = self.habits.groups.to_vec();
        if let Some(client) = self.client {
            groups.push(client.mysql);
            groups.extend(Some(client.mariadb_group).filter(|_| self.habits.is_mariadb));
        }
        groups.into_iter().map(str::to_owned).collect()
    }
}

/// The client of this name.
pub(crate) fn client_named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.mysql == name || client.mariadb == name)
}

/// Whether MariaDB's client runs: by its name, or since both names are one file.
fn is_mariadb(client: &Client, program: &Path, environment: &Environment) -> bool {
    if program.ends_with(client.mariadb) {
        return true;
    }
    let Some(file) = found(program, environment) else { return false };
    let other = file.with_file_name(client.mariadb);
    matches!((file.canonicalize(), other.canonicalize()), (Ok(file), Ok(other)) if file == other)
}

/// The file that a program's name means, as shells look for it.
fn found(program: &Path, environment: &Environment) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return Some(program.to_path_buf());
    }
    let path = environment.os("PATH")?;
    std::env::split_paths(path).map(|directory| directory.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_that_a_client_came_with_is_known_by_its_name_or_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["mariadb", "mysqldump"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink("mariadb", path("mysql")).unwrap();
        let environment = Environment::with_variables([("PATH", directory.path())]);
        let has_login_file = |program: &str| {
            let reader = Reader::of_command(&[program.into()], &environment);
            reader.map(|reader| reader.habits.has_login_file)
        };
        assert_eq!(has_login_file("mariadb-dump"), Some(false));
        assert_eq!(has_login_file("mysql"), Some(false), "it is MariaDB's by another name");
        assert_eq!(has_login_file("/no/such/mysql"), Some(true));
        assert_eq!(has_login_file("mysqldump"), Some(true));
        assert_eq!(has_login_file("psql"), None);
    }
}
