//! `user:password@tcp(host:port)/database?parameter=value`, as Go's driver of MySQL has it (`ParseDSN`).

use std::ops::Range;

use super::percent::Plus;
use super::url::{find, host_and_port, implied, query};
use super::{AddressPlace, Entry, Format, Place, Written};
use crate::{ConninfoError, Protocol};

/// The networks, up to where the address begins.
const TCP: &str = "tcp(";
const UNIX: &str = "unix(";
/// Where the driver connects to if a DSN names no address.
const LOCALHOST: &str = "127.0.0.1";
const DEFAULT_SOCKET: &str = "/tmp/mysql.sock";

/// The user and password, the network and the address of a DSN.
struct Server<'a> {
    user: Option<&'a str>,
    is_unix: bool,
    address: Option<&'a str>,
    /// Where network and address stand.
    bytes: Range<usize>,
    /// The slash before the database.
    slash: usize,
}

/// Takes a DSN apart; `None` if the text is none.
pub(super) fn parse(text: &str) -> Option<Result<Written, ConninfoError>> {
    let server = with_address(text).or_else(|| without_address(text))?;
    let Server { user, is_unix, address, bytes, slash } = server;
    // What is led elsewhere is led by TCP.
    let place = AddressPlace { bytes, before: TCP, after: ")" };
    let mut entries = match (is_unix, address.filter(|address| !address.is_empty())) {
        (true, socket) => vec![implied("socket", socket.unwrap_or(DEFAULT_SOCKET))],
        (false, None) => vec![implied("host", LOCALHOST)],
        (false, Some(address)) => match address.strip_prefix(':') {
            Some(port) => vec![implied("host", LOCALHOST), implied("port", port)],
            None => {
                let (host, port) = host_and_port(address).unwrap_or((address, ""));
                vec![implied("host", host), implied("port", port)]
            }
        },
    };
    let question = find(text, slash, b"?");
    entries.retain(|entry| !entry.value.is_empty());
    let mut alone = |keyword: &str, bytes: Range<usize>| {
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
    alone("dbname", slash + 1..question);
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

/// `user:password@tcp(host:port)/database`, where user and password may be missing.
fn with_address(text: &str) -> Option<Server<'_>> {
    // The last slash before the parameters, as a password may have anything in it.
    let question = text.rfind(")/").map(|close| find(text, close, b"?"))?;
    let close = text[..question].rfind(")/")?;
    let (open, network) =
        [TCP, UNIX].iter().filter_map(|network| Some((text[..close].rfind(network)?, *network))).max()?;
    let user = match &text[..open] {
        "" => None,
        before => Some(before.strip_suffix('@')?),
    };
    let address = &text[open + network.len()..close];
    let is_unix = network == UNIX;
    let is_address = !address.contains(['(', ')', '@', ' ']);
    let server = Server { user, is_unix, address: Some(address), bytes: open..close + 1, slash: close + 1 };
    is_address.then_some(server)
}

/// `user:password@tcp/database` or `user:password@/database`. Much looks like the latter, so it needs a password.
fn without_address(text: &str) -> Option<Server<'_>> {
    let at = text[..find(text, 0, b"?")].rfind('@')?;
    let slash = find(text, at, b"/");
    let network = text.get(at + 1..slash)?;
    let (user, database) = (&text[..at], text.get(slash + 1..find(text, slash, b"?"))?);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-$.".contains(letter);
    let name = user.split(':').next().unwrap_or_default();
    let is_dsn = match network {
        "" => user.contains(':'),
        "tcp" | "unix" => true,
        _ => false,
    };
    let is_plain = !name.is_empty() && name.chars().all(is_name) && database.chars().all(is_name);
    let is_plain = is_plain && !user.contains(char::is_whitespace);
    let server =
        Server { user: Some(user), is_unix: network == "unix", address: None, bytes: at + 1..slash, slash };
    (is_dsn && is_plain).then_some(server)
}
