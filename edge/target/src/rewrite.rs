//! Changing connection text in place: only what must change, every other byte kept; and hiding its secrets.

use std::ops::Range;

use crate::settings::is_secret;
use crate::written::{Entry, Format, Place, Written, encode, is_blank, quote, quote_pair, spelled_in_pairs};
use crate::{ConninfoError, Protocol, Settings, SslMode, host};

/// What is shown in place of a secret.
pub const REDACTED: &str = "***";

/// What becomes of TLS settings when text is pointed at another address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTls {
    /// Left as they are.
    Keep,
    /// The new address speaks no TLS: whatever insists on it is weakened, `sslmode` to this word.
    ///
    /// [`SslMode::Disable`] is understood by every driver. With [`SslMode::Prefer`] libpq still asks for TLS, which
    /// costs the trip it would cost; node-postgres and old lib/pq refuse to talk plain then.
    Plain(SslMode),
}

/// A keyword that gets a new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) keyword: &'static str,
    pub(crate) value: String,
}

/// Points connection text at another address: host, port and hostaddr, and TLS settings as `tls` says. User,
/// password, path and the order of parameters stay byte for byte. Several hosts become one.
///
/// # Errors
/// Text that [`Settings::parse`] does not read, or whose hosts and ports make no sense.
pub fn rewrite(text: &str, host: &str, port: u16, tls: ClientTls) -> Result<String, ConninfoError> {
    let settings = Settings::parse(text)?;
    let overrides = match tls {
        ClientTls::Keep => Vec::new(),
        ClientTls::Plain(sslmode) => plain_overrides(&settings, sslmode),
    };
    rewrite_with(text, host, port, &overrides)
}

/// Like [`rewrite`], with the overrides given. An override of a keyword that the text lacks is added to it.
pub(crate) fn rewrite_with(
    text: &str,
    host: &str,
    port: u16,
    overrides: &[Override],
) -> Result<String, ConninfoError> {
    let written = Written::parse(text)?;
    // A password with unescaped signs is taken for a host: better an error here than a text that is broken there.
    host::check(&Settings::of_written(written.clone()))?;
    let mut edits = Edits::new(&written);
    edits.address(host, port);
    edits.value("host", host);
    edits.value("hostaddr", host);
    edits.value("port", &port.to_string());
    for change in overrides {
        if !edits.value(change.keyword, &change.value) {
            edits.add(change.keyword, &change.value);
        }
    }
    Ok(edits.apply(text))
}

/// The values that keep a client from insisting on TLS; none for one of MySQL's, whose settings have words of their own.
pub(crate) fn plain_overrides(settings: &Settings, sslmode: SslMode) -> Vec<Override> {
    let mut overrides = Vec::new();
    if settings.protocol() != Protocol::Postgres {
        return overrides;
    }
    let mut change = |keyword, value: &str| overrides.push(Override { keyword, value: value.to_owned() });
    let system_roots = settings.get("sslrootcert") == Some("system");
    let mode = settings.get("sslmode");
    let strict = mode.is_some_and(|mode| mode.parse().is_ok_and(SslMode::requires_tls));
    if strict || (system_roots && mode.is_none()) {
        change("sslmode", sslmode.as_str());
    }
    if system_roots {
        change("sslrootcert", ""); // libpq allows no weaker mode beside it
    }
    for (keyword, strict, weak) in [
        ("channel_binding", "require", "prefer"), // there is nothing to bind to
        ("sslnegotiation", "direct", "postgres"),
        ("sslcertmode", "require", "allow"),
        ("gssencmode", "require", "prefer"),
    ] {
        if settings.get(keyword) == Some(strict) {
            change(keyword, weak);
        }
    }
    overrides
}

/// Connection text without the parameters that are `cut`; the first that is not stays where it is.
pub(crate) fn without(text: &str, cut: impl Fn(&str) -> bool) -> Result<String, ConninfoError> {
    let written = Written::parse(text)?;
    let begin = |value: &Range<usize>| text[..value.start].rfind(['?', '&']).map_or(0, |before| before + 1);
    let pairs = written.entries.iter().filter_map(|entry| match &entry.place {
        Place::Pair(value) => Some((begin(value)..value.end, cut(&entry.keyword))),
        _ => None,
    });
    let pairs: Vec<_> = pairs.collect();
    let first_kept = pairs.iter().filter(|(_, is_cut)| !is_cut).map(|(bytes, _)| bytes.start).min();
    let mut edits = Edits::new(&written);
    for (bytes, _) in pairs.into_iter().filter(|(_, is_cut)| *is_cut) {
        // With the sign behind it, or before it.
        let with_sign = match first_kept {
            Some(kept) if bytes.start < kept => bytes.start..bytes.end + 1,
            _ => bytes.start - 1..bytes.end,
        };
        edits.edits.push((with_sign, String::new()));
    }
    Ok(edits.apply(text))
}

