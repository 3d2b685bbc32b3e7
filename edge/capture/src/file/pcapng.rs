use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, InterfaceDescriptionBlock, OptionCode, parse_block_be, parse_block_le};

use super::{FileProblem, Interface, Record};
use crate::link::LinkType;

/// Type and length, at the front of each block.
const BLOCK_HEADER_BYTES: usize = 8;
/// Shortest block: type and both lengths.
const BLOCK_BYTES_MIN: usize = 12;
/// The block of packets that old tools write. pcap-parser does not decode it.
const OLD_PACKET: u32 = 2;
/// Bytes of it that are not a packet's, between the header that all blocks have and the packet.
const OLD_FIELDS_BYTES: usize = 20;
/// What it says of packets that were dropped before it, where that is not known.
const DROPS_UNKNOWN: u16 = u16::MAX;
/// Bytes before a packet's own in an enhanced and in a simple packet block.
const ENHANCED_HEADER_BYTES: usize = 28;
const SIMPLE_HEADER_BYTES: usize = 12;
/// The byte-order mark of a section, as a writer of the other order leaves it.
const SWAPPED_MARK: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// Set in the resolution of a clock that ticks by a power of two.
const POWER_OF_TWO: u8 = 0x80;
/// Option of an enhanced packet block: packets lost between the interface's last one and this (`epb_dropcount`).
const DROPPED_BEFORE: OptionCode = OptionCode(4);
const INTERFACES_MAX: usize = 65_536;
const NANOS: u128 = 1_000_000_000;

/// A pcapng file.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    is_big_endian: bool,
    /// All interfaces of the file.
    pub(super) interfaces: Vec<Interface>,
    /// Seconds that each interface's times are ahead of 1970.
    offsets: Vec<i64>,
    /// The first interface of the section that is being read.
    first: usize,
    last_at_ns: u64,
}

impl Pcapng {
    /// Looks at the block at the front.
    pub(super) fn record(&mut self, input: &[u8]) -> Result<Record, FileProblem> {
        let Some(header) = input.first_chunk::<BLOCK_HEADER_BYTES>() else {
            return Ok(Record::Needs(BLOCK_HEADER_BYTES));
        };
        if *header == [0; BLOCK_HEADER_BYTES] {
            return Err(FileProblem::Zeros);
        }
        let is_section = u32::from_be_bytes([header[0], header[1], header[2], header[3]])
            == pcap_parser::pcapng::SHB_MAGIC;
        if is_section {
            let Some(mark) = input.get(BLOCK_HEADER_BYTES..BLOCK_BYTES_MIN) else {
                return Ok(Record::Needs(BLOCK_BYTES_MIN));
            };
            self.is_big_endian = mark == SWAPPED_MARK;
        }
        let length = self.number([header[4], header[5], header[6], header[7]]) as usize;
        if length < BLOCK_BYTES_MIN || length % 4 != 0 {
            return Err(FileProblem::Damaged("a block's length is no multiple of four above twelve"));
        }
        let Some(block) = input.get(..length) else { return Ok(Record::Needs(length)) };
        let parsed = if self.is_big_endian { parse_block_be(block) } else { parse_block_le(block) };
        match parsed {
            Ok((_, block)) => self.block(&block, length),
            Err(_) => Err(FileProblem::Damaged("a block does not decode")),
        }
    }

    fn block(&mut self, block: &Block<'_>, used: usize) -> Result<Record, FileProblem> {
        match block {
            Block::SectionHeader(_) => self.first = self.interfaces.len(),
            Block::InterfaceDescription(described) => self.interface(described)?,
            Block::EnhancedPacket(packet) => {
                let (place, interface) = self.find(packet.if_id)?;
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let at_ns = self.nanos(place, ticks);
                self.last_at_ns = at_ns;
                for option in packet.options.iter().filter(|option| option.code == DROPPED_BEFORE) {
                    let Some(count) = option.value.first_chunk::<8>() else { continue };
                    let count = if self.is_big_endian {
                        u64::from_be_bytes(*count)
                    } else {
                        u64::from_le_bytes(*count)
                    };
                    let dropped = &mut self.interfaces[place].dropped;
                    *dropped = dropped.saturating_add(count);
                }
                let captured = packet.packet_data().len();
                return Ok(Record::Packet {
                    at_ns,
                    interface: place as u32,
                    link: interface,
                    data: (ENHANCED_HEADER_BYTES, captured),
                    length: (packet.origlen as usize).max(captured),
                    used,
                });
            }
            Block::SimplePacket(packet) => {
                // It has no time of its own: that of the packet before is the best there is.
                let (place, interface) = self.find(0)?;
                self.interfaces[place].untimed += 1;
                let snaplen = self.interfaces[place].snaplen as usize;
                let length = packet.origlen as usize;
                let kept = if snaplen == 0 { length } else { length.min(snaplen) };
                let captured = packet.data.len().min(kept);
                return Ok(Record::Packet {
                    at_ns: self.last_at_ns,
                    interface: place as u32,
                    link: interface,
                    data: (SIMPLE_HEADER_BYTES, captured),
                    length: length.max(captured),
                    used,
                });
            }
            Block::InterfaceStatistics(statistics) => {
                if let Ok((place, _)) = self.find(statistics.if_id) {
                    let dropped = [statistics.isb_ifdrop(), statistics.isb_osdrop()];
                    let dropped = dropped.into_iter().flatten().flatten().fold(0, u64::saturating_add);
                    self.interfaces[place].dropped = self.interfaces[place].dropped.max(dropped);
                }
            }
            Block::Unknown(unknown) if self.number(unknown.block_type.to_le_bytes()) == OLD_PACKET => {
                return self.old_packet(unknown.data, used);
            }
            _ => {}
        }
        Ok(Record::Other(used))
    }

