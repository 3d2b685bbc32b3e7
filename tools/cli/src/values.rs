//! Values that several options have, from the words that write them.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use onetrip_link::HumanDuration;

/// The first address of `HOST:PORT`.
pub(crate) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let no_address = || "that name has no address".to_owned();
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; write HOST:PORT"))?;
    found.next().ok_or_else(no_address)
}

/// A time with its unit, such as `12.9ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    text.parse::<HumanDuration>().map(Into::into).map_err(|error| error.to_string())
}