/// Connection text with its secrets hidden. Text that cannot be read for certain is not shown at all.
pub fn redact(text: &str) -> String {
    let unreadable = || match text.split_once(':') {
        Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+') => {
            format!("{scheme}:{REDACTED}")
        }
        _ => REDACTED.to_owned(),
    };
    let Ok(written) = Written::parse(text) else { return unreadable() };
    if host::check(&Settings::of_written(written.clone())).is_err() {
        return unreadable();
    }
    let mut edits = Edits::new(&written);
    for entry in written.entries.iter().filter(|entry| is_secret(&entry.keyword)) {
        match &entry.place {
            Place::Alone(bytes) | Place::Pair(bytes) | Place::Alias(bytes) => {
                edits.edits.push((bytes.clone(), REDACTED.to_owned()));
            }
            Place::Address | Place::HostPort(_) => {}
        }
    }
    edits.apply(text)
}

/// Replacements collected for one text.
struct Edits<'a> {
    written: &'a Written,
    edits: Vec<(Range<usize>, String)>,
    added: Vec<String>,
}

impl<'a> Edits<'a> {
    fn new(written: &'a Written) -> Self {
        Self { written, edits: Vec::new(), added: Vec::new() }
    }

    /// Replaces the host list, or adds host and port to keyword/value text that has none.
    fn address(&mut self, host: &str, port: u16) {
        let both = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let both = self.spell(&both);
        let told = self.edits.len();
        self.edits.extend(self.written.entries.iter().filter_map(|entry| match &entry.place {
            Place::HostPort(bytes) => Some((bytes.clone(), both.clone())),
            _ => None,
        }));
        let has_address = self.written.address.as_ref().is_some_and(|place| !place.bytes.is_empty());
        if self.edits.len() > told && !has_address {
            return;
        }
        match &self.written.address {
            Some(place) => {
                let address = if host.contains(':') {
                    format!("{}[{host}]:{port}{}", place.before, place.after)
                } else {
                    format!("{}{}:{port}{}", place.before, self.in_address(host), place.after)
                };
                self.edits.push((place.bytes.clone(), address));
            }
            None => {
                if self.written.get("host").is_none() {
                    self.add("host", host);
                }
                if self.written.get("port").is_none() {
                    self.add("port", &port.to_string());
                }
            }
        }
    }

    fn in_address(&self, host: &str) -> String {
        match self.written.format {
            Format::HostPort | Format::GoDsn => host.to_owned(),
            _ => encode(host),
        }
    }

    /// Replaces the value of a keyword wherever it stands; says whether it stood anywhere by itself.
    fn value(&mut self, keyword: &str, value: &str) -> bool {
        let written = self.written;
        let entries = written.entries.iter().filter(|entry| entry.keyword == keyword);
        let edits: Vec<_> = entries.filter_map(|entry| self.replacement(entry, value)).collect();
        let found = !edits.is_empty();
        self.edits.extend(edits);
        found
    }

    fn replacement(&self, entry: &Entry, value: &str) -> Option<(Range<usize>, String)> {
        match &entry.place {
            Place::Address | Place::HostPort(_) => None,
            Place::Alone(bytes) | Place::Pair(bytes) => Some((bytes.clone(), self.spell(value))),
            Place::Alias(bytes) => Some((bytes.clone(), format!("{}={}", entry.keyword, self.spell(value)))),
        }
    }

    fn add(&mut self, keyword: &str, value: &str) {
        if self.written.format != Format::HostPort {
            let keyword = match self.written.format {
                Format::Pairs { .. } => spelled_in_pairs(keyword),
                _ => keyword,
            };
            self.added.push(format!("{keyword}={}", self.spell(value)));
        }
    }

    /// A value in this notation; slashes stay readable in a query.
    fn spell(&self, value: &str) -> String {
        match self.written.format {
            Format::KeywordValue => quote(value),
            Format::Pairs { .. } => quote_pair(value),
            Format::Url | Format::Jdbc => encode(value).replace("%2F", "/").replace("%3A", ":"),
            Format::HostPort | Format::GoDsn => value.to_owned(),
        }
    }

    fn apply(mut self, text: &str) -> String {
        if !self.added.is_empty() {
            let addition = self.addition(text);
            self.edits.push((self.written.end..self.written.end, addition));
        }
        self.edits.sort_by_key(|(bytes, _)| (bytes.start, bytes.end));
        let mut result = String::with_capacity(text.len() + 64);
        let mut copied = 0;
        for (bytes, replacement) in self.edits {
            result.push_str(&text[copied..bytes.start]);
            result.push_str(&replacement);
            copied = bytes.end;
            // Only a quote may end a value with no blank after it: host='db'port=1.
            let next = text.as_bytes().get(copied).filter(|_| !bytes.is_empty());
            let is_open = self.written.format == Format::KeywordValue && !replacement.ends_with('\'');
            if is_open && next.is_some_and(|next| !is_blank(*next) && *next != b';') {
                result.push(' ');
            }
        }
        result.push_str(&text[copied..]);
        result
    }

    /// Further parameters. In keyword/value text they come first, where no unfinished escape can swallow them.
    fn addition(&self, text: &str) -> String {
        match self.written.format {
            Format::KeywordValue => self.added.join(" ") + " ",
            Format::Pairs { .. } => {
                let separator = if text.trim_end().ends_with(';') { "" } else { ";" };
                format!("{separator}{}", self.added.join(";"))
            }
            _ => {
                let separator = match self.written.has_query {
                    true if text.ends_with(['?', '&']) => "",
                    true => "&",
                    false => "?",
                };
                format!("{separator}{}", self.added.join("&"))
            }
        }
    }
}
