use pcap_parser::{LegacyPcapBlock, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use super::{FileProblem, Interface, RECORD_BYTES_MAX, Record};
use crate::link::LinkType;

const FILE_HEADER_BYTES: usize = 24;
const RECORD_HEADER_BYTES: usize = 16;
/// The upper bits of the link type hold flags about checksums of frames.
const LINK_TYPE_MASK: i32 = 0x03ff_ffff;

/// A classic pcap file.
#[derive(Debug)]
pub(super) struct Pcap {
    is_big_endian: bool,
    nanos_per_tick: u64,
    pub(super) interface: Interface,
}

impl Pcap {
    /// Reads the file's header; `None` where more bytes are needed.
    pub(super) fn begin(input: &[u8]) -> Result<Option<(Self, usize)>, FileProblem> {
        let header: PcapHeader = match parse_pcap_header(input) {
            Ok((_, header)) => header,
            Err(pcap_parser::nom::Err::Incomplete(_)) => return Ok(None),
            Err(_) => {
                let magic = input.first_chunk().copied().unwrap_or_default();
                return Err(FileProblem::NotACapture(magic));
            }
        };
        if header.is_modified_format() {
            return Err(FileProblem::Damaged(
                "this is Kuznetzov's variant of pcap; convert it with editcap -F pcap",
            ));
        }
        let nanos_per_tick = if header.is_nanosecond_precision() { 1 } else { 1_000 };
        let interface = Interface {
            link: LinkType(header.network.0 & LINK_TYPE_MASK),
            ticks_per_second: 1_000_000_000 / nanos_per_tick,
            snaplen: header.snaplen,
            dropped: 0,
            untimed: 0,
        };
        let pcap = Self { is_big_endian: header.is_bigendian(), nanos_per_tick, interface };
        Ok(Some((pcap, FILE_HEADER_BYTES)))
    }

    /// Looks at the record at the front.
    pub(super) fn record(&self, input: &[u8]) -> Result<Record, FileProblem> {
        let parsed = if self.is_big_endian { parse_pcap_frame_be(input) } else { parse_pcap_frame(input) };
        let LegacyPcapBlock { ts_sec, ts_usec, caplen, origlen, .. } = match parsed {
            Ok((_, block)) => block,
            Err(_) => return self.needs(input),
        };
        if (ts_sec, ts_usec, caplen, origlen) == (0, 0, 0, 0) {
            return Err(FileProblem::Zeros);
        }
        if u64::from(ts_usec) >= 1_000_000_000 / self.nanos_per_tick {
            return Err(FileProblem::Damaged("a packet's time has more than a second in its fraction"));
        }
        let captured = caplen as usize;
        Ok(Record::Packet {
            at_ns: u64::from(ts_sec) * 1_000_000_000 + u64::from(ts_usec) * self.nanos_per_tick,
            interface: 0,
            link: self.interface.link,
            data: (RECORD_HEADER_BYTES, captured),
            length: (origlen as usize).max(captured),
            used: RECORD_HEADER_BYTES + captured,
        })
    }

    /// How long the record is that is not all there.
    fn needs(&self, input: &[u8]) -> Result<Record, FileProblem> {
        let Some(header) = input.first_chunk::<RECORD_HEADER_BYTES>() else {
            return Ok(Record::Needs(RECORD_HEADER_BYTES));
        };
        let length = [header[8], header[9], header[10], header[11]];
        let length =
            if self.is_big_endian { u32::from_be_bytes(length) } else { u32::from_le_bytes(length) } as usize;
        if length > RECORD_BYTES_MAX {
            return Err(FileProblem::TooLong { bytes: length as u64 });
        }
        Ok(Record::Needs(RECORD_HEADER_BYTES + length))
    }
}
