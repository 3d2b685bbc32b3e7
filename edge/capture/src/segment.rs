//! IP packets to TCP segments.

use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use etherparse::{IpNumber, LaxIpSlice, TcpHeaderSlice, TcpOptionElement};

use crate::fragments::{FragmentKey, Fragments};
use crate::twice::Fingerprint;

/// An address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// As one number where that is enough: connections are looked up for every packet.
impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.address {
            IpAddr::V4(address) => state.write_u64(u64::from(address.to_bits()) << 16 | u64::from(self.port)),
            IpAddr::V6(address) => {
                state.write_u128(address.to_bits());
                state.write_u16(self.port);
            }
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.address {
            IpAddr::V4(address) => write!(f, "{address}:{}", self.port),
            IpAddr::V6(address) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// One TCP segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Who sent it.
    pub source: Endpoint,
    /// Who it is for.
    pub destination: Endpoint,
    /// Hops that it may still take.
    pub ttl: u8,
    /// Number of its first byte.
    pub sequence: u32,
    /// The number of the byte that its sender expects next.
    pub acknowledged: u32,
    /// Its flags.
    pub flags: Flags,
    /// The window that its sender offers, not scaled.
    pub window: u16,
    /// Options that only a SYN has.
    pub offer: Offer,
    /// Its data, as far as it was captured.
    pub data: &'a [u8],
    /// Bytes of data that it carried.
    pub length: u32,
    /// What a copy of its packet has, too.
    pub(crate) fingerprint: Fingerprint,
}

/// Flags of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The sender sends no more.
    pub fn fin(self) -> bool {
        self.0 & 1 != 0
    }

    /// It opens a connection.
    pub fn syn(self) -> bool {
        self.0 & 2 != 0
    }

    /// It ends a connection at once.
    pub fn rst(self) -> bool {
        self.0 & 4 != 0
    }

    /// Its acknowledgement counts.
    pub fn ack(self) -> bool {
        self.0 & 16 != 0
    }
}

/// What a SYN offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offer {
    /// Longest segment that the sender takes, zero where it does not say.
    pub segment_bytes_max: u16,
    /// Its windows are to be multiplied by two to this power.
    pub window_scale: Option<u8>,
}

/// Why a packet was not looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// It is no TCP.
    NotTcp,
    /// A piece of a datagram whose rest is yet to come.
    Fragment,
    /// It was cut within its headers.
    Cut,
    /// Its headers contradict themselves.
    Malformed,
}

const TCP_HEADER_BYTES_MIN: usize = 20;

impl<'a> Segment<'a> {
    /// The number of its first byte of data: a SYN has a number of its own before it (RFC 9293, 3.4; with data: RFC 7413).
    pub(crate) fn first_byte(&self) -> u32 {
        self.sequence.wrapping_add(u32::from(self.flags.syn()))
    }

    /// The segment in an IP packet. `wire_bytes` is how long the packet was where it was captured; `pieces` joins
    /// fragments, and lends their bytes.
    ///
    /// # Errors
    ///
    /// Packets without a whole TCP header.
    pub fn of_ip_packet(
        packet: &'a [u8],
        wire_bytes: usize,
        at_ns: u64,
        pieces: &'a mut Fragments,
    ) -> Result<Self, Other> {
        let (ip, stopped) = LaxIpSlice::from_slice(packet).map_err(|error| match error {
            etherparse::err::ip::LaxHeaderSliceError::Len(_) => Other::Cut,
            etherparse::err::ip::LaxHeaderSliceError::Content(_) => Other::Malformed,
        })?;
        if stopped.is_some() {
            return Err(Other::Cut);
        }
        let payload = ip.payload();
        if payload.ip_number != IpNumber::TCP {
            return Err(Other::NotTcp);
        }
        let header_bytes = payload.payload.as_ptr() as usize - packet.as_ptr() as usize;
        let identification = match &ip {
            LaxIpSlice::Ipv4(ip) => ip.header().identification(),
            LaxIpSlice::Ipv6(_) => 0,
        };
        let (said, ttl, source, destination) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                let header = ip.header();
                let said = usize::from(header.total_len());
                (said, header.ttl(), IpAddr::V4(header.source_addr()), IpAddr::V4(header.destination_addr()))
            }
            LaxIpSlice::Ipv6(ip) => {
                let header = ip.header();
                let said = usize::from(header.payload_length());
                // A jumbo, or a packet whose length the network card is to fill in.
                let said = if said == 0 { 0 } else { said + 40 };
                (
                    said,
                    header.hop_limit(),
                    IpAddr::V6(header.source_addr()),
                    IpAddr::V6(header.destination_addr()),
                )
            }
        };
        let packet_bytes = if said == 0 { wire_bytes } else { said };
        let on_wire = packet_bytes.saturating_sub(header_bytes);
        let captured = &packet[header_bytes..packet.len().min(packet_bytes.max(header_bytes))];
        let (tcp, tcp_bytes) = if payload.fragmented {
            if captured.len() < on_wire {
                return Err(Other::Cut);
            }
            let key = FragmentKey::of(&ip).ok_or(Other::Malformed)?;
            let joined = pieces.add(key, captured, at_ns).ok_or(Other::Fragment)?;
            (joined, joined.len())
        } else {
            (captured, on_wire)
        };
        Self::of_tcp(tcp, tcp_bytes, at_ns, (identification, ttl), (source, destination))
    }

    fn of_tcp(
        tcp: &'a [u8],
        wire_bytes: usize,
        at_ns: u64,
        (identification, ttl): (u16, u8),
        (source, destination): (IpAddr, IpAddr),
    ) -> Result<Self, Other> {
        let Some(fixed) = tcp.first_chunk::<TCP_HEADER_BYTES_MIN>() else { return Err(Other::Cut) };
        let header_bytes = usize::from(fixed[12] >> 4) * 4;
        if header_bytes < TCP_HEADER_BYTES_MIN || header_bytes > wire_bytes {
            return Err(Other::Malformed);
        }
        let number = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let short = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let flags = Flags(fixed[13]);
        // A packet that is cut within the options has no data, and all else that matters.
        let header = flags.syn().then(|| TcpHeaderSlice::from_slice(tcp).ok()).flatten();
        let offer = header.as_ref().map(offer).unwrap_or_default();
        let length = u32::try_from(wire_bytes - header_bytes).map_err(|_| Other::Malformed)?;
        let whole_header = &tcp[..header_bytes.min(tcp.len())];
        Ok(Self {
            at_ns,
            source: Endpoint { address: source, port: short(0) },
            destination: Endpoint { address: destination, port: short(2) },
            ttl,
            sequence: number(4),
            acknowledged: number(8),
            flags,
            window: short(14),
            offer,
            data: tcp.get(header_bytes..).unwrap_or_default(),
            length,
            fingerprint: Fingerprint::new(identification, (source, destination), whole_header, length),
        })
    }
}

fn offer(header: &TcpHeaderSlice<'_>) -> Offer {
    let mut offer = Offer::default();
    for option in header.options_iterator().flatten() {
        match option {
            TcpOptionElement::MaximumSegmentSize(bytes) => offer.segment_bytes_max = bytes,
            TcpOptionElement::WindowScale(shift) => offer.window_scale = Some(shift.min(14)),
            _ => {}
        }
    }
    offer
}
