//! `jdbc:postgresql://host:port/database?property=value`, by the rules of pgJDBC's `Driver.parseURL`.

use super::percent::{Plus, decode};
use super::url::{find, hosts, implied, query};
use super::{AddressPlace, Entry, Format, Place, Written};
use crate::ConninfoError;

/// pgJDBC's names for what libpq knows under others.
const PROPERTIES: [(&str, &str); 9] = [
    ("PGHOST", "host"),
    ("PGPORT", "port"),
    ("PGDBNAME", "dbname"),
    ("ApplicationName", "application_name"),
    ("connectTimeout", "connect_timeout"),
    ("channelBinding", "channel_binding"),
    ("gssEncMode", "gssencmode"),
    ("sslNegotiation", "sslnegotiation"),
    ("sslPassword", "sslpassword"),
];

/// Takes a JDBC URL apart. What pgJDBC defaults without looking at PG* variables (host, port, sslmode) is implied.
pub(super) fn parse(text: &str) -> Result<Written, ConninfoError> {
    let start = prefix_length(text)?;
    // Earlier entries give way to later ones.
    let mut entries =
        vec![implied("host", "localhost"), implied("port", "5432"), implied("sslmode", "prefer")];
    let question = find(text, start, b"?");
    let server = &text[start..question];
    let (address, database) = if matches!(server, "//" | "///") {
        (
            AddressPlace {
                bytes: start + 2..start + 2,
                before: "",
                after: if server == "//" { "/" } else { "" },
            },
            None,
        )
    } else if server.starts_with("//") {
        let end = hosts(&text[..question], start + 2, Plus::Blank, &mut entries)?;
        fill_ports(&mut entries);
        (
            AddressPlace { bytes: start + 2..end, before: "", after: "" },
            Some((end + 1).min(question)..question),
        )
    } else {
        (AddressPlace { bytes: start..start, before: "//", after: "/" }, Some(start..question))
    };
    if let Some(bytes) = database.filter(|bytes| !bytes.is_empty()) {
        // Another driver's URL, such as `jdbc:tc:postgresql:15:///shop`. A slash in the name of a database would need
        // a URL without a host, which could not be pointed elsewhere.
        if text[bytes.clone()].contains('/') {
            return Err(ConninfoError::NotRecognised);
        }
        let value = decode(text, bytes.clone(), Plus::Blank)?;
        entries.push(Entry { keyword: "dbname".to_owned(), value, place: Place::Alone(bytes) });
    }
    let has_query = question < text.len();
    if has_query {
        let first = entries.len();
        query(text, question + 1, Plus::Blank, "verify-full", &mut entries)?;
        translate(&mut entries[first..]);
    }
    Ok(Written { format: Format::Jdbc, entries, address: Some(address), end: text.len(), has_query })
}

/// The length of `jdbc:postgresql:`; a wrapper may stand between (`jdbc:p6spy:postgresql:`).
fn prefix_length(text: &str) -> Result<usize, ConninfoError> {
    const NAME: &str = ":postgresql:";
    let stop = find(text, 0, b"/?");
    match text[..stop].find(NAME) {
        Some(position) => Ok(position + NAME.len()),
        None => {
            let scheme = text[..stop].rsplit_once(':').map_or("jdbc", |(scheme, _)| scheme);
            Err(ConninfoError::Scheme { scheme: scheme.to_owned() })
        }
    }
}

/// pgJDBC gives every host without a port 5432, and an empty host is localhost.
fn fill_ports(entries: &mut [Entry]) {
    for (keyword, default) in [("host", "localhost"), ("port", "5432")] {
        let entry = entries.iter_mut().rev().find(|entry| entry.keyword == keyword);
        if let Some(entry) = entry.filter(|entry| entry.value.split(',').any(str::is_empty)) {
            let values = entry.value.split(',').map(|value| if value.is_empty() { default } else { value });
            entry.value = values.collect::<Vec<_>>().join(",");
        }
    }
}

/// Gives properties libpq's names, and lets `sslmode` win over `ssl`, wherever they stand.
fn translate(entries: &mut [Entry]) {
    for entry in entries.iter_mut() {
        if let Some((_, keyword)) = PROPERTIES.iter().find(|(property, _)| *property == entry.keyword) {
            entry.keyword = (*keyword).to_owned();
        }
    }
    entries.sort_by_key(|entry| !matches!(entry.place, Place::Alias(_)));
}
