//! Capture files: bytes in, packets out. pcap and pcapng are told apart by their first bytes.

mod error;
mod pcap;
mod pcapng;

use std::collections::VecDeque;

pub use error::{FileError, FileProblem};

use self::pcap::Pcap;
use self::pcapng::Pcapng;
use crate::link::LinkType;

/// Longest record that is believed, in bytes: ten times the longest packet that any tool captures.
const RECORD_BYTES_MAX: usize = 4 << 20;
/// Packets that are looked at before the oldest of them is the next one, if they are sorted by their times.
const AHEAD_MAX: usize = 16;
/// And bytes that they may have together.
const AHEAD_BYTES_MAX: usize = 1 << 20;
/// A packet that is older than one before it by more was not captured out of order: the clock was set.
const DISORDER_NS_MAX: u64 = 20_000_000;
/// Bytes that are asked for at once.
const READ_BYTES: usize = 1 << 18;

/// One packet as it was captured.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// How its bytes begin.
    pub link: LinkType,
    /// The interface that it was seen on, counted over the file.
    pub interface: u32,
    /// Its bytes, as far as they were captured.
    pub data: &'a [u8],
    /// Bytes that it had on the wire.
    pub length: usize,
}

/// What a capture says of its interfaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// How its packets begin.
    pub link: LinkType,
    /// Ticks of its clock per second.
    pub ticks_per_second: u64,
    /// Packets are cut at this length; zero where they are not.
    pub snaplen: u32,
    /// Packets that the capture had to drop, as far as it says so.
    pub dropped: u64,
    /// Packets without times: they have that of the packet before them, or zero.
    pub untimed: u64,
}

/// Decodes one capture file as its bytes come.
///
/// Contract: fill [`Self::room`], say [`Self::filled`], take packets by [`Self::next_packet`] until there is none.
#[derive(Debug)]
pub struct CaptureFile {
    buffer: Vec<u8>,
    /// The undecoded bytes are `start..end` of the buffer.
    start: usize,
    end: usize,
    /// Place of `start` in the file.
    offset: u64,
    /// Bytes that the record at the front is known to need.
    needed: usize,
    format: Option<Format>,
    current: Option<Current>,
    /// Decoded packets of which none is the next one yet, in the order of the file.
    ahead: VecDeque<Current>,
    /// So many of them are looked at.
    ahead_max: usize,
    /// Why nothing after them can be decoded.
    broken: Option<FileError>,
    /// Nothing more comes for now: none of them waits for others.
    is_dry: bool,
}

/// The packet that was decoded last.
#[derive(Debug, Clone, Copy)]
struct Current {
    at_ns: u64,
    interface: u32,
    link: LinkType,
    first: usize,
    captured: usize,
    length: usize,
    /// Packets that came after it and went before it.
    overtaken: usize,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// What the bytes at the front are.
enum Record {
    /// A packet: its time, interface, and where its bytes are within the record.
    Packet { at_ns: u64, interface: u32, link: LinkType, data: (usize, usize), length: usize, used: usize },
    /// Something else of this length.
    Other(usize),
    /// More bytes are needed: so many in all.
    Needs(usize),
}

impl Default for CaptureFile {
    fn default() -> Self {
        Self::new()
    }
}

impl CaptureFile {
    /// A file of which nothing has been read.
    pub fn new() -> Self {
        Self {
            buffer: vec![0; 2 * READ_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            needed: 0,
            format: None,
            current: None,
            ahead: VecDeque::new(),
            ahead_max: 1,
            broken: None,
            is_dry: false,
        }
    }

    /// The same, whose packets come in the order of their times. Machines with several queues write neighbours in any
    /// order. Only a few neighbours are sorted. Contract: say [`Self::dry`] where no more bytes come.
    pub fn sorted() -> Self {
        Self { ahead_max: AHEAD_MAX, ..Self::new() }
    }

    /// Where the next bytes of the file go; never empty. The packet at hand is gone.
    pub fn room(&mut self) -> &mut [u8] {
        self.current = None;
        let kept = self.kept();
        if kept > 0 && (self.buffer.len() - self.end < READ_BYTES || kept == self.end) {
            self.buffer.copy_within(kept..self.end, 0);
            self.end -= kept;
            self.start -= kept;
            self.ahead.iter_mut().for_each(|packet| packet.first -= kept);
        }
        let wanted = (self.end + READ_BYTES).max(self.start + self.needed);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// So many bytes were put into the room.
    pub fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
        self.is_dry = false;
    }

    /// No more bytes come, or none for now: packets that wait for their neighbours are next.
    pub fn dry(&mut self) {
        self.is_dry = true;
    }

    /// The first byte of the buffer that is still needed: packets are in it in the order of the file.
    fn kept(&self) -> usize {
        self.ahead.front().map_or(self.start, |packet| packet.first)
    }

    /// Bytes of the file that are decoded.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its interfaces so far.
    pub fn interfaces(&self) -> &[Interface] {
        match &self.format {
            Some(Format::Pcap(pcap)) => std::slice::from_ref(&pcap.interface),
            Some(Format::Pcapng(pcapng)) => &pcapng.interfaces,
            None => &[],
        }
    }

    /// The next packet, or `None` where more bytes are needed.
    ///
    /// # Errors
    ///
    /// Bytes that are no capture, with their place in the file. Nothing after them can be decoded.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, FileError> {
        self.advance()?;
        Ok(self.packet())
    }

