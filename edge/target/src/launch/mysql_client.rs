//! The clients that come with MySQL and MariaDB: which server they mean, and how they are told another one.
//!
//! A client takes its own arguments before option files, and these before variables. On its own machine it uses the server's
//! Unix socket, whatever the port; only a port among its arguments, or the protocol, leads it to TCP. Source: MySQL
//! Reference Manual, "Connecting to the MySQL Server Using Command Options", and what MariaDB's client was seen to do.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::Path;

use crate::option_files::{self, Options, Which};
use crate::{ConninfoError, Environment, Settings, mysql};

/// Names of the clients, each with the one that the other server's group of options has.
const CLIENTS: [(&str, &str); 14] = [
    ("mysql", "mysql"),
    ("mariadb", "mysql"),
    ("mysqldump", "mysqldump"),
    ("mariadb-dump", "mysqldump"),
    ("mysqladmin", "mysqladmin"),
    ("mariadb-admin", "mysqladmin"),
    ("mysqlimport", "mysqlimport"),
    ("mariadb-import", "mysqlimport"),
    ("mysqlshow", "mysqlshow"),
    ("mariadb-show", "mysqlshow"),
    ("mysqlcheck", "mysqlcheck"),
    ("mariadb-check", "mysqlcheck"),
    ("mysqlslap", "mysqlslap"),
    ("mariadb-slap", "mysqlslap"),
];
/// Options with a value, their short forms, and what they are called in settings.
const OPTIONS: [(&str, &str, &str); 3] =
    [("--host", "-h", "host"), ("--port", "-P", "port"), ("--socket", "-S", "socket")];
const SOCKET_VARIABLE: &str = "MYSQL_UNIX_PORT";
const TCP: &str = "--protocol=TCP";

/// The group of options that the program reads, if it is one of these clients.
pub(super) fn group(command: &[OsString]) -> Option<&'static str> {
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    CLIENTS.iter().find(|(client, _)| *client == name).map(|(_, group)| *group)
}

/// Where the client of these arguments would connect to, and what says so.
///
/// # Errors
/// An option file that was named and cannot be read.
pub(super) fn server(
    command: &[OsString],
    environment: &Environment,
) -> Result<Option<(Settings, Option<String>)>, ConninfoError> {
    let Some(group) = group(command) else { return Ok(None) };
    let arguments = || command.iter().skip(1).map(OsString::as_os_str);
    let Options { mut settings, file, .. } =
        option_files::read(&Which::of(arguments()), Some(group), environment)?;
    let mut source = file.map(|file| file.display().to_string());
    for (variable, keyword) in
        [(mysql::HOST_VARIABLE, "host"), (mysql::PORT_VARIABLES[0], "port"), (SOCKET_VARIABLE, "socket")]
    {
        let value = environment.var(variable)?.filter(|value| !value.is_empty());
        if let (Some(value), None) = (value, settings.get(keyword)) {
            settings.set(keyword, value);
            source.get_or_insert_with(|| variable.to_owned());
        }
    }
    let told = told(arguments());
    let is_told = |keyword: &str| told.iter().any(|(told, _)| *told == keyword);
    let is_by_tcp = is_told("port") && !is_told("socket") || arguments().any(|word| word == TCP);
    for (keyword, value) in &told {
        settings.set(keyword, value.as_str());
        source = Some("its arguments".to_owned());
    }
    let is_local = settings.get_nonempty("host").is_none_or(|host| host == "localhost");
    if is_by_tcp {
        settings.set("socket", "");
    } else if is_local && settings.get("socket").is_none() {
        if let Some(socket) = mysql::USUAL_SOCKETS.iter().find(|socket| Path::new(socket).exists()) {
            settings.set("socket", *socket);
        }
    }
    Ok(Some((settings, source)))
}

/// What leads the client to the gateway: the last of its arguments count.
pub(super) fn arguments(gateway: SocketAddr) -> [OsString; 3] {
    let (host, port) = (gateway.ip(), gateway.port());
    [TCP.to_owned(), format!("--host={host}"), format!("--port={port}")].map(OsString::from)
}

/// The options among arguments: `--host=db`, `--host db`, `-h db`, `-hdb`.
fn told<'a>(arguments: impl Iterator<Item = &'a OsStr>) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut awaited = None;
    for argument in arguments.filter_map(OsStr::to_str) {
        if let Some(keyword) = awaited.take() {
            found.push((keyword, argument.to_owned()));
            continue;
        }
        for (long, short, keyword) in OPTIONS {
            match (argument.strip_prefix(long), argument.strip_prefix(short)) {
                (Some(""), _) | (_, Some("")) => awaited = Some(keyword),
                (Some(value), _) if value.starts_with('=') => found.push((keyword, value[1..].to_owned())),
                (None, Some(value)) => found.push((keyword, value.to_owned())),
                _ => continue,
            }
            break;
        }
    }
    found
}

/// The settings that the user's option files have, where the program is none of these clients.
///
/// # Errors
/// A file that was named and cannot be read.
pub(super) fn named_in_files(
    command: &[OsString],
    environment: &Environment,
) -> Result<Option<(Settings, String)>, ConninfoError> {
    let which = Which::of(command.iter().skip(1).map(OsString::as_os_str));
    let options = option_files::read(&which, None, environment)?;
    let file = options.file.as_ref().filter(|_| options.names_a_server());
    Ok(file.map(|file| (options.settings.clone(), file.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn every_form_of_an_option_is_read_and_the_last_counts() {
        let told = |text: &str| told(words(text).iter().map(OsString::as_os_str));
        let host_and_port = vec![("host", "db".to_owned()), ("port", "3307".to_owned())];
        for text in ["--host=db --port=3307", "--host db --port 3307", "-h db -P 3307", "-hdb -P3307"] {
            assert_eq!(told(text), host_and_port, "{text}");
        }
        assert_eq!(told("-u me shop -e x"), []);
        assert_eq!(told("--hostile=1"), []);
    }

    #[test]
    fn a_client_is_known_by_its_name_and_takes_arguments_before_variables() {
        let environment = Environment::with_variables([("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "3307")]);
        let found = |text: &str| server(&words(text), &environment).unwrap();
        let (settings, source) = found("/usr/bin/mariadb shop").unwrap();
        assert_eq!((settings.get("host"), settings.get("port")), (Some("db"), Some("3307")));
        assert_eq!(source.as_deref(), Some("MYSQL_HOST"));
        let (settings, source) = found("mysql -h other").unwrap();
        assert_eq!((settings.get("host"), source.as_deref()), (Some("other"), Some("its arguments")));
        assert!(found("python mysql").is_none());
        let socket = Environment::with_variables([("MYSQL_UNIX_PORT", "/x.sock")]);
        let socket_of = |text: &str| {
            let (settings, _) = server(&words(text), &socket).unwrap().unwrap();
            settings.get_nonempty("socket").map(str::to_owned)
        };
        assert_eq!(socket_of("mysql shop").as_deref(), Some("/x.sock"));
        assert_eq!((socket_of("mysql -P 3307"), socket_of("mysql --protocol=TCP")), (None, None));
        assert_eq!(socket_of("mysql -P 3307 -S /y.sock").as_deref(), Some("/y.sock"));
    }
}
