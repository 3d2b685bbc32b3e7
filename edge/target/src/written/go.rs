//! `user:password@tcp(host:port)/database?parameter=value`, as Go's driver of MySQL has it (`ParseDSN`).

use super::percent::Plus;
use super::url::{find, host_and_port, implied, query};
use super::{AddressPlace, Entry, Format, Place, Written};
use crate::{ConninfoError, Protocol};

/// The networks, up to where the address begins.
const TCP: &str = "tcp(";
const UNIX: &str = "unix(";

/// Takes a DSN apart; `None` if the text is none.
pub(super) fn parse(text: &str) -> Option<Result<Written, ConninfoError>> {
    // The last slash before the parameters, as a password may have anything in it.
    let question = text.rfind(")/").map(|close| find(text, close, b"?"))?;
    let close = text[..question].rfind(")/")?;
    let (open, network) =
        [TCP, UNIX].iter().filter_map(|network| Some((text[..close].rfind(network)?, *network))).max()?;
    let start = open + network.len();
    let user = match &text[..open] {
        "" => None,
        before => Some(before.strip_suffix('@')?),
    };
    let address = &text[start..close];
    if address.contains(['(', ')', '@', ' ']) {
        return None;
    }
    let (host, port) = host_and_port(address).unwrap_or((address, ""));
    let (mut entries, place) = match network {
        TCP => {
            let place = AddressPlace { bytes: start..close, before: "", after: "" };
            (vec![implied("host", host), implied("port", port)], place)
        }
        // What is led elsewhere is led by TCP.
        _ => {
            let place = AddressPlace { bytes: open..close + 1, before: TCP, after: ")" };
            (vec![implied("socket", address)], place)
        }
    };
    entries.retain(|entry| !entry.value.is_empty());
    let mut alone = |keyword: &str, bytes: std::ops::Range<usize>| {
        if !bytes.is_empty() {
            let value = text[bytes.clone()].to_owned();
            entries.push(Entry { keyword: keyword.to_owned(), value, place: Place::Alone(bytes) });
        }
    };
    if let Some(user) = user {
        let colon = user.find(':').unwrap_or(user.len());
        alone("user", 0..colon);
        alone("password", (colon + 1).min(user.len())..user.len());
    }
    alone("dbname", close + 2..question);
    let has_query = question < text.len();
    let queried = match has_query {
        true => query(text, question + 1, Plus::Itself, "require", &mut entries),
        false => Ok(()),
    };
    Some(queried.map(|()| Written {
        format: Format::GoDsn,
        protocol: Protocol::Mysql,
        entries,
        address: Some(place),
        end: text.len(),
        has_query,
    }))
}
