//! What the gateway's tests share: real servers, gateways in front of them, a raw client, recordings and how two
//! transcripts are compared. Every test binary uses its own part of it.
#![allow(dead_code)]

pub(crate) mod client;
pub(crate) mod may_differ;
pub(crate) mod pgbouncer;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod recorder;
pub(crate) mod replay;
pub(crate) mod server;
pub(crate) mod stub;
pub(crate) mod transcript;

pub(crate) use onetrip_testkit::messages;

/// Waits until something has happened, for as long as the patience of clients.
pub(crate) fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + client::PATIENCE;
    while !done() {
        assert!(std::time::Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}
