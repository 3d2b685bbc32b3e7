//! Datagrams in pieces: bounded, whatever comes.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use etherparse::defrag::IpDefragBuf;
use etherparse::{IpFragOffset, IpNumber, Ipv6ExtensionSlice, LaxIpSlice};
use foldhash::fast::RandomState;

/// Datagrams that may be incomplete at once.
const DATAGRAMS_MAX: usize = 64;
/// A datagram whose pieces are further apart is given up, as Linux does (`ipfrag_time`).
const WAIT_NS: u64 = 30_000_000_000;
/// Datagrams that are remembered after they were joined, so that late copies of their pieces are known.
const JOINED_MAX: usize = 32;

type DatagramId = (IpAddr, IpAddr, u32);

/// Which datagram a piece belongs to, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FragmentKey {
    id: DatagramId,
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
    waiting: HashMap<DatagramId, Waiting, RandomState>,
    /// The newest is last.
    joined: VecDeque<Joined>,
    /// Datagrams that were never completed.
    given_up: u64,
}

/// A datagram of which pieces are missing.
#[derive(Debug)]
struct Waiting {
    buffer: IpDefragBuf,
    last_ns: u64,
    /// All its pieces came before, in a datagram that was joined: the network or the capture doubled them.
    is_copy: bool,
}

/// A datagram that was complete.
#[derive(Debug)]
struct Joined {
    id: DatagramId,
    at_ns: u64,
    payload: Vec<u8>,
}

impl Fragments {
    /// Takes a piece; the whole datagram's payload if it was the last that was missing.
    pub(crate) fn add(&mut self, key: FragmentKey, payload: &[u8], at_ns: u64) -> Option<&[u8]> {
        let known = self.waiting.get(&key.id).map(|waiting| waiting.is_copy);
        let is_copy = known != Some(false) && self.is_copy(key, payload, at_ns);
        if known.is_none() {
            self.make_room(at_ns);
        }
        let new = || Waiting {
            buffer: IpDefragBuf::new(IpNumber::TCP, Vec::new(), Vec::new()),
            last_ns: at_ns,
            is_copy,
        };
        let waiting = self.waiting.entry(key.id).or_insert_with(new);
        if waiting.is_copy && !is_copy {
            // Another datagram has the same number. It may begin as the old one did, but the old one's end is not
            // its own.
            match waiting.buffer.end() {
                Some(_) => *waiting = new(),
                None => waiting.is_copy = false,
            }
        }
        waiting.last_ns = at_ns;
        if waiting.buffer.add(key.offset, key.more, payload).is_err() {
            self.waiting.remove(&key.id);
            self.given_up += 1;
            return None;
        }
        if !waiting.buffer.is_complete() {
            return None;
        }
        let waiting = self.waiting.remove(&key.id)?;
        if self.joined.len() >= JOINED_MAX {
            self.joined.pop_front();
        }
        self.joined.push_back(Joined { id: key.id, at_ns, payload: waiting.buffer.take_bufs().0 });
        self.joined.back().map(|joined| joined.payload.as_slice())
    }

    /// Datagrams that were not completed.
    pub fn incomplete(&self) -> u64 {
        self.given_up + incomplete(&self.waiting)
    }

    /// Whether a datagram with the same number was joined and has the same bytes at this place.
    fn is_copy(&self, key: FragmentKey, payload: &[u8], at_ns: u64) -> bool {
        let first = usize::from(key.offset.byte_offset());
        let end = first + payload.len();
        let is_same = |joined: &Joined| {
            joined.id == key.id
                && at_ns.saturating_sub(joined.at_ns) < WAIT_NS
                && joined.payload.get(first..end) == Some(payload)
                && (key.more || end == joined.payload.len())
        };
        self.joined.iter().any(is_same)
    }

    fn make_room(&mut self, at_ns: u64) {
        if self.waiting.len() < DATAGRAMS_MAX {
            return;
        }
        let before = incomplete(&self.waiting);
        self.waiting.retain(|_, waiting| at_ns.saturating_sub(waiting.last_ns) < WAIT_NS);
        if self.waiting.len() >= DATAGRAMS_MAX {
            let oldest = self.waiting.iter().min_by_key(|(_, waiting)| waiting.last_ns).map(|(id, _)| *id);
            oldest.map(|id| self.waiting.remove(&id));
        }
        self.given_up += before - incomplete(&self.waiting);
    }
}

fn incomplete(waiting: &HashMap<DatagramId, Waiting, RandomState>) -> u64 {
    waiting.values().filter(|waiting| !waiting.is_copy).count() as u64
}
