//! Which values in an environment name a database's server, and which variables name one together.
//!
//! A value counts if it spells out both host and port, or names a service in a URL. One without a port counts if it can
//! mean nothing else than one database. A value that names something else must stay as it is.

use std::ops::Range;

use super::enclosed::urls;
use crate::keywords::{is_keyword, is_libpq_variable};
use crate::written::{Format, Written, split_port};
use crate::{Environment, Host, Protocol, mysql};

/// Longer values are no addresses.
const VALUE_BYTES_MAX: usize = 4096;
/// Ends of the names of variables that hold a host, in capitals; a name and its address may stand together.
const HOST_ENDS: [&str; 7] = ["HOSTNAME", "HOSTADDR", "HOST", "SERVER", "ADDRESS", "ADDR", "IP"];
const PORT_END: &str = "PORT";
/// What MySQL's clients have in the port's variable, and not in the host's.
const TCP_END: &str = "TCP_";
/// What begins so is meant for a database, whatever is wrong with the rest.
const URLS: [(&str, Protocol); 7] = [
    ("postgres://", Protocol::Postgres),
    ("postgresql://", Protocol::Postgres),
    ("jdbc:postgresql:", Protocol::Postgres),
    ("mysql://", Protocol::Mysql),
    ("mariadb://", Protocol::Mysql),
    ("jdbc:mysql:", Protocol::Mysql),
    ("jdbc:mariadb:", Protocol::Mysql),
];

/// How sure it is that text names a database's server, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// It does not name one.
    Nothing,
    /// A host and a port, of whatever listens there.
    Address,
    /// A database's own notation.
    Own(Protocol),
}

impl Naming {
    /// Whether it is surely another database's than one of this protocol.
    pub(super) fn is_of_another(self, protocol: Protocol) -> bool {
        matches!(self, Self::Own(own) if own != protocol)
    }
}

/// What a text names.
pub(super) fn naming(text: &str) -> Naming {
    if text.len() > VALUE_BYTES_MAX {
        return Naming::Nothing;
    }
    // A list of URLs names several servers, each in its own place.
    if urls(text).len() > 1 {
        return Naming::Nothing;
    }
    let Ok(written) = Written::parse(text) else {
        // Its mistake is worth a word.
        let begun = URLS.iter().find(|(begin, _)| text.starts_with(begin));
        return begun.map_or(Naming::Nothing, |(_, protocol)| Naming::Own(*protocol));
    };
    let has = |keyword: &str| written.get(keyword).is_some_and(|value| !value.is_empty());
    let has_host = has("host") || has("hostaddr");
    match written.format {
        Format::Url | Format::Jdbc | Format::GoDsn if has_host => Naming::Own(written.protocol),
        Format::Url | Format::Jdbc | Format::GoDsn
            if written.protocol == Protocol::Mysql
                && mysql::socket(|keyword| written.get(keyword)).is_some() =>
        {
            Naming::Own(written.protocol)
        }
        Format::Url if has("service") => Naming::Own(written.protocol),
        Format::KeywordValue if has_host && (has("port") || has("dbname")) => {
            let all_known = written.entries.iter().all(|entry| is_keyword(&entry.keyword));
            if all_known { Naming::Own(Protocol::Postgres) } else { Naming::Nothing }
        }
        Format::Pairs { is_postgres: true } => Naming::Own(Protocol::Postgres),
        Format::Pairs { is_postgres: false } if has("port") => Naming::Address,
        Format::HostPort if has_host && has("port") => Naming::Address,
        _ => Naming::Nothing,
    }
}

/// A host and a port in variables of their own, such as DB_HOST and DB_PORT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The variables with the host.
    pub(super) hosts: Vec<String>,
    /// The variable with the port.
    pub(super) port: String,
    /// The server that they name.
    pub(super) server: Host,
    /// Another variable that may share the port, with another server in it.
    pub(super) rival: Option<String>,
}

impl Pair {
    /// Whether the variables' names, or the usual port, say that this is a server of that protocol.
    pub(super) fn is_of(&self, protocol: Protocol) -> bool {
        let name = self.port.to_ascii_uppercase();
        let is_named = |protocol: Protocol| protocol.words().iter().any(|word| name.contains(word));
        let is_others = Protocol::ALL.into_iter().any(|other| other != protocol && is_named(other));
        is_named(protocol) || (self.server.port == protocol.port() && !is_others)
    }
}

