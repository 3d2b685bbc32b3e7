//! Connection settings as libpq's keywords and values, before any default is filled in.

use std::fmt;

use crate::keywords::{KEYWORDS, is_keyword};
use crate::rewrite::REDACTED;
use crate::written::{Written, quote};
use crate::{ConninfoError, Environment, Protocol, host, service};

/// Keywords with values, each once, in the order in which they were first given.
///
/// The order of precedence is libpq's: what was written, then the service file, then the environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Settings {
    values: Vec<(String, String)>,
    protocol: Protocol,
}

impl Settings {
    /// Reads a URL, JDBC URL, keyword/value text, or `host:port`.
    ///
    /// Parameters that libpq does not know are kept: other drivers have them. See [`Settings::unknown`].
    ///
    /// # Errors
    /// Text in none of these notations, or with a mistake in it; the message names the place, never the value.
    pub fn parse(text: &str) -> Result<Self, ConninfoError> {
        Ok(Self::of_written(Written::parse(text)?))
    }

    pub(crate) fn of_written(written: Written) -> Self {
        let mut settings = Self { protocol: written.protocol, ..Self::default() };
        for entry in written.entries {
            settings.set(&entry.keyword, entry.value);
        }
        settings
    }

    /// Adds what the service file says about the service named in these settings or in PGSERVICE.
    ///
    /// # Errors
    /// A service that is not defined, or a file that cannot be read.
    pub fn with_service(mut self, environment: &Environment) -> Result<Self, ConninfoError> {
        let name = match self.get("service") {
            Some(name) => Some(name.to_owned()),
            None => environment.var("PGSERVICE")?.map(str::to_owned),
        };
        if let Some(name) = name {
            for (keyword, value) in service::load(&name, environment)? {
                self.set_default(&keyword, &value);
            }
        }
        Ok(self)
    }

    /// Adds what the PG* variables say.
    ///
    /// # Errors
    /// [`ConninfoError::NotUtf8`] for a value that is not UTF-8.
    pub fn with_environment(mut self, environment: &Environment) -> Result<Self, ConninfoError> {
        for keyword in KEYWORDS {
            if let Some(variable) = keyword.variable {
                if let Some(value) = environment.var(variable)? {
                    if keyword.name == "port" && self.get("port").is_none() {
                        host::check_ports(value).map_err(|_| ConninfoError::Value {
                            keyword: "PGPORT",
                            expected: "a number from 1 to 65535, or several with commas",
                        })?;
                    }
                    self.set_default(keyword.name, value);
                }
            }
        }
        // Deprecated, but libpq still reads it where sslmode is not given.
        if environment.var("PGREQUIRESSL")? == Some("1") {
            self.set_default("sslmode", "require");
        }
        Ok(self)
    }

    /// The protocol that they are for.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The same settings, for this protocol.
    pub(crate) fn with_protocol(self, protocol: Protocol) -> Self {
        Self { protocol, ..self }
    }

    /// The value of a keyword. An empty value is a value, as in libpq: it hides the environment's.
    pub fn get(&self, keyword: &str) -> Option<&str> {
        self.values.iter().find(|(name, _)| name == keyword).map(|(_, value)| value.as_str())
    }

    /// The value of a keyword unless it is empty.
    pub fn get_nonempty(&self, keyword: &str) -> Option<&str> {
        self.get(keyword).filter(|value| !value.is_empty())
    }

    /// Gives a keyword a value, in place of the one it had.
    pub fn set(&mut self, keyword: &str, value: impl Into<String>) {
        match self.values.iter_mut().find(|(name, _)| name == keyword) {
            Some((_, old)) => *old = value.into(),
            None => self.values.push((keyword.to_owned(), value.into())),
        }
    }

    fn set_default(&mut self, keyword: &str, value: &str) {
        if self.get(keyword).is_none() {
            self.values.push((keyword.to_owned(), value.to_owned()));
        }
    }

    /// All keywords with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(keyword, value)| (keyword.as_str(), value.as_str()))
    }

    /// Keywords that libpq does not know: another driver's parameters, or slips of the pen worth a warning.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(keyword, _)| keyword).filter(|keyword| !is_keyword(keyword))
    }

    /// Keyword/value text that [`Settings::parse`] reads back to the same settings. It holds the password.
    pub fn to_dsn(&self) -> String {
        let pairs = self.iter().map(|(keyword, value)| format!("{keyword}={}", quote(value)));
        pairs.collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(keyword, value)| (keyword, if is_secret(keyword) { REDACTED } else { value });
        formatter.debug_map().entries(self.iter().map(shown)).finish()
    }
}

/// Whether a value must never be shown. Unknown keywords of other drivers are judged by their names.
pub fn is_secret(keyword: &str) -> bool {
    let keyword = keyword.to_ascii_lowercase();
    ["password", "passwd", "pwd", "secret", "token", "_key", "credential"]
        .iter()
        .any(|part| keyword.contains(part))
}
