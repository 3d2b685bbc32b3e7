//! Packets: three bytes of length, one of sequence, and what they carry.
//!
//! Source: MySQL Internals, "Protocol Basics: MySQL Packets" and "Sending More Than 16Mb"; MariaDB Knowledge Base,
//! "0 - Packet".

use super::primitives::put_u24;

/// Bytes of a packet before its payload.
pub const HEADER_BYTES: usize = 4;

/// Most bytes that one packet carries. A payload of as many or more goes on in the next packet, which may be empty.
pub const PAYLOAD_MAX: usize = 0xff_ffff;

/// The header of one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    /// Bytes behind the header.
    pub payload_len: u32,
    /// Number of the packet within its exchange; it wraps.
    pub sequence: u8,
}

impl PacketHeader {
    /// Reads the header at the start of `bytes`; `None` while fewer than four bytes are there.
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        let (&[a, b, c, sequence], _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        Some(Self { payload_len: u32::from_le_bytes([a, b, c, 0]), sequence })
    }

    /// Bytes of the packet, header included.
    pub fn packet_len(&self) -> usize {
        HEADER_BYTES + self.payload_len as usize
    }

    /// Whether the payload goes on in the next packet.
    pub fn is_continued(&self) -> bool {
        self.payload_len as usize == PAYLOAD_MAX
    }

    fn put(self, out: &mut [u8]) {
        let [a, b, c, _] = self.payload_len.to_le_bytes();
        out[..HEADER_BYTES].copy_from_slice(&[a, b, c, self.sequence]);
    }
}

/// Appends what `body` writes as one payload, in as many packets as it takes. Gives the sequence of the packet to come.
pub fn packet(out: &mut Vec<u8>, sequence: u8, body: impl FnOnce(&mut Vec<u8>)) -> u8 {
    let start = out.len();
    put_u24(out, 0);
    out.push(sequence);
    body(out);
    let length = out.len() - start - HEADER_BYTES;
    let further = length / PAYLOAD_MAX;
    out.resize(out.len() + further * HEADER_BYTES, 0);
    // From the last piece to the first, so that none is written over before it has moved.
    for piece in (0..=further).rev() {
        let from = start + HEADER_BYTES + piece * PAYLOAD_MAX;
        let piece_len = (length - piece * PAYLOAD_MAX).min(PAYLOAD_MAX);
        let header_at = from + (piece * HEADER_BYTES) - HEADER_BYTES;
        out.copy_within(from..from + piece_len, header_at + HEADER_BYTES);
        let header =
            PacketHeader { payload_len: piece_len as u32, sequence: sequence.wrapping_add(piece as u8) };
        header.put(&mut out[header_at..]);
    }
    sequence.wrapping_add(further as u8).wrapping_add(1)
}

/// One payload, put together from its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a> {
    /// Its first bytes: all where they came in one piece, else as many as were to be kept.
    pub head: &'a [u8],
    /// Its bytes, those not kept included.
    pub len: u64,
    /// Sequence of its first packet.
    pub sequence_first: u8,
    /// Sequence of its last packet.
    pub sequence_last: u8,
    /// Bytes of its packets, headers included.
    pub bytes_on_wire: u64,
}

impl<'a> Payload<'a> {
    /// All of it, if nothing was left out.
    pub fn whole(&self) -> Option<&'a [u8]> {
        (self.head.len() as u64 == self.len).then_some(self.head)
    }
}

/// A packet that goes on with a payload does not have the next number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("packet {found} of a long payload came where {expected} was due")]
pub struct OutOfSequence {
    /// Number due.
    pub expected: u8,
    /// Number that came.
    pub found: u8,
}

/// Room for a payload that stays for the next one, in bytes: what a rare long one took is given back.
const ROOM_KEPT: usize = 4096;

/// Puts payloads together from a stream's pieces, however they are cut.
///
/// A payload that comes in one piece is not copied. Of others at most what the caller asks for is kept, so that memory
/// is bounded whatever the peer sends.
#[derive(Debug, Default)]
pub struct Payloads {
    header: [u8; HEADER_BYTES],
    header_len: usize,
    /// Bytes of the packet at hand that are still to come; `None` before its header.
    missing: Option<usize>,
    continued: bool,
    is_inside: bool,
    keep_max: Option<usize>,
    len: u64,
    packets: u64,
    sequence_first: u8,
    sequence_last: u8,
    head: Vec<u8>,
}

impl Payloads {
    /// Whether a payload has begun and not ended.
    pub fn is_inside(&self) -> bool {
        self.is_inside || self.header_len > 0
    }