/// All pairs of an environment.
pub(super) fn pairs(environment: &Environment) -> Vec<Pair> {
    let texts = || others(environment).map(|(name, value)| (name, name.to_ascii_uppercase(), value));
    let mut pairs: Vec<Pair> = Vec::new();
    for (port_name, upper, value) in texts() {
        let Some(prefix) = upper.strip_suffix(PORT_END).filter(|prefix| !prefix.is_empty()) else { continue };
        let prefix =
            prefix.strip_suffix(TCP_END).filter(|_| upper == mysql::PORT_VARIABLES[0]).unwrap_or(prefix);
        let Some(port) = value.trim().parse::<u16>().ok().filter(|port| *port != 0) else { continue };
        let named = texts().filter_map(|(name, upper, value)| {
            let end = upper.strip_prefix(prefix)?;
            HOST_ENDS
                .contains(&end)
                .then(|| host(value))
                .flatten()
                .map(|host| (name, without_port(host, port)))
        });
        let named: Vec<(&str, &str)> = named.collect();
        let Some((_, first)) = named.first() else { continue };
        let server = server(first, port);
        let differs = |value: &str| !self::server(value, port).is_same_server(&server);
        let rival = named.iter().find(|(_, value)| differs(value)).map(|(name, _)| (*name).to_owned());
        pairs.push(Pair {
            rival: rival.or_else(|| sharer(environment, prefix, &server)),
            hosts: named.into_iter().map(|(name, _)| name.to_owned()).collect(),
            port: port_name.to_owned(),
            server,
        });
    }
    pairs
}

/// A variable such as DB_REPLICA_HOST, which has no port of its own, so that it may well share that of DB_PORT.
fn sharer(environment: &Environment, prefix: &str, server: &Host) -> Option<String> {
    let stem = prefix.trim_end_matches('_');
    let has = |name: &str| others(environment).any(|(other, _)| other.eq_ignore_ascii_case(name));
    let shares = |(name, value): (&str, &str)| {
        let upper = name.to_ascii_uppercase();
        let end = HOST_ENDS.iter().find(|end| upper.contains(**end))?;
        let is_other = upper.starts_with(stem) && upper.len() > prefix.len() + end.len();
        let own_port = upper.replacen(end, PORT_END, 1);
        let elsewhere = !self::server(host(value)?, server.port).is_same_server(server);
        (is_other && elsewhere && !has(&own_port)).then(|| name.to_owned())
    };
    others(environment).find_map(shares)
}

/// Variables that libpq does not read by itself, with values that can be an address.
pub(super) fn others(environment: &Environment) -> impl Iterator<Item = (&str, &str)> {
    environment.texts().filter(|(name, value)| {
        !value.is_empty() && value.len() <= VALUE_BYTES_MAX && !is_libpq_variable(name)
    })
}

/// URLs of databases' servers that stand within longer values of variables that libpq does not read, by the variable's name.
pub(super) fn enclosed(environment: &Environment) -> impl Iterator<Item = (&str, &str, Vec<Range<usize>>)> {
    let others = environment.texts().filter(|(name, _)| !is_libpq_variable(name));
    others.filter_map(|(name, text)| {
        let mut urls = urls(text);
        let is_whole = naming(text) != Naming::Nothing;
        urls.retain(|bytes| !is_whole && matches!(naming(&text[bytes.clone()]), Naming::Own(_)));
        (!urls.is_empty()).then_some((name, text, urls))
    })
}

/// The value as a host, if it can be one.
fn host(value: &str) -> Option<&str> {
    let value = value.trim();
    let possible = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@".contains(&byte);
    (!value.is_empty() && value.len() < 256 && value.bytes().all(possible)).then_some(value)
}

/// The host of a value that repeats the port of its pair: `db:5433` beside 5433.
pub(super) fn without_port(value: &str, port: u16) -> &str {
    let repeated = split_port(value).filter(|(host, own)| !host.contains(':') && own.parse() == Ok(port));
    repeated.map_or(value, |(host, _)| host)
}

fn server(host: &str, port: u16) -> Host {
    if host.starts_with(['/', '@']) { Host::unix(host, port) } else { Host::tcp(host, port) }
}
