//! Link layers: where the IP packet is within a frame.

use etherparse::{EtherType, Ethernet2Slice, SingleVlanSlice, ether_type};

/// How a frame begins, as capture files number it (`LINKTYPE_`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub i32);

/// VLAN tags of one frame that are looked behind.
const TAGS_MAX: usize = 4;

impl LinkType {
    const NULL: Self = Self(0);
    const ETHERNET: Self = Self(1);
    const LOOP: Self = Self(108);
    const LINUX_SLL: Self = Self(113);
    const IPV4: Self = Self(228);
    const IPV6: Self = Self(229);
    const LINUX_SLL2: Self = Self(276);

    /// Frames that are an IP packet and nothing else; the number differs between systems.
    fn is_raw(self) -> bool {
        matches!(self.0, 12 | 14 | 101) || self == Self::IPV4 || self == Self::IPV6
    }

    /// Whether frames of this type are looked into.
    pub fn is_known(self) -> bool {
        self.is_raw()
            || [Self::NULL, Self::ETHERNET, Self::LOOP, Self::LINUX_SLL, Self::LINUX_SLL2].contains(&self)
    }

    /// Its name, as `tcpdump -L` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NULL => "NULL",
            Self::ETHERNET => "EN10MB",
            Self::LOOP => "LOOP",
            Self::LINUX_SLL => "LINUX_SLL",
            Self::LINUX_SLL2 => "LINUX_SLL2",
            raw if raw.is_raw() => "RAW",
            _ => "unknown",
        }
    }
}

/// The IP packet in a frame, with what may follow it; `None` where there is none.
pub fn ip_packet(link: LinkType, frame: &[u8]) -> Option<&[u8]> {
    match link {
        LinkType::ETHERNET => {
            let frame = Ethernet2Slice::from_slice_without_fcs(frame).ok()?;
            of_ether_type(frame.ether_type(), frame.payload_slice())
        }
        // A packet type, ARPHRD type, an address of up to eight bytes, then the protocol.
        LinkType::LINUX_SLL => of_ether_type(protocol(frame, 14)?, frame.get(16..)?),
        LinkType::LINUX_SLL2 => of_ether_type(protocol(frame, 0)?, frame.get(20..)?),
        // An address family in the byte order of whoever captured; the version nibble says what it is.
        LinkType::NULL | LinkType::LOOP => frame.get(4..),
        raw if raw.is_raw() => Some(frame),
        _ => None,
    }
}

fn protocol(frame: &[u8], at: usize) -> Option<EtherType> {
    let bytes = frame.get(at..at + 2)?;
    Some(EtherType(u16::from_be_bytes([bytes[0], bytes[1]])))
}

fn of_ether_type(mut kind: EtherType, mut payload: &[u8]) -> Option<&[u8]> {
    for _ in 0..TAGS_MAX {
        match kind {
            ether_type::IPV4 | ether_type::IPV6 => return Some(payload),
            ether_type::VLAN_TAGGED_FRAME
            | ether_type::PROVIDER_BRIDGING
            | ether_type::VLAN_DOUBLE_TAGGED_FRAME => {
                let tagged = SingleVlanSlice::from_slice(payload).ok()?;
                kind = tagged.ether_type();
                payload = tagged.payload_slice();
            }
            _ => return None,
        }
    }
    matches!(kind, ether_type::IPV4 | ether_type::IPV6).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IPV4: [u8; 2] = [0x08, 0x00];

    #[test]
    fn every_link_layer_has_its_packet_where_the_standard_says() {
        let ip = [0x45, 1, 2, 3];
        let frames: [(i32, Vec<u8>); 6] = [
            (0, [&[2, 0, 0, 0][..], &ip].concat()),
            (1, [&[0; 12][..], &IPV4, &ip].concat()),
            (1, [&[0; 12][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9], &IPV4, &ip].concat()),
            (101, ip.to_vec()),
            (113, [&[0; 14][..], &IPV4, &ip].concat()),
            (276, [&IPV4[..], &[0; 18], &ip].concat()),
        ];
        for (link, frame) in frames {
            assert_eq!(ip_packet(LinkType(link), &frame), Some(&ip[..]), "link type {link}");
        }
    }

    #[test]
    fn frames_without_ip_and_cut_ones_have_none() {
        assert_eq!(ip_packet(LinkType(1), &[[0; 12].as_slice(), &[8, 6], &[0; 28]].concat()), None, "ARP");
        assert_eq!(ip_packet(LinkType(1), &[0; 13]), None);
        assert_eq!(ip_packet(LinkType(113), &[0; 15]), None);
        assert_eq!(ip_packet(LinkType(147), &[0x45; 40]), None, "a private link type");
        let tags = [[0; 12].as_slice(), &[0x81, 0, 0, 1].repeat(6), &IPV4, &[0x45]].concat();
        assert_eq!(ip_packet(LinkType(1), &tags), None, "more tags than anyone sends");
    }
}
