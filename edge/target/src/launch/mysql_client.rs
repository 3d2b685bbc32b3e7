//! The clients that come with MySQL and MariaDB: which server they mean, and how they are told another one.
//!
//! A client takes its own arguments before option files, and these before variables. On its own machine it uses the server's
//! Unix socket, whatever the port; only the protocol leads it to TCP, or, with MariaDB, a port among its arguments. Source: MySQL
//! Reference Manual, "Connecting to the MySQL Server Using Command Options", and what MariaDB's client was seen to do.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::Path;

use super::mysql_arguments::{self, Arguments};
use crate::mysql_clients::Reader;
use crate::option_files::{self, Options, Which};
use crate::{ConninfoError, Environment, Settings, mysql};

/// Options of the server's place.
const PLACES: [&str; 3] = ["host", "port", "socket"];
const PROTOCOL: &str = "protocol";
/// The name that means the socket.
const LOCALHOST: &str = "localhost";

/// One of these clients, with what it reads.
#[derive(Debug)]
struct Client {
    reader: Reader,
    arguments: Arguments,
    options: Options,
}

impl Client {
    /// The client of a command, if it runs one.
    fn of(command: &[OsString], environment: &Environment) -> Result<Option<Self>, ConninfoError> {
        let Some(reader) = Reader::of_command(command, environment) else { return Ok(None) };
        let Some(client) = reader.client else { return Ok(None) };
        let words: Vec<_> = command.iter().skip(1).map(|word| word.to_string_lossy()).collect();
        let arguments = mysql_arguments::read(&words, client);
        let options = option_files::read(&which(command), reader, environment)?;
        Ok(Some(Self { reader, arguments, options }))
    }

    /// Whether it uses TCP though its host is this machine.
    fn is_by_tcp(&self) -> bool {
        let mut protocol = self.options.protocol.clone().unwrap_or_default();
        for given in &self.arguments.given {
            match (given.name.as_str(), &given.value) {
                (PROTOCOL, Some(value)) => protocol.clone_from(value),
                ("port", _) if self.reader.habits.is_mariadb => "tcp".clone_into(&mut protocol),
                ("socket", _) if self.reader.habits.is_mariadb => "socket".clone_into(&mut protocol),
                _ => {}
            }
        }
        // The beginning of a word will do.
        !protocol.is_empty() && "tcp".starts_with(&protocol.to_ascii_lowercase())
    }

    fn server(self, environment: &Environment) -> Result<(Settings, Option<String>), ConninfoError> {
        let is_by_tcp = self.is_by_tcp();
        let Options { mut settings, file, .. } = self.options;
        let mut source = file.map(|file| file.display().to_string());
        for given in self.arguments.given {
            if let (Some(keyword), Some(value)) =
                (PLACES.iter().find(|place| **place == given.name), given.value)
            {
                settings.set(keyword, value);
                source = Some("its arguments".to_owned());
            }
        }
        // Zero is no port.
        if settings.get("port").is_some_and(|port| port.trim() == "0") {
            settings.set("port", "");
        }
        let hosts = &[mysql::HOST_VARIABLE][..];
        let reads_host = self.reader.client.is_some_and(|client| client.reads_host);
        for (variables, keyword) in [
            (if reads_host { hosts } else { &[] }, "host"),
            (&mysql::PORT_VARIABLES[..1], "port"),
            (self.reader.habits.sockets, "socket"),
        ] {
            let Some(variable) = variables.iter().find(|name| environment.os(name).is_some()) else {
                continue;
            };
            let value = environment.var(variable)?.filter(|value| !value.is_empty());
            if let (Some(value), None) = (value, settings.get_nonempty(keyword)) {
                settings.set(keyword, value);
                source.get_or_insert_with(|| (*variable).to_owned());
            }
        }
        let is_local = settings.get_nonempty("host").is_none_or(|host| host == LOCALHOST);
        if is_by_tcp || !is_local {
            settings.set("socket", "");
        } else if settings.get_nonempty("socket").is_none() {
            if let Some(socket) = mysql::USUAL_SOCKETS.iter().find(|socket| Path::new(socket).exists()) {
                settings.set("socket", *socket);
            }
        }
        Ok((settings, source))
    }
}

/// Where the client of these arguments would connect to, and what says so.
///
/// # Errors
/// An option file that was named and cannot be read.
pub(super) fn server(
    command: &[OsString],
    environment: &Environment,
) -> Result<Option<(Settings, Option<String>)>, ConninfoError> {
    Client::of(command, environment)?.map(|client| client.server(environment)).transpose()
}

