//! `postgresql://user:password@host:port,host:port/database?keyword=value`, by the rules of libpq's
//! `conninfo_uri_parse`, and `host:port` alone.

use std::ops::Range;

use super::percent::{Plus, decode};
use super::{AddressPlace, Entry, Format, Place, Written, pair};
use crate::{ConninfoError, Protocol};

/// Whether the text before `://` can be a scheme at all.
pub(super) fn is_scheme_like(scheme: &str) -> bool {
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._:".contains(&byte))
}

/// Takes a URL apart.
pub(super) fn parse(text: &str, scheme: &str) -> Result<Written, ConninfoError> {
    let Some(protocol) = Protocol::of_scheme(scheme) else {
        return Err(ConninfoError::Scheme { scheme: scheme.to_owned() });
    };
    let mut entries = Vec::new();
    let after_scheme = scheme.len() + "://".len();
    let start = credentials(text, after_scheme, &mut entries)?;
    let end = hosts(text, start, Plus::Itself, &mut entries)?;
    let mut position = end;
    if text[position..].starts_with('/') {
        let stop = find(text, position, b"?");
        // A slash in a password makes the rest of it a database name. libpq goes to the wrong host then.
        if start == after_scheme && text[position..stop].contains('@') {
            return Err(ConninfoError::Host);
        }
        push(text, "dbname", position + 1..stop, &mut entries)?;
        position = stop;
    }
    let has_query = position < text.len();
    if has_query {
        query(text, position + 1, Plus::Itself, "require", &mut entries)?;
    }
    let address = AddressPlace { bytes: start..end, before: "", after: "" };
    let mut written = Written {
        format: Format::Url,
        protocol,
        entries,
        address: Some(address),
        end: text.len(),
        has_query,
    };
    written.read_ports_of_hosts();
    Ok(written)
}

/// Takes `host:port`, `[address]:port`, `/socket/directory` or `/socket/directory:port` apart, which stands at
/// `bytes` of the text.
pub(super) fn parse_host_port(text: &str, bytes: Range<usize>) -> Result<Written, ConninfoError> {
    let trimmed = text[bytes.clone()].trim();
    let (host, port) = trimmed.rsplit_once(':').unwrap_or((trimmed, ""));
    let bracketed = bracketed(host);
    let is_pair = split_port(trimmed).is_some();
    let is_directory = port.is_empty() && trimmed.starts_with('/');
    if !is_pair && !is_directory {
        return Err(ConninfoError::NotRecognised);
    }
    let host = bracketed.unwrap_or(host);
    if host.contains(':') && bracketed.is_none() {
        return Err(ConninfoError::Brackets { position: 0 });
    }
    // Nobody gives a server of PostgreSQL's the port that MySQL's have.
    let is_mysql = is_pair && port.parse() == Ok(Protocol::Mysql.port());
    let protocol = if is_mysql { Protocol::Mysql } else { Protocol::Postgres };
    let mut entries = vec![implied("host", host)];
    if is_pair {
        entries.push(implied("port", port));
    }
    let address = AddressPlace { bytes, before: "", after: "" };
    Ok(Written {
        format: Format::HostPort,
        protocol,
        entries,
        address: Some(address),
        end: text.len(),
        has_query: false,
    })
}

/// Reads `user:password@` and returns where the hosts begin.
fn credentials(text: &str, start: usize, entries: &mut Vec<Entry>) -> Result<usize, ConninfoError> {
    let at = find(text, start, b"@/");
    if !text[at..].starts_with('@') {
        return Ok(start);
    }
    let colon = find(&text[..at], start, b":");
    push(text, "user", start..colon, entries)?;
    push(text, "password", (colon + 1).min(at)..at, entries)?;
    Ok(at + 1)
}

/// Reads `host:port,host:port` and returns where it ends.
pub(super) fn hosts(
    text: &str,
    start: usize,
    plus: Plus,
    entries: &mut Vec<Entry>,
) -> Result<usize, ConninfoError> {
    let (mut hosts, mut ports) = (String::new(), String::new());
    let mut position = start;
    loop {
        let host = if text[position..].starts_with('[') {
            let stop = find(text, position, b"]");
            let next = text.as_bytes().get(stop + 1);
            let closed = stop < text.len() && next.is_none_or(|byte| b":/?,".contains(byte));
            if stop == position + 1 || !closed {
                return Err(ConninfoError::Brackets { position });
            }
            let inner = position + 1..stop;
            position = stop + 1;
            inner
        } else {
            let host = position..find(text, position, b":/?,");
            position = host.end;
            host
        };
        hosts.push_str(&decode(text, host, plus)?);
        if text[position..].starts_with(':') {
            let port = position + 1..find(text, position + 1, b"/?,");
            position = port.end;
            ports.push_str(&decode(text, port, plus)?);
        }
        if !text[position..].starts_with(',') {
            break;
        }
        hosts.push(',');
        ports.push(',');
        position += 1;
    }
    for (keyword, value) in [("host", hosts), ("port", ports)] {
        if !value.is_empty() {
            entries.push(implied(keyword, &value));
        }
    }
    Ok(position)
}

/// Reads `keyword=value&keyword=value` up to the end. A word without an equals sign has an empty value.
pub(super) fn query(
    text: &str,
    start: usize,
    plus: Plus,
    when_true: &str,
    entries: &mut Vec<Entry>,
) -> Result<(), ConninfoError> {
    let mut position = start;
    while position < text.len() {
        let end = find(text, position, b"&");
        let whole = position..end;
        position = end + 1;
        if whole.is_empty() {
            continue;
        }
        let equals = find(&text[..end], whole.start, b"=");
        let bytes = (equals + 1).min(end)..end;
        let keyword = decode(text, whole.start..equals, plus)?;
        let value = decode(text, bytes.clone(), plus)?;
        let mut entry = pair(&keyword, value, whole.clone(), bytes, when_true);
        if equals == end {
            entry.place = Place::Alias(whole); // a word alone has no place for a value
        }
        entries.push(entry);
    }
    Ok(())
}

/// Takes `host:port` or `[address]:port` apart.
pub(super) fn host_and_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = split_port(text)?;
    let bracketed = bracketed(host);
    (bracketed.is_some() || !host.contains([':', '/'])).then(|| (bracketed.unwrap_or(host), port))
}

/// What stands before the last colon, and the number behind it.
pub(crate) fn split_port(text: &str) -> Option<(&str, &str)> {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    text.rsplit_once(':').filter(|(host, port)| !host.is_empty() && is_port(port))
}

/// The address of `[address]`.
fn bracketed(host: &str) -> Option<&str> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']'))
}

/// The first of these bytes from `start` on, or the end of the text.
pub(super) fn find(text: &str, start: usize, wanted: &[u8]) -> usize {
    let rest = text.as_bytes().get(start..).unwrap_or_default();
    rest.iter().position(|byte| wanted.contains(byte)).map_or(text.len(), |offset| start + offset)
}

/// An entry of the address or one that the notation implies.
pub(super) fn implied(keyword: &str, value: &str) -> Entry {
    Entry { keyword: keyword.to_owned(), value: value.to_owned(), place: Place::Address }
}

fn push(
    text: &str,
    keyword: &str,
    bytes: Range<usize>,
    entries: &mut Vec<Entry>,
) -> Result<(), ConninfoError> {
    let value = decode(text, bytes.clone(), Plus::Itself)?;
    if !value.is_empty() {
        entries.push(Entry { keyword: keyword.to_owned(), value, place: Place::Alone(bytes) });
    }
    Ok(())
}
