//! Where a connection leads: connection text and keywords, as settings of the client and back.

use std::sync::Arc;
use std::time::Duration;

use onetrip_client::{Config, ConnectError};
use onetrip_target::address::Address;
use onetrip_target::{Conninfo, Environment, Host, Settings, SslMode, is_secret};
use pyo3::prelude::*;

use crate::errors::{exception, misuse};

/// Keywords that are the client's own.
const OWN_KEYWORDS: [&str; 3] = ["pipelining", "statement_cache", "lob_prefetch"];

/// Longest wait for a connection where nothing else is said.
const CONNECT_SECONDS: u64 = 130;

/// The options of connection text, by their keywords.
#[pyfunction]
pub(crate) fn conninfo_options(py: Python<'_>, text: &str) -> PyResult<Vec<(String, String)>> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let settings = Settings::parse(text).map_err(|error| misuse(py, "usage", &error.to_string()))?;
    refuse_unknown(py, &settings)?;
    Ok(settings.iter().map(|(keyword, value)| (keyword.to_owned(), value.to_owned())).collect())
}

/// Raises an error for an option that there is not.
pub(crate) fn refuse_unknown(py: Python<'_>, settings: &Settings) -> PyResult<()> {
    match settings.unknown().find(|keyword| !OWN_KEYWORDS.contains(keyword)) {
        Some(keyword) => Err(misuse(py, "usage", &format!("there is no connection option {keyword:?}"))),
        None => Ok(()),
    }
}

/// Connection text and keywords as settings of the client.
pub(crate) fn config(py: Python<'_>, text: &str, keywords: Vec<(String, String)>) -> PyResult<Arc<Config>> {
    let known = Settings::default();
    for (keyword, _) in &keywords {
        let mut one = known.clone();
        one.set(keyword, "");
        refuse_unknown(py, &one)?;
    }
    let config = || -> Result<Config, ConnectError> {
        let is_empty = text.trim().is_empty();
        let mut settings = if is_empty { Settings::default() } else { Settings::parse(text)? };
        for (keyword, value) in keywords {
            settings.set(&keyword, value);
        }
        // Zero, which is no limit, has to be said.
        let is_said = settings.get_nonempty("connect_timeout").is_some();
        let mut config = Config::of(Conninfo::complete(settings, &Environment::of_this_process())?)?;
        // Nobody waits for a server for ever; as psycopg.
        let wait = Duration::from_secs(CONNECT_SECONDS);
        if !is_said {
            config.conninfo.connect_timeout.get_or_insert(wait);
        }
        // Python has codecs for more than the client's own UTF-8.
        let encoding = config.conninfo.extra.get_nonempty("client_encoding").filter(|name| *name != "auto");
        if let Some(encoding) = encoding.map(str::to_owned) {
            config.settings.push(("client_encoding".to_owned(), encoding));
        }
        // Dates are read in this style only; the order of day and month in what is written stays as it is.
        config.settings.push(("DateStyle".to_owned(), "ISO".to_owned()));
        Ok(config)
    };
    config().map(Arc::new).map_err(|error| exception(py, &error.into()))
}

/// The keyword of the address that a name has led to, which libpq has not as a keyword.
const ADDRESS: &str = "address";

/// Where a connection leads and all else that it was told, by libpq's keywords, but for defaults and for secrets other
/// than the password.
pub(crate) fn target(config: &Config, host: &Host, address: &Address) -> Vec<(String, String)> {
    let conninfo = Conninfo { hosts: vec![host.clone()], ..config.conninfo.clone() };
    let default_passfile = Environment::of_this_process().home.map(|home| home.join(".pgpass"));
    let is_default = |keyword: &str, value: &str| match keyword {
        "sslmode" => value == SslMode::default().as_str(),
        "connect_timeout" => value == CONNECT_SECONDS.to_string(),
        "passfile" => default_passfile.as_ref().is_some_and(|path| path.as_os_str() == value),
        _ => false,
    };
    let mut pairs: Vec<(String, String)> = conninfo
        .to_settings()
        .iter()
        .filter(|(keyword, value)| !is_default(keyword, value))
        .filter(|(keyword, _)| *keyword == "password" || !is_secret(keyword))
        .map(|(keyword, value)| (keyword.to_owned(), value.to_owned()))
        .collect();
    if let Address::Tcp(address) = address {
        pairs.push((ADDRESS.to_owned(), address.ip().to_string()));
    }
    pairs
}
