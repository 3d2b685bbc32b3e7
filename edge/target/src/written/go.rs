//! `user:password@tcp(host:port)/database?parameter=value`, as Go's driver of MySQL has it (`ParseDSN`).

use super::percent::Plus;
use super::url::{find, host_and_port, implied, query};
use super::{AddressPlace, Entry, Format, Place, Written};
use crate::{ConninfoError, Protocol};

/// The network that a gateway can stand in for, up to where its address begins.
const NETWORK: &str = "tcp(";

/// Takes a DSN apart; `None` if the text is none.
pub(super) fn parse(text: &str) -> Option<Result<Written, ConninfoError>> {
    // The last slash before the parameters, as a password may have anything in it.
    let question = text.rfind(")/").map(|close| find(text, close, b"?"))?;
    let close = text[..question].rfind(")/")?;
    let open = text[..close].rfind(NETWORK)?;
    let start = open + NETWORK.len();
    let user = match &text[..open] {
        "" => None,
        before => Some(before.strip_suffix('@')?),
    };
    let address = &text[start..close];
    let (host, port) = host_and_port(address).unwrap_or((address, ""));
    if address.contains(['(', ')', '@', ' ']) {
        return None;
    }
    let mut entries = vec![implied("host", host), implied("port", port)];
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
        address: Some(AddressPlace { bytes: start..close, before: "", after: "" }),
        end: text.len(),
        has_query,
    }))
}