    /// A block from before there were enhanced packet blocks.
    fn old_packet(&mut self, body: &[u8], used: usize) -> Result<Record, FileProblem> {
        let broken = FileProblem::Damaged("a block does not decode");
        let Some(fields) = body.first_chunk::<OLD_FIELDS_BYTES>() else { return Err(broken) };
        let short = |at: usize| match self.is_big_endian {
            true => u16::from_be_bytes([fields[at], fields[at + 1]]),
            false => u16::from_le_bytes([fields[at], fields[at + 1]]),
        };
        let number = |at: usize| self.number([fields[at], fields[at + 1], fields[at + 2], fields[at + 3]]);
        let (id, dropped) = (short(0), short(2));
        let ticks = u64::from(number(4)) << 32 | u64::from(number(8));
        let (captured, length) = (number(12) as usize, number(16) as usize);
        if captured > body.len() - OLD_FIELDS_BYTES {
            return Err(broken);
        }
        let (place, link) = self.find(id.into())?;
        if dropped != DROPS_UNKNOWN {
            let before = self.interfaces[place].dropped;
            self.interfaces[place].dropped = before.saturating_add(dropped.into());
        }
        self.last_at_ns = self.nanos(place, ticks);
        Ok(Record::Packet {
            at_ns: self.last_at_ns,
            interface: place as u32,
            link,
            data: (BLOCK_HEADER_BYTES + OLD_FIELDS_BYTES, captured),
            length: length.max(captured),
            used,
        })
    }

    /// A number in the byte order of the section.
    fn number(&self, bytes: [u8; 4]) -> u32 {
        if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn interface(&mut self, described: &InterfaceDescriptionBlock<'_>) -> Result<(), FileProblem> {
        if self.interfaces.len() >= INTERFACES_MAX {
            return Err(FileProblem::Damaged("more interfaces than a machine has"));
        }
        self.interfaces.push(Interface {
            link: LinkType(described.linktype.0),
            ticks_per_second: ticks_per_second(described.if_tsresol)
                .ok_or(FileProblem::Damaged("an interface's clock ticks too fast to be read"))?,
            snaplen: described.snaplen,
            dropped: 0,
            untimed: 0,
        });
        self.offsets.push(described.ts_offset());
        Ok(())
    }

    /// An interface of this section: its place in the file, and how its packets begin.
    fn find(&self, id: u32) -> Result<(usize, LinkType), FileProblem> {
        let place = self.first.saturating_add(id as usize);
        let interface = self.interfaces.get(place);
        let interface =
            interface.ok_or(FileProblem::Damaged("a packet is of an interface that is not described"))?;
        Ok((place, interface.link))
    }

    fn nanos(&self, place: usize, ticks: u64) -> u64 {
        let per_second = self.interfaces[place].ticks_per_second;
        let nanos = match per_second {
            1_000_000 => u128::from(ticks) * 1_000,
            1_000_000_000 => u128::from(ticks),
            _ => u128::from(ticks) * NANOS / u128::from(per_second),
        };
        let offset = i128::from(self.offsets[place]) * NANOS as i128;
        u64::try_from(nanos as i128 + offset).unwrap_or(0)
    }
}

/// Ticks per second of a clock: `resolution` is the exponent of ten, or of two if its top bit is set.
///
/// pcap-parser's own reading refuses all powers of two.
fn ticks_per_second(resolution: u8) -> Option<u64> {
    let exponent = u32::from(resolution & !POWER_OF_TWO);
    match resolution & POWER_OF_TWO {
        0 => 10_u64.checked_pow(exponent),
        _ => 2_u64.checked_pow(exponent),
    }
}
