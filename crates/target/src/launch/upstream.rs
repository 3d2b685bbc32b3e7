//! Which database a program means.

use super::naming::{self, Naming, Pair, naming};
use super::{DATABASE_URL, LaunchError};
use crate::{Conninfo, ConninfoError, Environment, Settings};

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
}

impl Upstream {
    /// Finds the database: `--upstream`, else the first variable of `--env`, else PG* variables or a service with an
    /// address, else DATABASE_URL, else the one server that other variables name, else libpq's defaults.
    ///
    /// # Errors
    /// Text that cannot be understood, or a variable of `--env` that is not set.
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
        let has_address =
            ADDRESS_VARIABLES.iter().any(|name| environment.os(name).is_some_and(|value| !value.is_empty()));
        if !has_address && environment.os(DATABASE_URL).is_some() {
            match Self::of_variable(DATABASE_URL, environment) {
                Err(LaunchError::Variable { source, .. }) if is_another_database(&source) => {}
                found => return found,
            }
        }
        if let Some(found) = (!has_address).then(|| Self::only_one_named(environment)).flatten() {
            return Ok(found);
        }
        let conninfo = Conninfo::from_environment(environment).map_err(LaunchError::Upstream)?;
        let source = if has_address { Source::Environment } else { Source::Defaults };
        Ok(Self { conninfo, source, written: Settings::default() })
    }

    /// The server that variables of any name mean, where all that mean PostgreSQL for certain mean the same.
    fn only_one_named(environment: &Environment) -> Option<Self> {
        let texts = naming::others(environment).filter(|(_, text)| naming(text) == Naming::Postgres);
        let texts = texts.filter_map(|(variable, text)| {
            Self::of_text(text, Source::Variable(variable.to_owned()), environment).ok()
        });
        let pairs = naming::pairs(environment).into_iter().filter(Pair::is_postgres);
        let pairs = pairs.filter_map(|pair| {
            let mut settings = Settings::default();
            settings.set("host", pair.server.name());
            settings.set("port", pair.server.port.to_string());
            let conninfo = Conninfo::complete(settings.clone(), environment).ok()?;
            let source = Source::Variable(pair.hosts.first()?.clone());
            Some(Self { conninfo, source, written: settings })
        });
        // Texts first: they know more, such as sslmode.
        let mut found = texts.chain(pairs);
        let first = found.next()?;
        found.all(|other| first.is_meant_by(&other.conninfo)).then_some(first)
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
        Ok(Self { conninfo, source, written })
    }

    /// Whether settings lead to this database: they share a server.
    pub(super) fn is_meant_by(&self, conninfo: &Conninfo) -> bool {
        let ours = &self.conninfo.hosts;
        conninfo.hosts.iter().any(|host| ours.iter().any(|own| own.is_same_server(host)))
    }
}

/// Whether a variable holds something, but not PostgreSQL's address.
pub(super) fn is_another_database(error: &ConninfoError) -> bool {
    matches!(error, ConninfoError::Scheme { .. } | ConninfoError::NotRecognised | ConninfoError::Empty)
}
