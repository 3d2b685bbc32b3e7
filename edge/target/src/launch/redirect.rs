//! The changes to a program's environment that make it connect to the gateway instead of its database.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::mysql_client::{self, Leading};
use super::naming::{self, Naming, naming};
use super::upstream::is_another_database;
use super::{DATABASE_URL, LaunchError, Source, Upstream};
use crate::keywords::variable_of;
use crate::mysql_tls::{self, TurnedOff};
use crate::passfile::{Passfile, TempPassfile};
use crate::rewrite::{Override, plain_overrides, rewrite_with, without};
use crate::written::{Format, Written};
use crate::{
    Conninfo, ConninfoError, Environment, Host, Protocol, REDACTED, Settings, SslMode, mysql, redact,
};

/// How a program is turned towards the gateway.
#[derive(Clone, Debug)]
pub struct RedirectOptions<'a> {
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Variables with connection text besides DATABASE_URL (`--env NAME`); they must exist and lead to the upstream.
    pub url_variables: &'a [String],
    /// What an `sslmode` that insists on TLS becomes, since the program's leg is plain: see
    /// [`crate::ClientTls::Plain`].
    pub sslmode: SslMode,
}

/// What is different in the program's environment. Keep it until the program has ended: it owns temporary files.
#[derive(Debug, Default)]
pub struct Redirect {
    /// Variables with their new values, which may hold passwords.
    pub set: Vec<(String, OsString)>,
    /// Variables that are taken away.
    pub unset: Vec<String>,
    /// What changed, for people.
    pub notes: Vec<Change>,
    /// What could have been meant and was left as it is, for people.
    pub untouched: Vec<Untouched>,
    /// Arguments that the program gets behind its own options.
    pub arguments: Vec<OsString>,
    /// How many of its own words come after them, at the end: those that are no options.
    pub words_after_arguments: usize,
    /// Password files that know the gateway's address.
    pub passfiles: Vec<TempPassfile>,
}

impl Redirect {
    /// libpq binds no login to the certificate that it sees. It does by default where the database offers it, and the
    /// database refuses a login that is bound to the gateway's certificate, or that was meant to be.
    pub fn bind_no_channel(&mut self, environment: &Environment) {
        const VARIABLE: &str = "PGCHANNELBINDING";
        const DISABLED: &str = "disable";
        let own = environment.var(VARIABLE).ok().flatten();
        if own == Some(DISABLED) {
            return;
        }
        self.set.retain(|(name, _)| name != VARIABLE);
        self.notes.retain(|change| change.variable != VARIABLE);
        self.set.push((VARIABLE.to_owned(), DISABLED.into()));
        let (from, to) = (own.map(str::to_owned), Some(DISABLED.to_owned()));
        self.notes.push(Change { variable: VARIABLE.to_owned(), from, to });
    }
}

/// One change, secrets hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The variable.
    pub variable: String,
    /// Its value for the program that started us; `None` if it was not set.
    pub from: Option<String>,
    /// Its value for the child; `None` if it is taken away.
    pub to: Option<String>,
}

/// A variable or file that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untouched {
    /// The variable or file.
    pub what: String,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = &self.variable;
        match (&self.from, &self.to) {
            (Some(from), Some(to)) => write!(formatter, "{variable}={to} (was {from})"),
            (None, Some(to)) => write!(formatter, "{variable}={to} (was not set)"),
            (Some(from), None) => write!(formatter, "{variable} taken away (was {from})"),
            (None, None) => write!(formatter, "{variable} not set"),
        }
    }
}

impl fmt::Display for Untouched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} left as it is: {}", self.what, self.reason)
    }
}

