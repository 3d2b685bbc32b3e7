//! `jdbc:postgresql://host:port/database?property=value`, by the rules of pgJDBC's `Driver.parseURL`; and the URLs of MySQL's
//! and MariaDB's drivers that name hosts in that form.

use super::percent::{Plus, decode};
use super::url::{find, hosts, implied, query};
use super::{AddressPlace, Entry, Format, Place, Written};
use crate::{ConninfoError, Protocol};

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
    let (protocol, start) = prefix(text)?;
    // Earlier entries give way to later ones.
    let mut entries = vec![implied("host", "localhost"), implied("port", &protocol.port().to_string())];
    entries.extend((protocol == Protocol::Postgres).then(|| implied("sslmode", "prefer")));
    let question = find(text, start, b"?");
    let server = &text[start..question];
    // MySQL's drivers have more forms: `jdbc:mysql:replication://`, `address=(host=db)`.
    if protocol == Protocol::Mysql && (!server.starts_with("//") || server.contains(['(', '='])) {
        return Err(ConninfoError::NotRecognised);
    }
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
        fill_ports(&mut entries, protocol);
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
        if protocol == Protocol::Postgres {
            translate(&mut entries[first..]);
        }
    }
    Ok(Written {
        format: Format::Jdbc,
        protocol,
        entries,
        address: Some(address),
        end: text.len(),
        has_query,
    })
}

/// What `jdbc:postgresql:` and its like mean, and their length.
fn prefix(text: &str) -> Result<(Protocol, usize), ConninfoError> {
    let stop = find(text, 0, b"/?");
    Protocol::of_jdbc(&text[..stop]).ok_or_else(|| {
        let scheme = text[..stop].rsplit_once(':').map_or("jdbc", |(scheme, _)| scheme);
        ConninfoError::Scheme { scheme: scheme.to_owned() }
    })
}

/// The drivers give every host without a port the usual one, and an empty host is localhost.
fn fill_ports(entries: &mut [Entry], protocol: Protocol) {
    let port = protocol.port().to_string();
    for (keyword, default) in [("host", "localhost"), ("port", port.as_str())] {
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
