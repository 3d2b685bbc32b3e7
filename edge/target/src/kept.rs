//! What a gateway keeps of its upstream's settings. It refuses by name a setting that it does not keep and that means
//! safety or the choice of a server: a session that the setting should have prevented must not come about.

use std::time::Duration;

use crate::keywords::KEYWORDS;
use crate::{Conninfo, ConninfoError, Protocol, Settings};

/// libpq's settings that a gateway cannot keep, but for the values that ask for nothing, and why.
const NOT_KEPT: [(&str, &[&str], &str); 14] = [
    (
        "target_session_attrs",
        &["any"],
        "the gateway takes the first server that answers: name that server alone",
    ),
    ("load_balance_hosts", &["disable"], "the gateway tries the hosts in their order"),
    (
        "channel_binding",
        &["prefer", "disable"],
        "the client authenticates through the gateway, which ends its TLS",
    ),
    (
        "require_auth",
        &[],
        "the client authenticates itself: require it there, or in the server's pg_hba.conf",
    ),
    ("gssencmode", &["prefer", "disable"], "the gateway speaks TLS to the database, and no GSSAPI"),
    ("requirepeer", &[], "the gateway does not ask for the owner of the server's process"),
    ("sslcertmode", &["allow", "disable"], "the gateway shows its certificate where the server asks for one"),
    ("replication", &["false", "off", "no", "0"], "it is the client's to ask for"),
    ("min_protocol_version", &["3.0"], "the gateway speaks protocol 3.0"),
    ("scram_client_key", &[], "the client authenticates itself"),
    ("scram_server_key", &[], "the client authenticates itself"),
    ("oauth_issuer", &[], "the client authenticates itself"),
    ("oauth_client_id", &[], "the client authenticates itself"),
    ("oauth_client_secret", &[], "the client authenticates itself"),
];

/// Below this likeness, from 0 to 1, a name is another driver's and no slip of the pen.
const LIKENESS_MIN: f64 = 0.8;
/// Names of other drivers that are like one of libpq's.
const OTHER_DRIVERS: [&str; 4] = ["ssl", "schema", "sslidentity", "timeout"];

/// libpq's settings for noticing that a server is gone without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalives {
    /// Whether the kernel asks.
    pub is_on: bool,
    /// Silence before it asks; the system's default where it is `None`.
    pub idle: Option<Duration>,
    /// Time between two questions.
    pub interval: Option<Duration>,
    /// Questions without an answer before the server is taken for gone.
    pub count: Option<u32>,
    /// How long what was sent may stay without an acknowledgement.
    pub user_timeout: Option<Duration>,
}

impl Default for Keepalives {
    fn default() -> Self {
        Self { is_on: true, idle: None, interval: None, count: None, user_timeout: None }
    }
}

impl Keepalives {
    /// Reads libpq's `keepalives`, `keepalives_idle`, `keepalives_interval`, `keepalives_count` and `tcp_user_timeout`.
    pub(crate) fn resolve(settings: &Settings) -> Result<Self, ConninfoError> {
        let number = |keyword: &'static str| -> Result<Option<u32>, ConninfoError> {
            let Some(text) = settings.get_nonempty(keyword) else { return Ok(None) };
            let expected = "a number";
            let number: i32 = text.trim().parse().map_err(|_| ConninfoError::Value { keyword, expected })?;
            // Zero and less are the system's default.
            Ok(u32::try_from(number).ok().filter(|number| *number > 0))
        };
        let seconds = |number: Option<u32>| number.map(|number| Duration::from_secs(number.into()));
        let is_on = match settings.get_nonempty("keepalives").map(str::trim) {
            None => true,
            Some(text) => text
                .parse::<i32>()
                .map(|number| number != 0)
                .map_err(|_| ConninfoError::Value { keyword: "keepalives", expected: "0 or 1" })?,
        };
        Ok(Self {
            is_on,
            idle: seconds(number("keepalives_idle")?),
            interval: seconds(number("keepalives_interval")?),
            count: number("keepalives_count")?,
            user_timeout: number("tcp_user_timeout")?.map(|number| Duration::from_millis(number.into())),
        })
    }
}