/// How a client is led to the gateway.
#[derive(Debug)]
pub(super) enum Leading {
    /// By these arguments, since the last ones count. So many of its own words come after them: what `--` begins.
    By([OsString; 3], usize),
    /// Not at all: this option asks for TLS.
    InsistsOnTls(String),
}

/// What leads the client to the gateway, if the command runs one.
pub(super) fn leading(
    command: &[OsString],
    environment: &Environment,
    gateway: SocketAddr,
) -> Option<Leading> {
    let client = Client::of(command, environment).ok()??;
    let given = client.arguments.given.iter().filter(|given| given.name.contains("ssl"));
    let given = given.map(|given| (given.name.as_str(), given.value.as_deref()));
    let options = client.options.tls.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
    if let Some(option) = mysql::insisting_option(options.chain(given)) {
        return Some(Leading::InsistsOnTls(option.to_owned()));
    }
    let (host, port) = (gateway.ip(), gateway.port());
    let words = ["--protocol=TCP".to_owned(), format!("--host={host}"), format!("--port={port}")];
    let behind = command.len() - 1 - client.arguments.end;
    Some(Leading::By(words.map(OsString::from), behind))
}

/// What a program's arguments say of option files: those of a client stand first.
fn which(command: &[OsString]) -> Which {
    let is_about_files = |word: &&OsStr| {
        let word = word.to_string_lossy();
        ["--defaults-", "--no-defaults", "--login-path=", "--print-defaults"]
            .iter()
            .any(|begin| word.starts_with(begin))
    };
    Which::of(command.iter().skip(1).map(OsString::as_os_str).take_while(is_about_files))
}

