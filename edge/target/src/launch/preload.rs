//! `run --redirect` where seccomp cannot be used: a library that stands before the C library's `connect`.

use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tempfile::TempDir;

use super::Gateways;
use super::lead::places;
use crate::address::Address;
use crate::host::is_localhost;
use crate::{Conninfo, Environment};

/// `preload/connect.c`, compiled.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/connect.so"));
/// Names libraries that are loaded before all others.
const LD_PRELOAD: &str = "LD_PRELOAD";
/// What the library reads.
const LEAD: &str = "ONETRIP_LEAD";

/// The library in a file, and what it is told. Keep it until the program has ended: it owns the file.
#[derive(Debug)]
pub struct Preload {
    directory: TempDir,
    lead: String,
}

impl Preload {
    /// Leads connections to these servers to the gateway.
    ///
    /// # Errors
    /// No place for the file.
    pub fn new(upstream: &Conninfo, gateways: &Gateways) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("onetrip-").tempdir()?;
        std::fs::write(directory.path().join("connect.so"), LIBRARY)?;
        let places = places(upstream).into_iter().flat_map(|address| match address {
            Address::Unix(path) => vec![path.display().to_string()],
            Address::Tcp(address) if is_localhost(address.ip()) => {
                let local: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                local.map(|ip| SocketAddr::new(ip, address.port()).to_string()).into()
            }
            Address::Tcp(address) => vec![address.to_string()],
        });
        // A path with a blank could not be told from two.
        let places: Vec<String> = places.filter(|place| !place.contains(char::is_whitespace)).collect();
        let lead = format!("{} {} {}", gateways.tcp, gateways.unix.display(), places.join(" "));
        Ok(Self { directory, lead })
    }

    /// The program's variables, beside those that it has.
    pub fn variables(&self, environment: &Environment) -> [(String, OsString); 2] {
        let mut libraries = self.directory.path().join("connect.so").into_os_string();
        if let Some(others) = environment.os(LD_PRELOAD).filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        [(LD_PRELOAD.to_owned(), libraries), (LEAD.to_owned(), self.lead.clone().into())]
    }
}