    /// What has come of a payload that has not ended, if its first byte has.
    pub fn begun(&self) -> Option<Payload<'_>> {
        (self.is_inside && !self.head.is_empty()).then(|| Payload {
            head: &self.head,
            len: self.len,
            sequence_first: self.sequence_first,
            sequence_last: self.sequence_last,
            bytes_on_wire: self.len + self.packets * HEADER_BYTES as u64,
        })
    }

    /// Takes bytes off `input` until a payload ends, which it gives, or none are left.
    ///
    /// `keep_max` gives how many bytes of a payload are to be kept if it does not come in one piece, by its first byte, which
    /// is always kept.
    /// Packets of one payload must have consecutive numbers if `is_numbered`.
    pub fn next<'p, 'i: 'p>(
        &'p mut self,
        input: &mut &'i [u8],
        is_numbered: bool,
        keep_max: impl Fn(u8) -> usize,
    ) -> Result<Option<Payload<'p>>, OutOfSequence> {
        let whole: Option<&'i [u8]> = loop {
            let Some(missing) = self.missing else {
                if !self.take_header(input, is_numbered)? {
                    return Ok(None);
                }
                continue;
            };
            let here = missing.min(input.len());
            let (piece, rest) = input.split_at(here);
            if here == missing && !self.continued && self.len == 0 {
                *input = rest;
                self.len = here as u64;
                break Some(piece);
            }
            if here == 0 && missing > 0 {
                return Ok(None);
            }
            self.keep(piece, &keep_max);
            *input = rest;
            self.missing = Some(missing - here);
            if here == missing {
                if !self.continued {
                    break None;
                }
                self.missing = None;
            }
        };
        let payload_len = self.len;
        let bytes_on_wire = self.len + self.packets * HEADER_BYTES as u64;
        (self.missing, self.is_inside, self.keep_max, self.len, self.packets) = (None, false, None, 0, 0);
        Ok(Some(Payload {
            head: whole.unwrap_or(&self.head),
            len: payload_len,
            sequence_first: self.sequence_first,
            sequence_last: self.sequence_last,
            bytes_on_wire,
        }))
    }

    /// Bytes of the stream are not known. Those of the packet at hand count for its payload, of which no more is kept. Returns
    /// how many are left: with any, it is not known where the next packet begins.
    pub fn miss(&mut self, bytes: u64) -> u64 {
        let Some(missing) = self.missing.filter(|_| !self.head.is_empty()) else { return bytes };
        let inside = bytes.min(missing as u64);
        self.missing = Some(missing - inside as usize);
        self.len += inside;
        self.keep_max = Some(self.head.len());
        bytes - inside
    }

    fn take_header(&mut self, input: &mut &[u8], is_numbered: bool) -> Result<bool, OutOfSequence> {
        let here = (HEADER_BYTES - self.header_len).min(input.len());
        let (piece, rest) = input.split_at(here);
        self.header[self.header_len..self.header_len + here].copy_from_slice(piece);
        self.header_len += here;
        *input = rest;
        let Some(header) = PacketHeader::peek(&self.header[..self.header_len]) else { return Ok(false) };
        self.header_len = 0;
        if !self.is_inside {
            match self.head.capacity() > ROOM_KEPT {
                true => self.head = Vec::new(),
                false => self.head.clear(),
            }
            self.is_inside = true;
            self.sequence_first = header.sequence;
        } else if is_numbered && header.sequence != self.sequence_last.wrapping_add(1) {
            let expected = self.sequence_last.wrapping_add(1);
            return Err(OutOfSequence { expected, found: header.sequence });
        }
        self.sequence_last = header.sequence;
        self.packets += 1;
        self.missing = Some(header.payload_len as usize);
        self.continued = header.is_continued();
        Ok(true)
    }

    fn keep(&mut self, piece: &[u8], keep_max: impl Fn(u8) -> usize) {
        self.len += piece.len() as u64;
        let Some(&first) = piece.first() else { return };
        let keep_max = *self.keep_max.get_or_insert_with(|| keep_max(first).max(1));
        let room = keep_max.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..room]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(stream: &[u8], cut: usize, keep_max: usize) -> Vec<(Vec<u8>, u64, u8, u8, u64)> {
        let mut payloads = Payloads::default();
        let mut found = Vec::new();
        for piece in stream.chunks(cut) {
            let mut input = piece;
            while let Some(payload) = payloads.next(&mut input, true, |_| keep_max).unwrap() {
                let Payload { head, len, sequence_first, sequence_last, bytes_on_wire } = payload;
                found.push((head.to_vec(), len, sequence_first, sequence_last, bytes_on_wire));
            }
            assert!(input.is_empty());
        }
        assert!(!payloads.is_inside());
        found
    }

    #[test]
    fn payloads_are_the_same_however_the_stream_is_cut() {
        let mut stream = Vec::new();
        assert_eq!(packet(&mut stream, 0, |out| out.extend_from_slice(b"\x03select 1")), 1);
        assert_eq!(packet(&mut stream, 255, |_| ()), 0);
        assert_eq!(packet(&mut stream, 7, |out| out.push(1)), 8);
        assert_eq!(stream, b"\x09\0\0\0\x03select 1\0\0\0\xff\x01\0\0\x07\x01");
        let expected =
            [(b"\x03select 1".to_vec(), 9, 0, 0, 13), (Vec::new(), 0, 255, 255, 4), (vec![1], 1, 7, 7, 5)];
        for cut in 1..=stream.len() {
            assert_eq!(all(&stream, cut, 100), expected, "in pieces of {cut}");
        }
        assert_eq!(all(&stream, 3, 4)[0], (b"\x03sel".to_vec(), 9, 0, 0, 13));
        assert_eq!(all(&stream, stream.len(), 0)[0].0, b"\x03select 1", "what comes in one piece is not cut");
    }

    #[test]
    fn payloads_of_sixteen_mebibytes_and_more_go_on_in_the_next_packet() {
        for (length, packets) in [(PAYLOAD_MAX - 1, 1), (PAYLOAD_MAX, 2), (2 * PAYLOAD_MAX + 5, 3)] {
            let mut stream = vec![0xee];
            let next = packet(&mut stream, 254, |out| {
                out.extend((0..length).map(|index| (index / 1000) as u8));
            });
            assert_eq!(next, 254u8.wrapping_add(packets));
            assert_eq!(stream.len(), 1 + length + HEADER_BYTES * usize::from(packets));
            let found = all(&stream[1..], 1 << 20, usize::MAX);
            assert_eq!(found.len(), 1);
            let (head, len, first, last, bytes) = &found[0];
            assert!(head.iter().enumerate().all(|(index, byte)| *byte == (index / 1000) as u8));
            assert_eq!((head.len(), *len, *first), (length, length as u64, 254));
            assert_eq!((*last, *bytes), (253u8.wrapping_add(packets), stream.len() as u64 - 1));
        }
    }

    #[test]
    fn a_gap_within_a_packet_is_a_part_of_its_payload() {
        let mut stream = Vec::new();
        packet(&mut stream, 0, |out| out.extend_from_slice(b"\x03select 1"));
        packet(&mut stream, 0, |out| out.push(1));
        for (from, until, kept) in [(5, 13, 1), (5, 9, 1), (8, 13, 4), (12, 13, 8)] {
            let mut payloads = Payloads::default();
            assert_eq!(payloads.next(&mut &stream[..from], true, |_| 100).unwrap(), None);
            assert_eq!(payloads.miss((until - from) as u64), 0);
            let mut input = &stream[until..];
            let payload = payloads.next(&mut input, true, |_| 100).unwrap().unwrap();
            assert_eq!((payload.head, payload.len, payload.whole()), (&stream[4..4 + kept], 9, None));
            assert_eq!(payloads.next(&mut input, true, |_| 100).unwrap().unwrap().head, [1]);
        }
    }

    #[test]
    fn a_gap_that_reaches_beyond_a_packet_or_hides_what_it_is_leaves_bytes() {
        let mut stream = Vec::new();
        packet(&mut stream, 0, |out| out.extend_from_slice(b"\x03select 1"));
        for (from, bytes, left) in [(0, 1, 1), (3, 1, 1), (4, 1, 1), (5, 9, 1), (12, 5, 4)] {
            let mut payloads = Payloads::default();
            assert_eq!(payloads.next(&mut &stream[..from], true, |_| 100).unwrap(), None);
            assert_eq!(payloads.miss(bytes), left, "from {from}");
        }
    }

    #[test]
    fn a_long_payload_must_be_numbered_in_order() {
        let mut stream = Vec::new();
        packet(&mut stream, 3, |out| out.resize(out.len() + PAYLOAD_MAX, 0));
        let last = stream.len() - 1;
        stream[last] = 9;
        let mut payloads = Payloads::default();
        let wrong = payloads.next(&mut &stream[..], true, |_| 0).unwrap_err();
        assert_eq!(wrong, OutOfSequence { expected: 4, found: 9 });
        let mut payloads = Payloads::default();
        let mut input = &stream[..];
        let payload = payloads.next(&mut input, false, |_| 0).unwrap().unwrap();
        assert_eq!((payload.len, payload.head.len(), payload.whole()), (PAYLOAD_MAX as u64, 1, None));
    }
}
