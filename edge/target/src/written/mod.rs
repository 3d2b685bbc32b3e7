//! Connection text as somebody wrote it: which keyword has which value, and at which bytes it stands.
//!
//! Six notations: URL, JDBC URL, keyword/value ("DSN"), pairs with semicolons, Go's DSN, and `host:port` alone. Reading is a
//! little wider than libpq's: parameters of other drivers are kept, and a URL may name a driver
//! (`postgresql+psycopg://`, `r2dbc:postgresql://`).

mod dsn;
mod go;
mod jdbc;
mod pairs;
mod percent;
mod url;

use std::ops::Range;

use crate::{ConninfoError, Protocol, SslMode};

pub(crate) use dsn::{is_blank, quote};
pub(crate) use pairs::{quote as quote_pair, spelled as spelled_in_pairs};
pub(crate) use percent::encode;
pub(crate) use url::split_port;

/// How connection text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `postgres://…`, `postgresql://…`, `postgresql+driver://…`, `mysql://…`.
    Url,
    /// `jdbc:postgresql:…`, `jdbc:mysql:…`.
    Jdbc,
    /// `keyword=value …`; after the name of a driver in Perl and PHP: `pgsql:host=db;dbname=shop`.
    KeywordValue,
    /// `Keyword=value;…`, as in .NET and ODBC.
    Pairs {
        /// Other databases' strings do not look like that.
        is_postgres: bool,
    },
    /// `user:password@tcp(host:port)/database`.
    GoDsn,
    /// `host:port`, `tcp://host:port`, `[address]:port` or a socket directory.
    HostPort,
}

/// Connection text taken apart. Of several values for one keyword the last counts, as in libpq.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) format: Format,
    /// The protocol of the server that it means.
    pub(crate) protocol: Protocol,
    pub(crate) entries: Vec<Entry>,
    /// Where the host list stands, or would stand: all notations but keyword/value.
    pub(crate) address: Option<AddressPlace>,
    /// Where a further parameter can be inserted.
    pub(crate) end: usize,
    /// A URL that has its `?` already.
    pub(crate) has_query: bool,
}

/// The bytes to replace by `host:port`, and what must stand around it.
#[derive(Clone, Debug)]
pub(crate) struct AddressPlace {
    pub(crate) bytes: Range<usize>,
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

/// One keyword with its decoded value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) keyword: String,
    pub(crate) value: String,
    pub(crate) place: Place,
}

/// Where an entry's value stands in the text.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the part that [`AddressPlace`] covers, or implied.
    Address,
    /// By itself, like user and password of a URL.
    Alone(Range<usize>),
    /// The value of a `keyword=value` pair.
    Pair(Range<usize>),
    /// A whole pair that must be written anew to have a value: `ssl=true` is an `sslmode`.
    Alias(Range<usize>),
    /// The value of a pair that names hosts with their ports: `host=db:5433`.
    HostPort(Range<usize>),
}

impl Written {
    /// Finds the notation and takes the text apart.
    pub(crate) fn parse(text: &str) -> Result<Self, ConninfoError> {
        if text.trim().is_empty() {
            return Err(ConninfoError::Empty);
        }
        if text.contains('\0') {
            return Err(ConninfoError::NotUtf8 { place: "the connection text".to_owned() });
        }
        if text.starts_with("jdbc:") {
            return jdbc::parse(text);
        }
        if text.starts_with("tcp://") {
            let end = text.trim_end_matches('/').len();
            return url::parse_host_port(text, "tcp://".len().min(end)..end);
        }
        if let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| url::is_scheme_like(scheme)) {
            return url::parse(text, scheme);
        }
        if let Some(written) = go::parse(text) {
            return written;
        }
        if let Some(start) = dsn::driver_length(text) {
            return dsn::parse(text, start);
        }
        if text.contains('=') {
            let written = dsn::parse(text, 0);
            // Quoted, a semicolon is the host's own.
            let has_semicolons = |written: &Self| {
                let host = written.entries.iter().rev().find(|entry| entry.keyword == "host");
                host.is_some_and(|host| match &host.place {
                    Place::Pair(bytes) => host.value.contains(';') && !text[bytes.clone()].starts_with('\''),
                    _ => false,
                })
            };
            return match written {
                Ok(written) if !has_semicolons(&written) => Ok(written),
                // Whatever is wrong with it, it is wrong as a DSN.
                written => pairs::parse(text).or(written),
            };
        }
        url::parse_host_port(text, 0..text.len())
    }

    /// Reads ports in the values of host pairs, as SQLAlchemy, asyncpg and Npgsql do: `host=one:5432&host=two:5433`, or
    /// `Host=one:5432,two:5433`. Only where no pair names ports, since nobody says which would count.
    fn read_ports_of_hosts(&mut self) {
        let is_pair = |entry: &Entry| matches!(entry.place, Place::Pair(_) | Place::Alias(_));
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for entry in self.entries.iter().filter(|entry| is_pair(entry)) {
            match entry.keyword.as_str() {
                "port" | "hostaddr" => return,
                "host" => {
                    for item in entry.value.split(',') {
                        let (host, port) = url::host_and_port(item).unwrap_or((item, ""));
                        hosts.push(host.to_owned());
                        ports.push(port.to_owned());
                    }
                }
                _ => {}
            }
        }
        if ports.iter().all(String::is_empty) {
            return;
        }
        for entry in self.entries.iter_mut().filter(|entry| entry.keyword == "host") {
            if let Place::Pair(bytes) = &entry.place {
                entry.place = Place::HostPort(bytes.clone());
                entry.value = hosts.join(",");
            }
        }
        self.entries.push(url::implied("port", &ports.join(",")));
    }

    /// The value that counts for a keyword.
    pub(crate) fn get(&self, keyword: &str) -> Option<&str> {
        self.entries.iter().rev().find(|entry| entry.keyword == keyword).map(|entry| entry.value.as_str())
    }
}

/// Makes an entry of a `keyword=value` pair; `ssl=…` of libpq, JDBC, node and SQLAlchemy is the `sslmode` it stands
/// for, which is `when_true` for a bare yes.
fn pair(keyword: &str, value: String, whole: Range<usize>, bytes: Range<usize>, when_true: &str) -> Entry {
    let r2dbc = |word: &str| word.to_ascii_lowercase().replace('_', "-");
    let sslmode =
        |value: &str, place| Entry { keyword: "sslmode".to_owned(), value: value.to_owned(), place };
    match (keyword, value.as_str()) {
        ("ssl", "true" | "1" | "") => sslmode(when_true, Place::Alias(whole)),
        ("ssl", word) if word.parse::<SslMode>().is_ok() => sslmode(word, Place::Pair(bytes)),
        // R2DBC's and node's own spelling.
        ("sslMode", word) if r2dbc(word).parse::<SslMode>().is_ok() => {
            sslmode(&r2dbc(word), Place::Pair(bytes))
        }
        ("requiressl", "1") => sslmode("require", Place::Alias(whole)),
        ("requiressl", _) => sslmode("prefer", Place::Alias(whole)),
        _ => Entry { keyword: keyword.to_owned(), value, place: Place::Pair(bytes) },
    }
}
