//! Datagrams in pieces: bounded, whatever comes.

use std::collections::HashMap;
use std::net::IpAddr;

use etherparse::defrag::IpDefragBuf;
use etherparse::{IpFragOffset, IpNumber, Ipv6ExtensionSlice, LaxIpSlice};
use foldhash::fast::RandomState;

/// Datagrams that may be incomplete at once.
const DATAGRAMS_MAX: usize = 64;
/// A datagram whose pieces are further apart is given up, as Linux does (`ipfrag_time`).
const WAIT_NS: u64 = 30_000_000_000;

/// Which datagram a piece belongs to, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FragmentKey {
    id: (IpAddr, IpAddr, u32),
    offset: IpFragOffset,
    more: bool,
}

impl FragmentKey {
    /// The place of a fragment; `None` for a packet that is whole.
    pub(crate) fn of(ip: &LaxIpSlice<'_>) -> Option<Self> {
        let (number, offset, more) = match ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                (header.identification().into(), header.fragments_offset(), header.more_fragments())
            }
            LaxIpSlice::Ipv6(ip) => {
                let fragment = ip.extensions().clone().into_iter().find_map(|extension| match extension {
                    Ipv6ExtensionSlice::Fragment(fragment) => Some(fragment.to_header()),
                    _ => None,
                })?;
                (fragment.identification, fragment.fragment_offset, fragment.more_fragments)
            }
        };
        Some(Self { id: (ip.source_addr(), ip.destination_addr(), number), offset, more })
    }
}

/// Joins the pieces of datagrams.
#[derive(Debug, Default)]
pub struct Fragments {
    waiting: HashMap<(IpAddr, IpAddr, u32), (IpDefragBuf, u64), RandomState>,
    joined: Vec<u8>,
    /// Datagrams that were never completed.
    given_up: u64,
}

impl Fragments {
    /// Takes a piece; the whole datagram's payload if it was the last that was missing.
    pub(crate) fn add(&mut self, key: FragmentKey, payload: &[u8], at_ns: u64) -> Option<&[u8]> {
        if !self.waiting.contains_key(&key.id) {
            self.make_room(at_ns);
        }
        let new = || IpDefragBuf::new(IpNumber::TCP, Vec::new(), Vec::new());
        let (buffer, last_ns) = self.waiting.entry(key.id).or_insert_with(|| (new(), at_ns));
        *last_ns = at_ns;
        if buffer.add(key.offset, key.more, payload).is_err() {
            self.waiting.remove(&key.id);
            self.given_up += 1;
            return None;
        }
        if !buffer.is_complete() {
            return None;
        }
        let (buffer, _) = self.waiting.remove(&key.id)?;
        self.joined = buffer.take_bufs().0;
        Some(&self.joined)
    }

    /// Datagrams that were not completed.
    pub fn incomplete(&self) -> u64 {
        self.given_up + self.waiting.len() as u64
    }

    fn make_room(&mut self, at_ns: u64) {
        if self.waiting.len() < DATAGRAMS_MAX {
            return;
        }
        let before = self.waiting.len();
        self.waiting.retain(|_, (_, last_ns)| at_ns.saturating_sub(*last_ns) < WAIT_NS);
        if self.waiting.len() >= DATAGRAMS_MAX {
            let oldest = self.waiting.iter().min_by_key(|(_, (_, last_ns))| *last_ns).map(|(id, _)| *id);
            oldest.map(|id| self.waiting.remove(&id));
        }
        self.given_up += (before - self.waiting.len()) as u64;
    }
}
