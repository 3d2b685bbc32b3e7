//! Run-time settings: what SET takes and SHOW gives.

use std::collections::BTreeMap;
use std::time::Duration;

use super::timeout;
use crate::error::{SqlError, SqlResult};

/// The version that drivers are told, and take their dialect from.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Name, value at start, and how much a client may change.
const KNOWN: [(&str, &str, Change); 46] = [
    ("application_name", "", Change::Any),
    ("bytea_output", "hex", Change::OnlyTo),
    ("client_encoding", "UTF8", Change::Encoding),
    ("client_min_messages", "notice", Change::Any),
    ("datestyle", "ISO, MDY", Change::DateStyle),
    ("default_table_access_method", "heap", Change::Any),
    ("default_tablespace", "", Change::Any),
    ("default_text_search_config", "pg_catalog.english", Change::Any),
    ("default_transaction_deferrable", "off", Change::Any),
    ("default_transaction_isolation", "read committed", Change::Any),
    ("default_transaction_read_only", "off", Change::Any),
    ("check_function_bodies", "on", Change::Any),
    ("enable_seqscan", "on", Change::Any),
    ("escape_string_warning", "on", Change::Any),
    ("extra_float_digits", "1", Change::Ignored),
    ("geqo", "on", Change::Any),
    ("idle_in_transaction_session_timeout", "0", Change::Time),
    ("idle_session_timeout", "0", Change::Time),
    ("in_hot_standby", "off", Change::Never),
    ("integer_datetimes", "on", Change::Never),
    ("intervalstyle", "postgres", Change::OnlyTo),
    ("is_superuser", "on", Change::Never),
    ("jit", "on", Change::Any),
    ("lc_collate", "C", Change::Never),
    ("lc_ctype", "C", Change::Never),
    ("lc_messages", "C", Change::Any),
    ("lc_monetary", "C", Change::Any),
    ("lc_numeric", "C", Change::Any),
    ("lc_time", "C", Change::Any),
    ("lock_timeout", "0", Change::Time),
    ("max_identifier_length", "63", Change::Never),
    ("max_index_keys", "32", Change::Never),
    ("row_security", "on", Change::Any),
    ("search_path", "\"$user\", public", Change::Any),
    ("server_encoding", "UTF8", Change::Never),
    ("server_version", SERVER_VERSION, Change::Never),
    ("server_version_num", "150000", Change::Never),
    ("session_authorization", "", Change::Never),
    ("standard_conforming_strings", "on", Change::OnlyTo),
    ("statement_timeout", "0", Change::Time),
    ("synchronous_commit", "on", Change::Ignored),
    ("timezone", "UTC", Change::TimeZone),
    ("transaction_isolation", "read committed", Change::Any),
    ("transaction_read_only", "off", Change::Any),
    ("work_mem", "4MB", Change::Any),
    ("xmloption", "content", Change::Any),
];

/// Settings whose changes PostgreSQL reports with a ParameterStatus, by the name it uses there.
const REPORTED: [(&str, &str); 13] = [
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    ("default_transaction_read_only", "default_transaction_read_only"),
    ("in_hot_standby", "in_hot_standby"),
    ("integer_datetimes", "integer_datetimes"),
    ("intervalstyle", "IntervalStyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("session_authorization", "session_authorization"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("timezone", "TimeZone"),
];

/// Most settings of a client's own making (`name.with_dot`), and the longest value.
const CUSTOM_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 8 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Kept and shown; most mean nothing here.
    Any,
    /// Any value is taken, and the server stays as it is: its one value serves all.
    Ignored,
    Never,
    /// Only to the value it has.
    OnlyTo,
    Encoding,
    DateStyle,
    TimeZone,
    /// Kept as PostgreSQL would show it.
    Time,
}

/// The settings of one session.
pub(crate) struct Settings {
    values: BTreeMap<String, String>,
    /// Values before the transaction; `None` where there was none.
    saved: Vec<(String, Option<String>, IsLocal)>,
    /// Reported settings that changed since they were last reported.
    changed: Vec<&'static str>,
    statement_timeout: Option<Duration>,
}

type IsLocal = bool;

impl Settings {
    pub(crate) fn new(user: &str) -> Self {
        let mut values: BTreeMap<_, _> =
            KNOWN.iter().map(|(name, value, _)| ((*name).to_owned(), (*value).to_owned())).collect();
        values.insert("session_authorization".to_owned(), user.to_owned());
        Self { values, saved: Vec::new(), changed: Vec::new(), statement_timeout: None }
    }

    pub(crate) fn get(&self, name: &str) -> SqlResult<&str> {
        let name = name.to_ascii_lowercase();
        self.values.get(&name).map(String::as_str).ok_or_else(|| unrecognized(&name))
    }

