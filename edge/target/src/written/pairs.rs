//! `Host=db;Port=5432;Username=ada`: the connection strings of .NET (Npgsql) and ODBC.

use std::ops::Range;

use super::{Entry, Format, Place, Written};
use crate::{ConninfoError, Protocol};

/// Keywords, without blanks and in small letters, with libpq's names for them.
const KEYWORDS: [(&str, &str); 20] = [
    ("host", "host"),
    ("server", "host"),
    ("port", "port"),
    ("database", "dbname"),
    ("db", "dbname"),
    ("username", "user"),
    ("user", "user"),
    ("userid", "user"),
    ("uid", "user"),
    ("password", "password"),
    ("pwd", "password"),
    ("psw", "password"),
    ("passfile", "passfile"),
    ("sslmode", "sslmode"),
    ("sslnegotiation", "sslnegotiation"),
    ("rootcertificate", "sslrootcert"),
    ("sslcertificate", "sslcert"),
    ("sslkey", "sslkey"),
    ("channelbinding", "channel_binding"),
    ("applicationname", "application_name"),
];

/// Takes pairs with semicolons between them apart. One of them must name the host.
pub(super) fn parse(text: &str) -> Result<Written, ConninfoError> {
    let mut entries = Vec::new();
    let mut is_postgres = [false; 2];
    let mut position = 0;
    while let Some(pair) = next(text, &mut position)? {
        let name = normal(&text[pair.keyword]);
        let value = pair.content;
        is_postgres[0] |=
            name == "driver" && value.to_ascii_lowercase().contains("postgres") || name == "host"; // MySQL and SQL Server say Server and User Id
        is_postgres[1] |= matches!(name.as_str(), "driver" | "username");
        let keyword = KEYWORDS.iter().find(|(theirs, _)| *theirs == name).map_or(&*name, |(_, ours)| ours);
        let value = if keyword == "sslmode" { sslmode(&value) } else { value };
        entries.push(Entry { keyword: keyword.to_owned(), value, place: Place::Pair(pair.bytes) });
    }
    let format = Format::Pairs { is_postgres: is_postgres == [true; 2] };
    // In front of blanks at the end, behind which a semicolon would begin a keyword of a DSN.
    let end = text.trim_end().len();
    let protocol = Protocol::Postgres;
    let mut written = Written { format, protocol, entries, address: None, end, has_query: false };
    written.read_ports_of_hosts();
    let has_port_of = |protocol: Protocol| {
        written.get("port").is_some_and(|port| port.trim().parse() == Ok(protocol.port()))
    };
    if is_postgres != [true; 2] && has_port_of(Protocol::Mysql) {
        written.protocol = Protocol::Mysql;
    }
    // Where the port stands in two places, it is left to who wrote it.
    if written.get("host").is_none_or(|host| host.is_empty() || host.contains(':')) {
        return Err(ConninfoError::NotRecognised);
    }
    Ok(written)
}

/// How the keyword that libpq calls so is written here.
pub(crate) fn spelled(keyword: &str) -> &str {
    match keyword {
        "host" => "Host",
        "port" => "Port",
        "sslmode" => "SSL Mode",
        "passfile" => "Passfile",
        other => other,
    }
}

/// Writes a value so that it is read back.
pub(crate) fn quote(value: &str) -> String {
    if value.contains([';', '\'', '"']) || value.trim() != value {
        return format!("\"{}\"", value.replace('"', "\"\""));
    }
    value.to_owned()
}

struct Pair {
    keyword: Range<usize>,
    /// The value with its quotes.
    bytes: Range<usize>,
    /// The value without them.
    content: String,
}

fn next(text: &str, position: &mut usize) -> Result<Option<Pair>, ConninfoError> {
    let bytes = text.as_bytes();
    while bytes.get(*position).is_some_and(|byte| *byte == b';' || byte.is_ascii_whitespace()) {
        *position += 1;
    }
    let start = *position;
    if start == bytes.len() {
        return Ok(None);
    }
    let equals = text[start..].find(['=', ';']).map(|offset| start + offset);
    let equals = equals.filter(|at| bytes[*at] == b'=' && *at > start);
    let equals = equals.ok_or(ConninfoError::MissingEquals { position: start })?;
    let blanks = text[equals + 1..].len() - text[equals + 1..].trim_start().len();
    let begin = equals + 1 + blanks;
    let (end, content) = value(text, begin)?;
    if !matches!(text[end..].trim_start().as_bytes().first(), None | Some(b';')) {
        return Err(ConninfoError::NotRecognised); // something stands behind a quoted value
    }
    *position = end;
    Ok(Some(Pair { keyword: start..equals, bytes: begin..end, content }))
}

/// The value that begins here: where it ends, and its content.
fn value(text: &str, begin: usize) -> Result<(usize, String), ConninfoError> {
    let rest = &text[begin..];
    let close = match rest.bytes().next() {
        Some(quote @ (b'\'' | b'"')) => char::from(quote),
        Some(b'{') => '}',
        _ => {
            let plain = rest.split(';').next().unwrap_or_default().trim_end();
            return Ok((begin + plain.len(), plain.to_owned()));
        }
    };
    let mut content = String::new();
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((offset, character)) = characters.next() {
        if character != close {
            content.push(character);
        } else if characters.next_if(|(_, next)| *next == close).is_some() {
            content.push(close); // doubled: itself
        } else {
            return Ok((begin + offset + 1, content));
        }
    }
    Err(ConninfoError::Unterminated { position: begin })
}

/// Keywords do not differ by blanks, underscores or the size of their letters.
fn normal(keyword: &str) -> String {
    keyword.chars().filter(|character| !" _\t".contains(*character)).collect::<String>().to_ascii_lowercase()
}

/// Npgsql's words for libpq's.
fn sslmode(value: &str) -> String {
    match value.to_ascii_lowercase().as_str() {
        "verifyfull" => "verify-full".to_owned(),
        "verifyca" => "verify-ca".to_owned(),
        other => other.to_owned(),
    }
}