/// The settings that option files have, where the program is none of these clients: only if its arguments name one. The user's
/// own file alone says nothing about a program that may not read it.
///
/// # Errors
/// A file that was named and cannot be read.
pub(super) fn named_in_files(
    command: &[OsString],
    environment: &Environment,
) -> Result<Option<(Settings, String)>, ConninfoError> {
    let which = Which::of(command.iter().skip(1).map(OsString::as_os_str));
    if !which.is_named() {
        return Ok(None);
    }
    let options = option_files::read(&which, Reader::OTHER, environment)?;
    if !options.names_a_server() {
        return Ok(None);
    }
    let Options { mut settings, file, protocol, .. } = options;
    // A program that is told to use TCP, or another machine, does not use the socket.
    let is_local = settings.get_nonempty("host").is_none_or(|host| host == LOCALHOST);
    if !is_local || protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case("tcp")) {
        settings.set("socket", "");
    }
    Ok(file.map(|file| (settings, file.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::with_variables(variables.iter().copied())
    }

    /// The socket, or host and port, that a client would connect to.
    fn place(text: &str, environment: &Environment) -> String {
        let (settings, _) = server(&words(text), environment).unwrap().unwrap();
        let get = |keyword| settings.get_nonempty(keyword).unwrap_or_default().to_owned();
        match get("socket").as_str() {
            "" => format!("{}:{}", get("host"), get("port")),
            socket => socket.to_owned(),
        }
    }

    #[test]
    fn a_client_is_known_by_its_name_and_takes_arguments_before_variables() {
        let environment = environment(&[("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3307")]);
        let found = |text: &str| server(&words(text), &environment).unwrap();
        let (settings, source) = found("/usr/bin/mariadb shop").unwrap();
        assert_eq!((settings.get("host"), settings.get("port")), (Some("db"), Some("3307")));
        assert_eq!(source.as_deref(), Some("MYSQL_HOST"));
        let (settings, source) = found("mysql -h other").unwrap();
        assert_eq!((settings.get("host"), source.as_deref()), (Some("other"), Some("its arguments")));
        assert!(found("python mysql").is_none());
    }

    #[test]
    fn only_the_interactive_client_reads_the_hosts_variable() {
        let environment =
            environment(&[("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3307"), ("MYSQL_UNIX_PORT", "/x")]);
        for (client, expected) in
            [("mysql", "db:3307"), ("mariadb", "db:3307"), ("mysqldump", "/x"), ("mariadb-check", "/x")]
        {
            assert_eq!(place(client, &environment), expected, "{client}");
        }
        assert_eq!(place("mysqldump -h db shop", &environment), "db:3307");
    }

    /// What MariaDB 10.11's client was seen to do; MySQL's by its manual.
    #[test]
    fn socket_or_tcp_is_chosen_as_the_clients_choose() {
        let directory = tempfile::tempdir().unwrap();
        let home = |text: &str| {
            std::fs::write(directory.path().join(".my.cnf"), text).unwrap();
            let mut environment = Environment::default();
            environment.home = Some(directory.path().to_path_buf());
            environment
        };
        let both = home("[client]\nsocket=/x\nport=1\n");
        for (arguments, mariadb, mysql) in [
            ("shop", "/x", "/x"),
            ("-P 2", ":2", "/x"),
            ("--por=2", ":2", "/x"),
            ("-P 2 -S /y", "/y", "/y"),
            ("-S /y -P 2", ":2", "/y"),
            ("--protocol=tcp", ":1", ":1"),
            ("--protocol TCP", ":1", ":1"),
            ("--prot=t", ":1", ":1"),
            ("--protocol=socket -P 2", ":2", "/x"),
            ("-P 2 --protocol=SOCKET", "/x", "/x"),
            ("-S /y --protocol=tcp", ":1", ":1"),
            ("-Nh db -P 2", "db:2", "db:2"),
            ("-h db -P 2 --protocol=socket", "db:2", "db:2"),
            ("-h localhost", "/x", "/x"),
            ("-h LOCALHOST", "LOCALHOST:1", "LOCALHOST:1"),
            ("-e -hdb", "/x", "/x"),
            ("-P0 -h db", "db:", "db:"),
        ] {
            assert_eq!(place(&format!("mariadb {arguments}"), &both), mariadb, "mariadb {arguments}");
            assert_eq!(place(&format!("mysql {arguments}"), &both), mysql, "mysql {arguments}");
        }
        let by_tcp = home("[client]\nprotocol=tcp\nsocket=/x\nport=1\n");
        assert_eq!(place("mariadb", &by_tcp), ":1");
        assert_eq!(place("mariadb -S /y", &by_tcp), "/y");
        assert_eq!(place("mysql -S /y", &by_tcp), ":1");
        let mut none = home("[client]\nport=1\nport=0\nhost=db\n");
        none.set("MYSQL_TCP_PORT", "3");
        assert_eq!(place("mysql", &none), "db:3");
    }

    #[test]
    fn the_first_variable_with_a_socket_counts() {
        let both = environment(&[("MYSQL_UNIX_PORT", "/x"), ("MARIADB_UNIX_PORT", "/y")]);
        let second = environment(&[("MARIADB_UNIX_PORT", "/y")]);
        assert_eq!((place("mariadb", &both), place("mariadb", &second)), ("/x".to_owned(), "/y".to_owned()));
        assert_ne!(place("mysql", &second), "/y");
    }

    #[test]
    fn arguments_come_before_those_that_are_no_options_and_none_with_tls() {
        let gateway = "127.0.0.1:6432".parse().unwrap();
        let leading = |text: &str| leading(&words(text), &Environment::default(), gateway);
        for (text, expected) in [("mysql -u me -- shop", 2), ("mysql -u me shop", 0), ("mysql -e -- shop", 0)]
        {
            let Some(Leading::By(_, behind)) = leading(text) else { panic!("{text}") };
            assert_eq!(behind, expected, "{text}");
        }
        for (text, expected) in [
            ("mysql -h db --ssl-mode=VERIFY_IDENTITY --ssl-ca=ca.pem", "ssl-mode"),
            ("mysql --ssl-mode REQUIRED", "ssl-mode"),
            ("mysqldump --ssl_ca=ca.pem shop", "ssl-ca"),
            ("mariadb --ssl", "ssl"),
            ("mariadb --ssl-verify-server-cert", "ssl-verify-server-cert"),
        ] {
            assert!(
                matches!(leading(text), Some(Leading::InsistsOnTls(option)) if option == expected),
                "{text}"
            );
        }
        for text in [
            "mysql --ssl-mode=DISABLED --ssl-ca=ca.pem",
            "mysql --ssl-mode=PREFERRED",
            "mariadb --ssl-ca=ca.pem --skip-ssl",
            "mariadb --ssl=0",
            "mariadb --skip-ssl-verify-server-cert",
        ] {
            assert!(matches!(leading(text), Some(Leading::By(..))), "{text}");
        }
        assert!(leading("psql").is_none());
    }
}
