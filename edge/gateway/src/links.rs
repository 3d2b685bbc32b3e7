//! A simulated distance between the gateway and the database.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, mem};

use onetrip_link::{LinkSpec, LinkStats, Relay, Target};
use onetrip_target::Keepalives;
use onetrip_target::address::Address;

use crate::dial::connect;
use crate::socket::watch;

/// A relay for each address of the database, started when it is first dialled.
///
/// TLS passes through untouched, and is spoken with the real host's name.
#[derive(Debug)]
pub(crate) struct Links {
    spec: LinkSpec,
    /// Of the leg to the database, which is the relay's.
    keepalives: Keepalives,
    relays: Mutex<Vec<(Address, Relay)>>,
}

/// What a simulated link carried, and how well it kept its schedule.
#[derive(Debug)]
pub struct LinkOutcome {
    /// The database's end of it.
    pub to: String,
    /// What happened, or why the link ended early.
    pub stats: io::Result<LinkStats>,
}

impl Links {
    pub(crate) fn new(spec: LinkSpec, keepalives: Keepalives) -> Self {
        Self { spec, keepalives, relays: Mutex::default() }
    }

    pub(crate) fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Where the near end of the link to `address` listens.
    ///
    /// A link accepts whether or not there is somebody at its far end. So the address is tried once without the link:
    /// of several addresses, those where nobody listens are passed over as they would be without it.
    pub(crate) async fn near_end(&self, address: &Address) -> io::Result<SocketAddr> {
        if let Some(known) = self.known(address) {
            return Ok(known);
        }
        let target = match address {
            Address::Tcp(address) => Target::Tcp(*address),
            Address::Unix(path) if is_abstract(path) => {
                return Err(io::Error::other("a simulated link cannot lead to an abstract socket"));
            }
            Address::Unix(path) => Target::Unix(path.clone()),
        };
        drop(connect(address).await?);
        let mut relays = self.relays();
        if let Some((_, relay)) = relays.iter().find(|(known, _)| known == address) {
            return Ok(relay.local_addr());
        }
        let keepalives = self.keepalives;
        let watched = move |socket: BorrowedFd<'_>| watch(socket, &keepalives);
        let relay = Relay::start_prepared(self.spec.clone(), target, watched)?;
        let near_end = relay.local_addr();
        relays.push((address.clone(), relay));
        Ok(near_end)
    }

    /// Cuts what is left and tells what happened.
    pub(crate) fn stop(&self) -> Vec<LinkOutcome> {
        let relays = mem::take(&mut *self.relays());
        let outcome =
            |(address, relay): (Address, Relay)| LinkOutcome { to: shown(&address), stats: relay.stop() };
        relays.into_iter().map(outcome).collect()
    }

    fn known(&self, address: &Address) -> Option<SocketAddr> {
        self.relays().iter().find(|(known, _)| known == address).map(|(_, relay)| relay.local_addr())
    }

    fn relays(&self) -> MutexGuard<'_, Vec<(Address, Relay)>> {
        // The list is whole between any two statements.
        self.relays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_abstract(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().first() == Some(&0)
}

fn shown(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => path.display().to_string(),
    }
}
