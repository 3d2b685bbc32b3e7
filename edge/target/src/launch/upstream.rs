//! Which database a program means.

use super::naming::{self, Naming, naming};
use super::{DATABASE_URL, LaunchError, mysql_client};
use crate::mysql_tls::{self, TurnedOff};
use crate::written::{Format, Place, Written};
use crate::{Conninfo, ConninfoError, Environment, Host, Protocol, Settings, mysql};

/// Variables that say where the server is; user and database alone do not.
const ADDRESS_VARIABLES: [&str; 4] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"];

/// What named the upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `--upstream`.
    CommandLine,
    /// A variable with connection text.
    Variable(String),
    /// PG* variables or a service.
    Environment,
    /// What MySQL's clients read: an option file, their variables or arguments; which one, where anything says it.
    Client(Option<String>),
    /// Nothing did: libpq's defaults.
    Defaults,
}

/// The database that the gateway stands before.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// How it is reached.
    pub conninfo: Conninfo,
    /// What named it.
    pub source: Source,
    /// What was written about it on the command line, with its service.
    pub(super) written: Settings,
    /// Text of a MySQL client's that asks for TLS in words that are not known to be turned off.
    keeps_tls: bool,
}

impl Upstream {
    fn new(conninfo: Conninfo, source: Source, written: Settings) -> Self {
        Self { conninfo, source, written, keeps_tls: false }
    }

    /// Finds the database: `--upstream`, else the first variable of `--env`, else the server that one of MySQL's own clients
    /// means, else PG* variables or a service with an address, else DATABASE_URL, else the one server that other variables
    /// name, PostgreSQL's before MySQL's, else that of an option file of MySQL that an argument names, else libpq's defaults.
    ///
    /// # Errors
    /// Text that cannot be understood, a variable of `--env` that is not set, or variables that name different servers
    /// where nothing else says which is meant.
    pub fn find(
        explicit: Option<&str>,
        url_variables: &[String],
        environment: &Environment,
    ) -> Result<Self, LaunchError> {
        if let Some(text) = explicit {
            return Self::of_text(text, Source::CommandLine, environment).map_err(LaunchError::Upstream);
        }
        if let Some(variable) = url_variables.first() {
            return Self::of_variable(variable, environment);
        }
        let command = &environment.command;
        if let Some((settings, source)) =
            mysql_client::server(command, environment).map_err(LaunchError::Upstream)?
        {
            return Self::of_client(settings, source, environment);
        }
        let has_address =
            ADDRESS_VARIABLES.iter().any(|name| environment.os(name).is_some_and(|value| !value.is_empty()));
        if !has_address && environment.os(DATABASE_URL).is_some() {
            match Self::of_variable(DATABASE_URL, environment) {
                Err(LaunchError::Variable { source, .. }) if is_another_database(&source) => {}
                found => return found,
            }
        }
        if !has_address {
            for protocol in Protocol::ALL {
                if let Some(found) = Self::only_one_named(protocol, environment)? {
                    return Ok(found);
                }
            }
            if let Some(found) = Self::of_mysql_host(environment) {
                return Ok(found);
            }
            let named = mysql_client::named_in_files(command, environment).map_err(LaunchError::Upstream)?;
            if let Some((settings, file)) = named {
                return Self::of_client(settings, Some(file), environment);
            }
        }
        let conninfo = Conninfo::from_environment(environment).map_err(LaunchError::Upstream)?;
        let source = if has_address { Source::Environment } else { Source::Defaults };
        Ok(Self::new(conninfo, source, Settings::default()))
    }