    /// The packet at hand: that of the last [`Self::advance`].
    pub fn packet(&self) -> Option<Packet<'_>> {
        let Current { at_ns, interface, link, first, captured, length, .. } = self.current?;
        Some(Packet { at_ns, link, interface, data: &self.buffer[first..first + captured], length })
    }

    /// Goes to the next packet; whether there is one without more bytes.
    ///
    /// # Errors
    ///
    /// As [`Self::next_packet`].
    pub fn advance(&mut self) -> Result<bool, FileError> {
        self.current = None;
        while self.looks_ahead() {
            match self.decode() {
                Ok(Some(packet)) => self.ahead.push_back(packet),
                Ok(None) if self.is_dry => break,
                Ok(None) => return Ok(false),
                Err(error) => self.broken = Some(error),
            }
        }
        self.current = self.oldest();
        match &self.broken {
            Some(error) if self.current.is_none() => Err(error.clone()),
            _ => Ok(self.current.is_some()),
        }
    }

    /// Whether the next packet is not known before another one is decoded.
    fn looks_ahead(&self) -> bool {
        let is_full = || self.ahead.len() >= self.ahead_max || self.start - self.kept() >= AHEAD_BYTES_MAX;
        self.broken.is_none() && (self.ahead.is_empty() || !is_full() && !self.is_overdue())
    }

    /// Whether the first packet goes next whatever comes.
    fn is_overdue(&self) -> bool {
        self.ahead.front().is_some_and(|packet| packet.overtaken + 1 >= self.ahead_max)
    }

    /// The oldest of the packets ahead.
    fn oldest(&mut self) -> Option<Current> {
        let first_ns = self.ahead.front()?.at_ns;
        let (mut place, mut oldest_ns, mut latest_ns) = (0, first_ns, first_ns);
        let reach = if self.is_overdue() { 1 } else { self.ahead.len() };
        for (other, packet) in self.ahead.iter().enumerate().take(reach) {
            if latest_ns.saturating_sub(packet.at_ns) > DISORDER_NS_MAX {
                break;
            }
            latest_ns = latest_ns.max(packet.at_ns);
            if packet.at_ns < oldest_ns {
                (place, oldest_ns) = (other, packet.at_ns);
            }
        }
        self.ahead.iter_mut().take(place).for_each(|packet| packet.overtaken += 1);
        self.ahead.remove(place)
    }

    /// The next packet of the file, or `None` where more bytes are needed.
    fn decode(&mut self) -> Result<Option<Current>, FileError> {
        loop {
            let offset = self.offset;
            let broken = |problem| FileError { offset, problem };
            let input = &self.buffer[self.start..self.end];
            let record = match &mut self.format {
                None => match begin(input).map_err(broken)? {
                    None => return Ok(None),
                    Some((format, used)) => {
                        self.format = Some(format);
                        Record::Other(used)
                    }
                },
                Some(Format::Pcap(pcap)) => pcap.record(input).map_err(broken)?,
                Some(Format::Pcapng(pcapng)) => pcapng.record(input).map_err(broken)?,
            };
            match record {
                Record::Needs(bytes) => {
                    if bytes > RECORD_BYTES_MAX {
                        return Err(broken(FileProblem::TooLong { bytes: bytes as u64 }));
                    }
                    self.needed = bytes;
                    return Ok(None);
                }
                Record::Other(used) => self.consume(used),
                Record::Packet { at_ns, interface, link, data, length, used } => {
                    let first = self.start + data.0;
                    self.consume(used);
                    let captured = data.1;
                    return Ok(Some(Current {
                        at_ns,
                        interface,
                        link,
                        first,
                        captured,
                        length,
                        overtaken: 0,
                    }));
                }
            }
        }
    }

    /// What is left when no more bytes come: `None` where the file ends with a whole record.
    ///
    /// # Errors
    ///
    /// [`FileProblem::Empty`] where there was not one byte, [`FileProblem::Cut`] where a record is not whole.
    pub fn finish(&self) -> Result<(), FileError> {
        let left = self.end - self.start;
        let problem = match (&self.format, left) {
            (None, 0) => FileProblem::Empty,
            (_, 0) => return Ok(()),
            (_, bytes) => FileProblem::Cut { bytes },
        };
        Err(FileError { offset: self.offset, problem })
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
        self.needed = 0;
    }
}

/// Recognises a format by its first bytes.
fn begin(input: &[u8]) -> Result<Option<(Format, usize)>, FileProblem> {
    let Some(magic) = input.first_chunk::<4>() else { return Ok(None) };
    if u32::from_be_bytes(*magic) == pcap_parser::pcapng::SHB_MAGIC {
        return Ok(Some((Format::Pcapng(Pcapng::default()), 0)));
    }
    Ok(Pcap::begin(input)?.map(|(pcap, used)| (Format::Pcap(pcap), used)))
}