    /// Sets, or resets where the value is `None`.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> SqlResult<()> {
        let name = name.to_ascii_lowercase();
        let known = KNOWN.iter().find(|(known, _, _)| *known == name);
        if value.is_some_and(|value| value.len() > VALUE_BYTES_MAX) {
            return Err(SqlError::new("22023", format!("value of parameter \"{name}\" is too long")));
        }
        let value = match known {
            Some((_, default, change)) => match accepted(&name, default, *change, value)? {
                Some(value) => value,
                None => return Ok(()),
            },
            None if !name.contains('.') => return Err(unrecognized(&name)),
            None if value.is_none() => {
                self.values.remove(&name);
                return Ok(());
            }
            None => {
                let customs = self.values.len() - KNOWN.len();
                if customs >= CUSTOM_MAX && !self.values.contains_key(&name) {
                    return Err(SqlError::new("54000", "too many custom parameters"));
                }
                value.unwrap_or_default().to_owned()
            }
        };
        self.put(name, value, is_local);
        Ok(())
    }

    fn put(&mut self, name: String, value: String, is_local: bool) {
        let before = self.store(&name, Some(value.clone()));
        if before.as_deref() == Some(value.as_str()) {
            return;
        }
        self.mark_changed(&name);
        if self.saved.len() < 4 * CUSTOM_MAX {
            self.saved.push((name, before, is_local));
        }
    }

    /// Puts a value in place; gives the one before.
    fn store(&mut self, name: &str, value: Option<String>) -> Option<String> {
        if name == "statement_timeout" {
            self.statement_timeout =
                value.as_deref().and_then(timeout::parse).filter(|timeout| !timeout.is_zero());
        }
        match value {
            Some(value) => self.values.insert(name.to_owned(), value),
            None => self.values.remove(name),
        }
    }

    /// How long a statement may take.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        self.statement_timeout
    }

    fn mark_changed(&mut self, name: &str) {
        if let Some((_, shown)) = REPORTED.iter().find(|(known, _)| *known == name) {
            if !self.changed.contains(shown) {
                self.changed.push(shown);
            }
        }
    }

    pub(crate) fn reset_all(&mut self) {
        for (name, default, change) in KNOWN {
            if !matches!(change, Change::Never) {
                self.put(name.to_owned(), default.to_owned(), false);
            }
        }
        self.values.retain(|name, _| !name.contains('.'));
    }

    /// What [`Self::roll_back_to`] takes: how many changes the transaction has made.
    pub(crate) fn mark(&self) -> usize {
        self.saved.len()
    }

    /// Undoes the changes since a mark.
    pub(crate) fn roll_back_to(&mut self, mark: usize) {
        while self.saved.len() > mark {
            let Some((name, before, _)) = self.saved.pop() else { return };
            self.mark_changed(&name);
            self.store(&name, before);
        }
    }

    /// A transaction ended: its local settings end, and after a rollback all that it set.
    pub(crate) fn end_transaction(&mut self, is_committed: bool) {
        while let Some((name, before, is_local)) = self.saved.pop() {
            if is_committed && !is_local {
                continue;
            }
            self.mark_changed(&name);
            self.store(&name, before);
        }
    }

    /// Takes the settings to report, by the name that clients know, with their value.
    pub(crate) fn take_changed(&mut self) -> Option<(&'static str, &str)> {
        let shown = self.changed.pop()?;
        self.values.get(&shown.to_ascii_lowercase()).map(|value| (shown, value.as_str()))
    }

    /// All reported settings, for the start of a session.
    pub(crate) fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        REPORTED
            .iter()
            .filter_map(|(name, shown)| self.values.get(*name).map(|value| (*shown, value.as_str())))
    }

    /// Forgets changes made before the session was told anything.
    pub(crate) fn start(&mut self) {
        self.saved.clear();
        self.changed.clear();
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// The value to keep, or `None` where the setting stays as it is.
fn accepted(name: &str, default: &str, change: Change, value: Option<&str>) -> SqlResult<Option<String>> {
    let Some(value) = value else {
        return Ok((change != Change::Never).then(|| default.to_owned()));
    };
    let invalid = || SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
    match change {
        Change::Any => Ok(Some(value.to_owned())),
        Change::Ignored => Ok(None),
        Change::Never => Err(SqlError::new("55P02", format!("parameter \"{name}\" cannot be changed"))),
        Change::OnlyTo => {
            let is_on = matches!(default, "on")
                && matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "1");
            if value.eq_ignore_ascii_case(default) || is_on { Ok(None) } else { Err(invalid()) }
        }
        Change::Encoding => {
            let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            if matches!(plain.to_ascii_lowercase().as_str(), "utf8" | "unicode") {
                Ok(None)
            } else {
                Err(invalid())
            }
        }
        Change::DateStyle => {
            let is_iso = value.split(',').any(|word| word.trim().eq_ignore_ascii_case("iso"));
            if is_iso { Ok(None) } else { Err(SqlError::unsupported("only DateStyle ISO is supported")) }
        }
        // Every moment is shown with its offset, so that UTC is right for every client.
        Change::TimeZone => Ok(None),
        Change::Time => timeout::parse(value).map(|time| Some(timeout::shown(time))).ok_or_else(invalid),
    }
}

fn unrecognized(name: &str) -> SqlError {
    SqlError::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_after_a_rollback_and_local_ones_after_a_commit() {
        let mut settings = Settings::new("ann");
        settings.set("application_name", Some("one"), false).unwrap();
        settings.end_transaction(true);
        settings.set("application_name", Some("two"), true).unwrap();
        settings.end_transaction(true);
        assert_eq!(settings.get("application_name"), Ok("one"));
        settings.set("application_name", Some("three"), false).unwrap();
        settings.end_transaction(false);
        assert_eq!(settings.get("Application_Name"), Ok("one"));
        assert_eq!(settings.take_changed(), Some(("application_name", "one")));
        assert_eq!(settings.take_changed(), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut settings = Settings::new("ann");
        let mut state = |name, value| settings.set(name, Some(value), false).map_err(|error| error.sqlstate);
        assert_eq!(state("client_encoding", "LATIN1"), Err("22023"));
        assert_eq!(state("client_encoding", "utf-8"), Ok(()));
        assert_eq!(state("server_version", "9"), Err("55P02"));
        assert_eq!(state("nonsense", "1"), Err("42704"));
        assert_eq!(state("onetrip.scope", "checkout"), Ok(()));
        assert_eq!(state("standard_conforming_strings", "off"), Err("22023"));
    }
}