    /// The same for a program whose environment is turned towards the gateway: of TLS, the gateway asks for as much as any
    /// variable that names the same server, unless `--upstream` says how much.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn find_for_program(
        explicit: Option<&str>,
        url_variables: &[String],
        environment: &Environment,
    ) -> Result<Self, LaunchError> {
        let mut found = Self::find(explicit, url_variables, environment)?;
        // What the program demands in words that are not known is between it and a MySQL server: its text stays as it is.
        let is_mysql = found.conninfo.protocol == Protocol::Mysql;
        let is_unread = found.keeps_tls || found.conninfo.extra.iter().next().is_some();
        if is_mysql && is_unread && found.source != Source::CommandLine {
            found.conninfo.pass_tls();
        }
        if !explicit.is_some_and(|text| says_tls(text, &found.written)) {
            found.ask_for_tls_as(url_variables, environment);
        }
        Ok(found)
    }

    /// The server that variables of any name mean, where all that mean one of this protocol for certain mean the same.
    fn only_one_named(protocol: Protocol, environment: &Environment) -> Result<Option<Self>, LaunchError> {
        let pairs = naming::pairs(environment).into_iter().filter(|pair| pair.is_of(protocol));
        let pairs = pairs.filter_map(|pair| {
            let mut settings = Settings::default().with_protocol(protocol);
            settings.set("host", pair.server.name());
            settings.set("port", pair.server.port.to_string());
            let conninfo = Conninfo::complete(settings.clone(), environment).ok()?;
            Some((pair.hosts.into_iter().next()?, Self::new(conninfo, Source::Defaults, settings)))
        });
        // Texts first: they know more, such as sslmode. What stands within other text is asked only where nothing else is.
        let is_of = |(_, found): &(String, Self)| found.conninfo.protocol == protocol;
        let mut found: Vec<_> = Self::of_texts(environment).filter(is_of).chain(pairs).collect();
        if found.is_empty() {
            found.extend(Self::of_enclosed(environment).filter(is_of));
        }
        let mut found = found.into_iter();
        let Some((variable, first)) = found.next() else { return Ok(None) };
        match found.find(|(_, other)| !first.is_meant_by(&other.conninfo)) {
            Some((other, elsewhere)) => Err(LaunchError::Several {
                variable,
                address: first.conninfo.address(),
                other,
                other_address: elsewhere.conninfo.address(),
            }),
            None => Ok(Some(Self { source: Source::Variable(variable), ..first })),
        }
    }

    fn of_client(
        settings: Settings,
        source: Option<String>,
        environment: &Environment,
    ) -> Result<Self, LaunchError> {
        let conninfo = Conninfo::complete(settings.clone(), environment).map_err(LaunchError::Upstream)?;
        Ok(Self::new(conninfo, Source::Client(source), settings))
    }

    /// The server of the variable that MySQL's clients read, whose port is the usual one.
    fn of_mysql_host(environment: &Environment) -> Option<Self> {
        let host = environment.var(mysql::HOST_VARIABLE).ok().flatten().filter(|host| !host.is_empty())?;
        let mut settings = Settings::default().with_protocol(Protocol::Mysql);
        settings.set("host", host);
        let conninfo = Conninfo::complete(settings.clone(), environment).ok()?;
        let source = Source::Variable(mysql::HOST_VARIABLE.to_owned());
        Some(Self::new(conninfo, source, settings))
    }

    /// The databases that texts in variables name for certain.
    fn of_texts(environment: &Environment) -> impl Iterator<Item = (String, Self)> {
        let texts = naming::others(environment).filter(|(_, text)| matches!(naming(text), Naming::Own(_)));
        texts.filter_map(|(variable, text)| {
            let found = Self::of_text(text, Source::Variable(variable.to_owned()), environment).ok()?;
            Some((variable.to_owned(), found))
        })
    }

    /// The databases that URLs within longer values name.
    fn of_enclosed(environment: &Environment) -> impl Iterator<Item = (String, Self)> {
        naming::enclosed(environment).flat_map(move |(variable, text, urls)| {
            let found = urls.into_iter().filter_map(move |bytes| {
                Self::of_text(&text[bytes], Source::Variable(variable.to_owned()), environment).ok()
            });
            found.map(move |found| (variable.to_owned(), found))
        })
    }

    /// The program's own leg will be plain, so that what its settings demand of TLS becomes a demand of ours.
    fn ask_for_tls_as(&mut self, url_variables: &[String], environment: &Environment) {
        let is_postgres = self.conninfo.protocol == Protocol::Postgres;
        let own = Conninfo::from_environment(environment).ok().filter(|_| is_postgres);
        let named = url_variables.iter().filter_map(|variable| Self::of_variable(variable, environment).ok());
        let others = Self::of_texts(environment).chain(Self::of_enclosed(environment));
        let texts = named.chain(others.map(|(_, found)| found)).filter(|found| !found.keeps_tls);
        for theirs in own.into_iter().chain(texts.map(|found| found.conninfo)) {
            let is_stricter = theirs.sslmode.requires_tls()
                && theirs.sslmode > self.conninfo.sslmode
                && theirs.protocol == self.conninfo.protocol;
            if !is_stricter || !self.is_meant_by(&theirs) {
                continue;
            }
            for (keyword, value) in theirs.extra.iter().filter(|(keyword, _)| keyword.starts_with("ssl")) {
                self.conninfo.extra.set(keyword, value);
            }
            let Conninfo { passes_tls, sslmode, sslrootcert, sslcert, sslkey, sslsni, .. } = theirs;
            let own = self.conninfo.clone();
            self.conninfo = Conninfo { passes_tls, sslmode, sslrootcert, sslcert, sslkey, sslsni, ..own };
        }
    }

    fn of_variable(variable: &str, environment: &Environment) -> Result<Self, LaunchError> {
        let failed = |source| LaunchError::Variable { variable: variable.to_owned(), source };
        let missing = || LaunchError::Missing { variable: variable.to_owned() };
        let text = environment.var(variable).map_err(failed)?.ok_or_else(missing)?;
        Self::of_text(text, Source::Variable(variable.to_owned()), environment).map_err(failed)
    }

    fn of_text(text: &str, source: Source, environment: &Environment) -> Result<Self, ConninfoError> {
        let settings = Settings::parse(text)?;
        let conninfo = Conninfo::complete(settings.clone(), environment)?;
        // PGSERVICE belongs to the program, not to what was written here.
        let written = match settings.get("service") {
            Some(_) => settings.with_service(environment)?,
            None => settings,
        };
        let keeps_tls = Written::parse(text)
            .is_ok_and(|written| matches!(mysql_tls::turned_off(text, &written), TurnedOff::Unknown(_)));
        let keeps_tls = keeps_tls && conninfo.protocol == Protocol::Mysql;
        Ok(Self { keeps_tls, ..Self::new(conninfo, source, written) })
    }

    /// Whether settings lead to this database: they share a server.
    pub(super) fn is_meant_by(&self, conninfo: &Conninfo) -> bool {
        self.has_host_of(&conninfo.hosts)
    }

    /// Whether one of these servers is ours.
    pub(super) fn has_host_of(&self, hosts: &[Host]) -> bool {
        let ours = &self.conninfo.hosts;
        hosts.iter().any(|host| ours.iter().any(|own| own.is_same_server(host)))
    }
}

/// Whether connection text says how much TLS, by itself or by its service. A JDBC URL implies a mode, which nobody said.
fn says_tls(text: &str, settings: &Settings) -> bool {
    let is_about_tls = |keyword: &str| match settings.protocol() {
        Protocol::Postgres => keyword.starts_with("ssl"),
        Protocol::Mysql => mysql_tls::is_about_tls(keyword),
    };
    match Written::parse(text) {
        Ok(Written { format: Format::Jdbc, entries, .. }) => {
            entries.iter().any(|entry| is_about_tls(&entry.keyword) && !matches!(entry.place, Place::Address))
        }
        _ => settings.iter().any(|(keyword, _)| is_about_tls(keyword)),
    }
}

/// Whether a variable holds something, but not PostgreSQL's address.
pub(super) fn is_another_database(error: &ConninfoError) -> bool {
    matches!(error, ConninfoError::Scheme { .. } | ConninfoError::NotRecognised | ConninfoError::Empty)
}