/// Computes the changes.
///
/// PG* variables are turned when they lead to the upstream or the upstream was named on the command line;
/// DATABASE_URL likewise; variables that were named, always. Of all others, those that name the upstream's host and
/// port, in connection text, in a URL within longer text, or as a pair of variables.
///
/// # Errors
/// A named variable that is missing, unreadable or leads elsewhere; a service that does not exist; no place for a
/// temporary file.
pub fn redirect(
    environment: &Environment,
    upstream: &Upstream,
    options: &RedirectOptions<'_>,
) -> Result<Redirect, LaunchError> {
    let child = environment.clone();
    let origins = upstream.conninfo.hosts.clone();
    let mut work = Work { environment, upstream, options, child, origins, result: Redirect::default() };
    match upstream.conninfo.protocol {
        Protocol::Postgres => work.turn_pg_variables()?,
        Protocol::Mysql => work.turn_mysql_variables(),
    }
    for variable in options.url_variables {
        work.turn_named_variable(variable)?;
    }
    if !options.url_variables.iter().any(|variable| variable == DATABASE_URL) {
        work.turn_database_url()?;
    }
    work.turn_other_texts()?;
    work.turn_enclosed()?;
    work.turn_pairs();
    if upstream.conninfo.protocol == Protocol::Postgres {
        work.turn_passfile()?;
    }
    let Redirect { notes, untouched, .. } = &mut work.result;
    // A later step may have found the address within the text: in quotes, or between blanks.
    untouched.retain(|left| !notes.iter().any(|change| change.variable == left.what));
    Ok(work.result)
}

fn asks_for_tls(setting: &str) -> String {
    format!(
        "{setting} asks for TLS with the database, which the gateway cannot see into. Leave it out, and let the gateway speak \
         TLS: --upstream 'mysql://HOST?ssl-mode=REQUIRED'"
    )
}

/// A redirect in the making.
struct Work<'a> {
    environment: &'a Environment,
    upstream: &'a Upstream,
    options: &'a RedirectOptions<'a>,
    /// What the program will see.
    child: Environment,
    /// Every server that the gateway stands in for: the password file may know any of them.
    origins: Vec<Host>,
    result: Redirect,
}