impl Conninfo {
    /// Finds settings that a gateway would not keep. Returns the names of those that are no settings of libpq's, which it
    /// does not use.
    ///
    /// # Errors
    /// [`ConninfoError::NotKept`] for a setting of libpq's that asks for something else than what the gateway does,
    /// [`ConninfoError::Misspelt`] for a name that is like one of libpq's, and [`ConninfoError::TlsNotKept`] for a setting of
    /// TLS with a MySQL server that is not read.
    pub fn check_kept(&self) -> Result<Vec<&str>, ConninfoError> {
        if self.protocol == Protocol::Mysql {
            return match self.extra.iter().next() {
                Some((keyword, _)) => Err(ConninfoError::TlsNotKept { keyword: keyword.to_owned() }),
                None => Ok(Vec::new()),
            };
        }
        for (keyword, harmless, why) in NOT_KEPT {
            match self.extra.get_nonempty(keyword) {
                Some(value) if !harmless.contains(&value) => {
                    return Err(ConninfoError::NotKept { keyword, why });
                }
                _ => {}
            }
        }
        let mut unused = Vec::new();
        for name in self.extra.unknown() {
            if let Some(meant) = meant(name) {
                return Err(ConninfoError::Misspelt { name: name.to_owned(), meant });
            }
            unused.push(name);
        }
        Ok(unused)
    }
}

/// The keyword of libpq's that a name is like.
fn meant(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if OTHER_DRIVERS.contains(&name.as_str()) {
        return None;
    }
    KEYWORDS
        .iter()
        .map(|keyword| (strsim::normalized_damerau_levenshtein(&name, keyword.name), keyword.name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, keyword)| keyword)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn conninfo(query: &str) -> Conninfo {
        let text = format!("postgres://ann@db/shop?{query}");
        Conninfo::parse(&text, &Environment::default()).unwrap()
    }

    #[test]
    fn what_is_not_kept_is_refused_by_name_unless_it_asks_for_nothing() {
        for query in [
            "target_session_attrs=read-only",
            "channel_binding=require",
            "require_auth=scram-sha-256",
            "gssencmode=require",
            "load_balance_hosts=random",
            "requirepeer=postgres",
            "sslcertmode=require",
        ] {
            let error = conninfo(query).check_kept().unwrap_err().to_string();
            let name = query.split('=').next().unwrap();
            assert!(error.starts_with(&format!("{name} ")), "{error}");
        }
        for query in
            ["target_session_attrs=any", "channel_binding=prefer", "gssencmode=disable", "sslmode=require"]
        {
            assert_eq!(conninfo(query).check_kept(), Ok(vec![]), "{query}");
        }
    }

    #[test]
    fn a_misspelt_name_is_told_what_it_may_have_been_and_other_drivers_names_pass() {
        for (query, meant) in [
            ("sslmod=require", "sslmode"),
            ("ssl_mode=require", "sslmode"),
            ("conect_timeout=3", "connect_timeout"),
        ] {
            let error = conninfo(query).check_kept().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {meant}?")), "{error}");
        }
        let others =
            "pgbouncer=true&connection_limit=5&schema=public&pool_max_conns=3&prepareThreshold=0&ssl=true";
        // ssl=true is JDBC's, and libpq takes it for sslmode=require.
        assert_eq!(conninfo(others).check_kept().map(|unused| unused.len()), Ok(5));
    }

    #[test]
    fn keepalives_are_libpqs() {
        assert_eq!(conninfo("").keepalives, Keepalives::default());
        let set = "keepalives_idle=5&keepalives_interval=2&keepalives_count=3&tcp_user_timeout=1500";
        let expected = Keepalives {
            is_on: true,
            idle: Some(Duration::from_secs(5)),
            interval: Some(Duration::from_secs(2)),
            count: Some(3),
            user_timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!(conninfo(set).keepalives, expected);
        let mysql = Conninfo::parse(&format!("mysql://ann@db/shop?{set}"), &Environment::default());
        assert_eq!(mysql.expect("it names a server").keepalives, expected);
        assert!(!conninfo("keepalives=0").keepalives.is_on);
        assert_eq!(conninfo("keepalives_idle=0").keepalives.idle, None);
        let text = "postgres://ann@db/shop?keepalives_idle=soon";
        assert!(Conninfo::parse(text, &Environment::default()).is_err());
    }
}
