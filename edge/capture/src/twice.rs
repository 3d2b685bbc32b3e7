//! Packets that a capture has twice: of a bridge's two ports (`-i any`), of two files of one time.
//!
//! A copy has all of the first one's TCP header and its IP identification. A segment that is sent again has not: Linux counts the
//! identification and the timestamp on. Hops are not compared, for a router between the two places takes one off; nor is the
//! checksum, which a network card may fill in between them.

use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;

/// Packets that are remembered.
const KEPT: usize = 64;
/// The copies of a packet are as far apart, at most. Nobody sends again so soon.
const APART_NS_MAX: u64 = 1_000_000;

/// What tells a packet from others, but for what changes on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(Option<u64>);

impl Fingerprint {
    /// Of a packet with this IP identification (zero where it has none), addresses, TCP header and bytes of data.
    pub(crate) fn new(identification: u16, ends: impl Hash, header: &[u8], length: u32) -> Self {
        // Acknowledgements alone may be alike, and are two.
        if identification == 0 && length == 0 {
            return Self(None);
        }
        /// Where a TCP header has its checksum.
        const CHECKSUM: std::ops::Range<usize> = 16..18;
        let mut hasher = FixedState::default().build_hasher();
        hasher.write_u16(identification);
        ends.hash(&mut hasher);
        hasher.write(header.get(..CHECKSUM.start).unwrap_or_default());
        hasher.write(header.get(CHECKSUM.end..).unwrap_or_default());
        hasher.write_u32(length);
        Self(Some(hasher.finish()))
    }
}

/// The latest packets.
#[derive(Debug)]
pub(crate) struct Latest {
    fingerprints: [u64; KEPT],
    times_ns: [u64; KEPT],
    next: usize,
}

impl Default for Latest {
    fn default() -> Self {
        Self { fingerprints: [0; KEPT], times_ns: [0; KEPT], next: 0 }
    }
}

impl Latest {
    /// Whether a packet is a copy of one of them; if not, it is one of them from now on.
    pub(crate) fn has(&mut self, fingerprint: Fingerprint, at_ns: u64) -> bool {
        let Fingerprint(Some(fingerprint)) = fingerprint else { return false };
        let is_copy = |place: usize| at_ns.abs_diff(self.times_ns[place]) <= APART_NS_MAX;
        let mut same = self.fingerprints.iter().enumerate().filter(|(_, known)| **known == fingerprint);
        if same.any(|(place, _)| is_copy(place)) {
            return true;
        }
        self.fingerprints[self.next] = fingerprint;
        self.times_ns[self.next] = at_ns;
        self.next = (self.next + 1) % KEPT;
        false
    }
}
