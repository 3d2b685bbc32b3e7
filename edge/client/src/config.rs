use std::str::FromStr;

use onetrip_login::{ChannelBinding, Login};
use onetrip_target::{Conninfo, Environment, Host, RequireAuth, Secret, passfile};
use onetrip_wire::pg::{PROTOCOL_3_0, ProtocolVersion};

use crate::ConnectError;
use crate::core::Limits;

const PROTOCOL_3_2: ProtocolVersion = ProtocolVersion { major: 3, minor: 2 };

/// Which of several servers will do: libpq's `target_session_attrs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetSession {
    /// The first that answers.
    #[default]
    Any,
    /// One whose sessions may write.
    ReadWrite,
    /// One whose sessions may not.
    ReadOnly,
    /// One that is not in recovery.
    Primary,
    /// One that is.
    Standby,
    /// A standby if there is one, else any.
    PreferStandby,
}

impl TargetSession {
    const ALL: [Self; 6] =
        [Self::Any, Self::ReadWrite, Self::ReadOnly, Self::Primary, Self::Standby, Self::PreferStandby];

    /// The word libpq uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Primary => "primary",
            Self::Standby => "standby",
            Self::PreferStandby => "prefer-standby",
        }
    }

    /// Whether a server with these two traits will do.
    pub fn accepts(self, is_standby: bool, is_read_only: bool) -> bool {
        match self {
            Self::Any => true,
            Self::ReadWrite => !is_read_only,
            Self::ReadOnly => is_read_only,
            Self::Primary => !is_standby,
            Self::Standby | Self::PreferStandby => is_standby,
        }
    }
}

/// How to connect, and what the connection may take.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where the server is and who logs in, by libpq's rules.
    pub conninfo: Conninfo,
    /// Pipelining, the statement cache, and bounds.
    pub limits: Limits,
    /// Settings that the session starts with, such as `search_path`.
    pub settings: Vec<(String, String)>,
}

impl FromStr for Config {
    type Err = ConnectError;

    /// Reads a URL or keyword/value text; the rest comes from the service file, PG* variables and libpq's defaults.
    ///
    /// Three keywords are onetrip's own: `pipelining` (`on`, `off`), `statement_cache` (a number of statements) and
    /// `lob_prefetch` (what is fetched of large values before anybody reads: as [`Prefetch`](crate::core::Prefetch) is
    /// written).
    fn from_str(text: &str) -> Result<Self, ConnectError> {
        Self::of(Conninfo::parse(text, &Environment::of_this_process())?)
    }
}

impl Config {
    /// What a libpq program without connection text would use.
    ///
    /// # Errors
    /// Variables or files that cannot be understood.
    pub fn from_environment() -> Result<Self, ConnectError> {
        Self::of(Conninfo::from_environment(&Environment::of_this_process())?)
    }

    /// With settings that were read elsewhere.
    ///
    /// # Errors
    /// A value of onetrip's own keywords that does not exist, or settings of another database.
    pub fn of(conninfo: Conninfo) -> Result<Self, ConnectError> {
        let conninfo = conninfo.for_postgres()?;
        let mut limits = Limits::default();
        match conninfo.extra.get_nonempty("pipelining") {
            None | Some("on") => {}
            Some("off") => limits.pipelining = false,
            Some(other) => return Err(wrong_value("pipelining", "on or off", other)),
        }
        if let Some(count) = conninfo.extra.get_nonempty("statement_cache") {
            let wrong = |_| wrong_value("statement_cache", "a number of statements", count);
            limits.statements = count.parse().map_err(wrong)?;
        }
        if let Some(prefetch) = conninfo.extra.get_nonempty("lob_prefetch") {
            let expected = "-1, 0, a number of bytes or auto";
            let wrong = |_| wrong_value("lob_prefetch", expected, prefetch);
            limits.prefetch = prefetch.parse().map_err(wrong)?;
        }
        Ok(Self { conninfo, limits, settings: Vec::new() })
    }

    /// Which of several servers will do.
    ///
    /// # Errors
    /// A word that libpq does not know either.
    pub fn target_session(&self) -> Result<TargetSession, ConnectError> {
        let Some(word) = self.conninfo.extra.get_nonempty("target_session_attrs") else {
            return Ok(TargetSession::Any);
        };
        let expected = "any, read-write, read-only, primary, standby or prefer-standby";
        let wrong = || wrong_value("target_session_attrs", expected, word);
        TargetSession::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or_else(wrong)
    }

    /// Who logs in at a host.
    ///
    /// # Errors
    /// A password file that cannot be used, or values that do not exist.
    pub fn login(&self, host: &Host) -> Result<Login, ConnectError> {
        let conninfo = &self.conninfo;
        let extra = |keyword: &str| conninfo.extra.get_nonempty(keyword);
        let password: Option<Secret> = match &conninfo.password {
            Some(password) => Some(password.clone()),
            None => passfile::password_for(conninfo, host)?,
        };
        let name = conninfo.application_name.as_deref().or_else(|| extra("fallback_application_name"));
        let encoding = ("client_encoding", Some("UTF8"));
        let pairs = [
            ("database", conninfo.dbname.as_deref()),
            encoding,
            ("application_name", name),
            ("options", conninfo.options.as_deref()),
            ("replication", extra("replication")),
        ];
        let named = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let oldest = version(extra("min_protocol_version"), "min_protocol_version")?.unwrap_or(PROTOCOL_3_0);
        let newest = version(extra("max_protocol_version"), "max_protocol_version")?;
        Ok(Login {
            user: conninfo.user.clone().unwrap_or_default(),
            password,
            parameters: named.chain(self.settings.iter().cloned()).collect(),
            versions: (oldest, newest.unwrap_or(PROTOCOL_3_0).max(oldest)),
            require_auth: RequireAuth::parse(extra("require_auth").unwrap_or_default()),
            channel_binding: match extra("channel_binding") {
                None | Some("prefer") => ChannelBinding::Prefer,
                Some("disable") => ChannelBinding::Disable,
                Some("require") => ChannelBinding::Require,
                Some(other) => {
                    return Err(wrong_value("channel_binding", "disable, prefer or require", other));
                }
            },
        })
    }
}

fn wrong_value(keyword: &'static str, expected: &'static str, given: &str) -> ConnectError {
    ConnectError::Value { keyword, expected, given: given.to_owned() }
}

fn version(word: Option<&str>, keyword: &'static str) -> Result<Option<ProtocolVersion>, ConnectError> {
    match word {
        None => Ok(None),
        Some("3.0") => Ok(Some(PROTOCOL_3_0)),
        Some("3.2" | "latest") => Ok(Some(PROTOCOL_3_2)),
        Some(other) => Err(wrong_value(keyword, "3.0, 3.2 or latest", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Prefetch;

    #[test]
    fn words_of_our_own_are_read_or_refused() {
        let read = |text: &str| format!("host=h {text}").parse::<Config>().map(|config| config.limits);
        let limits = read("pipelining=off statement_cache=3 lob_prefetch=-1").unwrap();
        assert_eq!((limits.pipelining, limits.statements, limits.prefetch), (false, 3, Prefetch::Locator));
        assert_eq!(read("lob_prefetch=auto lob_prefetch=4000").unwrap().prefetch, Prefetch::First(4000));
        for wrong in ["pipelining=no", "statement_cache=many", "lob_prefetch=4kB"] {
            let word = wrong.split('=').next().unwrap();
            assert!(
                matches!(read(wrong), Err(ConnectError::Value { keyword, .. }) if keyword == word),
                "{wrong}"
            );
        }
    }
}