impl Work<'_> {
    fn turn_pg_variables(&mut self) -> Result<(), LaunchError> {
        let own = Conninfo::from_environment(self.environment);
        let meant = own.as_ref().is_ok_and(|own| self.upstream.is_meant_by(own));
        if !meant && self.upstream.source != Source::CommandLine {
            return Ok(());
        }
        self.origins.extend(own.into_iter().flat_map(|own| own.hosts));
        self.move_service()?;
        if self.upstream.source == Source::CommandLine {
            for keyword in ["user", "dbname", "password"] {
                if let (Some(value), Some(variable)) =
                    (self.upstream.written.get_nonempty(keyword), variable_of(keyword))
                {
                    self.set(variable, value);
                }
            }
        }
        let gateway = self.options.gateway;
        self.set("PGHOST", gateway.ip().to_string());
        self.set("PGPORT", gateway.port().to_string());
        self.unset("PGHOSTADDR");
        let settings = Settings::default().with_environment(&self.child).map_err(LaunchError::Upstream)?;
        for change in plain_overrides(&settings, self.options.sslmode) {
            match variable_of(change.keyword) {
                Some(variable) if change.value.is_empty() => self.unset(variable),
                Some(variable) => self.set(variable, change.value),
                None => {}
            }
        }
        Ok(())
    }

    /// The variables that MySQL's clients and their programs read. Pairs of them are turned with all others; a host alone stays:
    /// a program that reads it by itself would take the usual port of this machine.
    fn turn_mysql_variables(&mut self) {
        let gateway = self.options.gateway;
        let command = &self.environment.command;
        // Option files go before variables, and arguments before both.
        match mysql_client::leading(command, self.environment, gateway) {
            Some(Leading::By(arguments, words)) => {
                self.result.arguments = arguments.into();
                self.result.words_after_arguments = words;
                return;
            }
            Some(Leading::InsistsOnTls(option)) => {
                let what =
                    command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                let reason = asks_for_tls(&format!("its option {option}"));
                self.result.untouched.push(Untouched { what, reason });
                return;
            }
            None => {}
        }
        if let Source::Client(Some(file)) = &self.upstream.source {
            let reason = "a program that reads it is led by --redirect".to_owned();
            self.result.untouched.push(Untouched { what: file.clone(), reason });
        }
        if self.upstream.source == Source::CommandLine {
            self.set(mysql::HOST_VARIABLE, gateway.ip().to_string());
            for variable in mysql::PORT_VARIABLES {
                self.set(variable, gateway.port().to_string());
            }
            return;
        }
        let has_port = mysql::PORT_VARIABLES.iter().any(|variable| self.environment.os(variable).is_some());
        let own = self.environment.var(mysql::HOST_VARIABLE).ok().flatten().filter(|host| !host.is_empty());
        let Some(own) = own.filter(|_| !has_port) else { return };
        if self.upstream.has_host_of(&[Host::tcp(own, Protocol::Mysql.port())]) {
            let [tcp, other] = mysql::PORT_VARIABLES;
            let reason = format!("no variable names its port: set {tcp} or {other} too, or use --redirect");
            self.result.untouched.push(Untouched { what: mysql::HOST_VARIABLE.to_owned(), reason });
        }
    }

    /// A service would lead the program past the gateway, so its settings become variables. Those without a variable
    /// concern the socket (keepalives) or the server's TLS, which are the gateway's now.
    fn move_service(&mut self) -> Result<(), LaunchError> {
        if self.environment.os("PGSERVICE").is_none() {
            return Ok(());
        }
        let service = Settings::default().with_service(self.environment).map_err(LaunchError::Upstream)?;
        for (keyword, value) in service.iter() {
            if let Some(variable) = variable_of(keyword) {
                self.set(variable, value);
            }
        }
        self.unset("PGSERVICE");
        Ok(())
    }

    fn turn_named_variable(&mut self, variable: &str) -> Result<(), LaunchError> {
        let failed = |source| LaunchError::Variable { variable: variable.to_owned(), source };
        let text = self.environment.var(variable).map_err(failed)?;
        let text = text.ok_or_else(|| LaunchError::Missing { variable: variable.to_owned() })?;
        let conninfo = Conninfo::parse(text, self.environment).map_err(failed)?;
        if !self.is_turned(variable, text, &conninfo) {
            return Err(LaunchError::Elsewhere {
                variable: variable.to_owned(),
                address: conninfo.address(),
                upstream: self.upstream.conninfo.address(),
            });
        }
        self.turn_text(variable, text, &conninfo)
    }

    /// Nobody asked for DATABASE_URL, so whatever is odd about it is only worth a note.
    fn turn_database_url(&mut self) -> Result<(), LaunchError> {
        let Some(text) = self.environment.var(DATABASE_URL).ok().flatten() else { return Ok(()) };
        let reason = match Conninfo::parse(text, self.environment) {
            _ if naming(text).is_of_another(self.upstream.conninfo.protocol) => self.is_of_another(),
            Ok(conninfo) if self.is_turned(DATABASE_URL, text, &conninfo) => {
                return self.turn_text(DATABASE_URL, text, &conninfo);
            }
            Ok(conninfo) => self.leads_elsewhere(&conninfo),
            Err(ConninfoError::Empty) => return Ok(()),
            Err(error) if is_another_database(&error) => self.is_of_another(),
            Err(error) => error.to_string(),
        };
        self.result.untouched.push(Untouched { what: DATABASE_URL.to_owned(), reason });
        Ok(())
    }

    /// Connection text in variables that nobody named: only if it leads to the upstream for certain.
    fn turn_other_texts(&mut self) -> Result<(), LaunchError> {
        for (variable, text) in naming::others(self.environment) {
            let is_done =
                variable == DATABASE_URL || self.options.url_variables.iter().any(|name| name == variable);
            let naming = naming(text);
            if is_done || naming == Naming::Nothing || naming.is_of_another(self.upstream.conninfo.protocol) {
                continue;
            }
            let reason = match Conninfo::parse(text, self.environment) {
                Ok(conninfo) if self.upstream.is_meant_by(&conninfo) => {
                    self.turn_text(variable, text, &conninfo)?;
                    continue;
                }
                Ok(conninfo) => self.leads_elsewhere(&conninfo),
                Err(error) => error.to_string(),
            };
            if matches!(naming, Naming::Own(_)) {
                self.result.untouched.push(Untouched { what: variable.to_owned(), reason });
            }
        }
        Ok(())
    }

    /// URLs within longer values, such as the options of a JVM; what surrounds them stays, and is not shown.
    fn turn_enclosed(&mut self) -> Result<(), LaunchError> {
        for (variable, text, urls) in naming::enclosed(self.environment) {
            if self.options.url_variables.iter().any(|name| name == variable) {
                continue;
            }
            let (mut changed, mut from, mut to) = (text.to_owned(), Vec::new(), Vec::new());
            for bytes in urls.into_iter().rev() {
                let url = &text[bytes.clone()];
                if naming(url).is_of_another(self.upstream.conninfo.protocol) {
                    continue;
                }
                let moved = match Conninfo::parse(url, self.environment) {
                    Ok(conninfo) if self.upstream.is_meant_by(&conninfo) => {
                        if let Some(reason) = self.stays_for_tls(url) {
                            let what = format!("a URL within {variable}");
                            self.result.untouched.push(Untouched { what, reason });
                            continue;
                        }
                        self.moved(variable, url, &conninfo)?
                    }
                    other => {
                        let reason = other.map_or_else(
                            |error| error.to_string(),
                            |conninfo| self.leads_elsewhere(&conninfo),
                        );
                        let what = format!("a URL within {variable}");
                        self.result.untouched.push(Untouched { what, reason });
                        continue;
                    }
                };
                from.insert(0, format!("…{}…", redact(url)));
                to.insert(0, format!("…{}…", redact(&moved)));
                changed.replace_range(bytes, &moved);
            }
            if !from.is_empty() {
                self.record(variable, Some(changed.into()), Some(from.join(" ")), Some(to.join(" ")));
            }
        }
        Ok(())
    }

    fn leads_elsewhere(&self, conninfo: &Conninfo) -> String {
        format!("it leads to {}, not to {}", conninfo.address(), self.upstream.conninfo.address())
    }

    /// Host and port in variables of their own.
    fn turn_pairs(&mut self) {
        let gateway = self.options.gateway;
        for pair in naming::pairs(self.environment) {
            if !self.upstream.conninfo.hosts.iter().any(|host| host.is_same_server(&pair.server)) {
                continue;
            }
            if let Some(rival) = pair.rival {
                let what = format!("{} with {}", pair.hosts.join(", "), pair.port);
                let reason = format!("{rival} names another server and may share {}", pair.port);
                self.result.untouched.push(Untouched { what, reason });
                continue;
            }
            for host in &pair.hosts {
                let own = self.environment.var(host).ok().flatten().map_or("", str::trim);
                let repeats_port = naming::without_port(own, pair.server.port) != own;
                self.set(host, if repeats_port { gateway.to_string() } else { gateway.ip().to_string() });
            }
            self.set(&pair.port, gateway.port().to_string());
            self.origins.push(pair.server);
        }
    }

    fn is_of_another(&self) -> String {
        format!("it is not {}'s", self.upstream.conninfo.protocol)
    }

    fn is_turned(&self, variable: &str, text: &str, conninfo: &Conninfo) -> bool {
        if naming(text).is_of_another(self.upstream.conninfo.protocol) {
            return false;
        }
        match &self.upstream.source {
            Source::CommandLine => true,
            Source::Variable(source) if source == variable => true,
            _ => self.upstream.is_meant_by(conninfo),
        }
    }

    fn turn_text(&mut self, variable: &str, text: &str, conninfo: &Conninfo) -> Result<(), LaunchError> {
        if let Some(reason) = self.stays_for_tls(text) {
            self.result.untouched.push(Untouched { what: variable.to_owned(), reason });
            return Ok(());
        }
        let moved = self.moved(variable, text, conninfo)?;
        let (from, to) = (redact(text), redact(&moved));
        self.record(variable, Some(moved.into()), Some(from), Some(to));
        Ok(())
    }

    /// Why text of a client that speaks TLS with a MySQL server stays: the gateway does not speak it in the client's place, or
    /// it is not known how the client is told to speak none.
    fn stays_for_tls(&self, text: &str) -> Option<String> {
        if self.upstream.conninfo.protocol != Protocol::Mysql {
            return None;
        }
        let passes_tls = self.upstream.conninfo.passes_tls;
        match mysql_tls::turned_off(text, &Written::parse(text).ok()?) {
            TurnedOff::By { keyword, .. } if passes_tls => Some(asks_for_tls(keyword)),
            TurnedOff::Unknown(keyword) => Some(asks_for_tls(&keyword)),
            TurnedOff::By { .. } | TurnedOff::AsItIs => None,
        }
    }

    /// Connection text, pointed at the gateway.
    fn moved(&mut self, variable: &str, text: &str, conninfo: &Conninfo) -> Result<String, LaunchError> {
        let failed = |source| LaunchError::Variable { variable: variable.to_owned(), source };
        if self.upstream.conninfo.protocol == Protocol::Mysql {
            let gateway = self.options.gateway;
            let written = Written::parse(text).map_err(failed)?;
            let mut overrides = mysql::without_socket(&written);
            let turned_off = mysql_tls::turned_off(text, &written);
            if let TurnedOff::By { keyword, value } = turned_off {
                overrides.push(Override { keyword, value: value.to_owned() });
            }
            let moved = rewrite_with(text, &gateway.ip().to_string(), gateway.port(), &overrides);
            return match turned_off {
                TurnedOff::By { .. } => moved.and_then(|moved| without(&moved, mysql_tls::is_file)),
                _ => moved,
            }
            .map_err(failed);
        }
        let settings = self.as_the_program_sees(text).map_err(failed)?;
        let mut overrides = plain_overrides(&settings, self.options.sslmode);
        self.origins.extend(conninfo.hosts.iter().cloned());
        let written = Settings::parse(text).map_err(failed)?;
        if let Some(path) = written.get_nonempty("passfile") {
            if let Some(copy) = self.copy_passfile(PathBuf::from(path))? {
                let value = copy.path().to_string_lossy().into_owned();
                overrides.push(Override { keyword: "passfile", value });
                self.result.passfiles.push(copy);
            }
        }
        let gateway = self.options.gateway;
        rewrite_with(text, &gateway.ip().to_string(), gateway.port(), &overrides).map_err(failed)
    }

    /// libpq fills what a text leaves open from a service and the environment; pgJDBC and Npgsql do not.
    fn as_the_program_sees(&self, text: &str) -> Result<Settings, ConninfoError> {
        let written = Written::parse(text)?;
        let is_alone = matches!(written.format, Format::Jdbc | Format::Pairs { .. });
        let settings = Settings::of_written(written);
        if is_alone {
            Ok(settings)
        } else {
            settings.with_service(&self.child)?.with_environment(&self.child)
        }
    }

    fn turn_passfile(&mut self) -> Result<(), LaunchError> {
        let named = self.child.os("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = named.or_else(|| self.environment.home.as_ref().map(|home| home.join(".pgpass")));
        let Some(path) = path else { return Ok(()) };
        if let Some(copy) = self.copy_passfile(path)? {
            self.set("PGPASSFILE", copy.path());
            self.result.passfiles.push(copy);
        }
        Ok(())
    }

    /// A file that libpq would ignore is left to it.
    fn copy_passfile(&mut self, path: PathBuf) -> Result<Option<TempPassfile>, LaunchError> {
        match Passfile::read(&path) {
            Ok(None) => Ok(None),
            Ok(Some(file)) => {
                file.rekeyed(&self.origins, self.options.gateway).map_err(LaunchError::Passfile)
            }
            Err(error) => {
                let what = path.display().to_string();
                self.result.untouched.push(Untouched { what, reason: error.to_string() });
                Ok(None)
            }
        }
    }

    fn set(&mut self, variable: &str, value: impl AsRef<OsStr>) {
        let value = value.as_ref();
        if self.child.os(variable) != Some(value) {
            let shown = |value: &OsStr| match variable {
                "PGPASSWORD" => REDACTED.to_owned(),
                _ => value.to_string_lossy().into_owned(),
            };
            let from = self.environment.os(variable).map(shown);
            self.record(variable, Some(value.to_owned()), from, Some(shown(value)));
        }
    }

    fn unset(&mut self, variable: &str) {
        if self.child.os(variable).is_some() {
            let from = self.environment.os(variable).map(|value| value.to_string_lossy().into_owned());
            self.record(variable, None, from, None);
        }
    }

    /// Notes a change in place of an earlier one of the same variable.
    fn record(&mut self, variable: &str, value: Option<OsString>, from: Option<String>, to: Option<String>) {
        let changed = self.environment.os(variable) != value.as_deref();
        let result = &mut self.result;
        result.set.retain(|(name, _)| name != variable);
        result.unset.retain(|name| name != variable);
        result.notes.retain(|change| change.variable != variable);
        match value {
            Some(value) => {
                self.child.set(variable, value.clone());
                result.set.push((variable.to_owned(), value));
            }
            None => {
                self.child.unset(variable);
                result.unset.push(variable.to_owned());
            }
        }
        if changed {
            result.notes.push(Change { variable: variable.to_owned(), from, to });
        }
    }
}
