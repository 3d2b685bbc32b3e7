//! Compressed packets: each holds a piece of the stream of packets, cut anywhere.
//!
//! Source: MySQL Internals, "Compressed Packet"; MariaDB Knowledge Base, "0 - Packet: Compressed Packet". zlib is used where
//! both sides set COMPRESS, else zstd where both set ZSTD_COMPRESSION (not verified on 8.x).

use std::io::Write;

use flate2::{Compression as Level, Decompress, FlushDecompress, Status as ZlibStatus};

use super::packet::PAYLOAD_MAX;
use super::primitives::put_u24;

/// Bytes of a compressed packet before its payload.
pub const COMPRESSED_HEADER_BYTES: usize = 7;

/// Pieces below this size are sent as they are.
const COMPRESS_BYTES_MIN: usize = 50;
/// What a codec keeps of its buffers between packets, in bytes.
const IDLE_BYTES_MAX: usize = 256 << 10;

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Deflate with zlib's frame.
    Zlib,
    /// Zstandard (not verified on 8.x).
    Zstd,
}

/// The header of a compressed packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedHeader {
    /// Bytes behind the header.
    pub payload_len: u32,
    /// Number of the packet; counted apart from that of the packets inside.
    pub sequence: u8,
    /// Bytes of the piece before it was compressed; zero if it is sent as it is.
    pub plain_len: u32,
}

/// A compressed packet is not what its header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompressionError {
    /// The payload is not of the stream's algorithm, or is damaged.
    #[error("compressed packet does not decompress")]
    Damaged,
    /// It gives another number of bytes.
    #[error("compressed packet has not the {0} bytes that it claims")]
    WrongLength(u32),
}

impl CompressedHeader {
    /// Reads the header at the start of `bytes`; `None` while fewer than seven bytes are there.
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        let (&[a, b, c, sequence, d, e, f], _) = bytes.split_first_chunk::<COMPRESSED_HEADER_BYTES>()?;
        Some(Self {
            payload_len: u32::from_le_bytes([a, b, c, 0]),
            sequence,
            plain_len: u32::from_le_bytes([d, e, f, 0]),
        })
    }

    /// Appends the header; of its lengths, three bytes each.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_u24(out, self.payload_len);
        out.push(self.sequence);
        put_u24(out, self.plain_len);
    }
}

/// Gives the pieces of a compressed stream, however it is cut.
///
/// It holds at most one packet and its piece, each below 16 MiB.
#[derive(Debug)]
pub struct Unpacker {
    compression: Compression,
    packet: Vec<u8>,
    piece: Vec<u8>,
}

impl Unpacker {
    /// For one direction of a connection.
    pub fn new(compression: Compression) -> Self {
        Self { compression, packet: Vec::new(), piece: Vec::new() }
    }

    /// Whether a compressed packet has begun and not ended.
    pub fn is_inside(&self) -> bool {
        !self.packet.is_empty()
    }

    /// Takes bytes off `input` until a compressed packet ends, whose piece it gives, or none are left.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<&[u8]>, CompressionError> {
        self.take(input, COMPRESSED_HEADER_BYTES);
        let Some(header) = CompressedHeader::peek(&self.packet) else { return Ok(None) };
        let packet_len = COMPRESSED_HEADER_BYTES + header.payload_len as usize;
        self.take(input, packet_len);
        if self.packet.len() < packet_len {
            return Ok(None);
        }
        let payload = &self.packet[COMPRESSED_HEADER_BYTES..];
        self.piece.clear();
        self.piece.shrink_to(IDLE_BYTES_MAX);
        if header.plain_len == 0 {
            self.piece.extend_from_slice(payload);
        } else {
            decompress(self.compression, payload, header.plain_len, &mut self.piece)?;
        }
        self.packet.clear();
        self.packet.shrink_to(IDLE_BYTES_MAX);
        Ok(Some(&self.piece))
    }

    /// Gives back what the last piece took.
    pub fn rest(&mut self) {
        self.piece.clear();
        self.piece.shrink_to(IDLE_BYTES_MAX);
    }

    fn take(&mut self, input: &mut &[u8], len: usize) {
        let missing = len.saturating_sub(self.packet.len()).min(input.len());
        let (piece, rest) = input.split_at(missing);
        self.packet.extend_from_slice(piece);
        *input = rest;
    }
}

fn decompress(
    compression: Compression,
    payload: &[u8],
    plain_len: u32,
    piece: &mut Vec<u8>,
) -> Result<(), CompressionError> {
    let len = plain_len as usize;
    match compression {
        Compression::Zlib => {
            // One more than claimed shows a stream that is longer.
            piece.reserve_exact(len + 1);
            let mut zlib = Decompress::new(true);
            match zlib.decompress_vec(payload, piece, FlushDecompress::Finish) {
                Ok(ZlibStatus::StreamEnd) if zlib.total_in() == payload.len() as u64 => {}
                Ok(_) if piece.len() > len => return Err(CompressionError::WrongLength(plain_len)),
                Ok(_) | Err(_) => return Err(CompressionError::Damaged),
            }
        }
        Compression::Zstd => {
            piece.resize(len, 0);
            let written = zstd::bulk::decompress_to_buffer(payload, &mut piece[..])
                .map_err(|_| CompressionError::Damaged)?;
            piece.truncate(written);
        }
    }
    if piece.len() == len { Ok(()) } else { Err(CompressionError::WrongLength(plain_len)) }
}

/// Appends `stream` in compressed packets, numbered from `sequence`; `level` is the algorithm's own. Gives the number of the
/// packet to come.
pub fn pack(out: &mut Vec<u8>, compression: Compression, level: u8, mut sequence: u8, stream: &[u8]) -> u8 {
    for piece in stream.chunks(PAYLOAD_MAX) {
        let packed = compress(compression, level, piece).filter(|packed| packed.len() < piece.len());
        let (payload, plain_len) = match &packed {
            Some(packed) => (&packed[..], piece.len() as u32),
            None => (piece, 0),
        };
        let header = CompressedHeader { payload_len: payload.len() as u32, sequence, plain_len };
        header.encode(out);
        out.extend_from_slice(payload);
        sequence = sequence.wrapping_add(1);
    }
    sequence
}

/// The piece compressed, if it is worth trying.
fn compress(compression: Compression, level: u8, piece: &[u8]) -> Option<Vec<u8>> {
    if piece.len() < COMPRESS_BYTES_MIN {
        return None;
    }
    match compression {
        Compression::Zlib => {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Level::new(u32::from(level).min(9)));
            zlib.write_all(piece).ok()?;
            zlib.finish().ok()
        }
        Compression::Zstd => zstd::bulk::compress(piece, i32::from(level)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpack(compression: Compression, packed: &[u8], cut: usize) -> Result<Vec<u8>, CompressionError> {
        let mut unpacker = Unpacker::new(compression);
        let mut plain = Vec::new();
        for chunk in packed.chunks(cut) {
            let mut input = chunk;
            while let Some(piece) = unpacker.next(&mut input)? {
                plain.extend_from_slice(piece);
            }
        }
        Ok(plain)
    }

    #[test]
    fn what_is_packed_unpacks_however_it_is_cut() {
        let texts =
            [b"select 1".to_vec(), b"select 'aaaaaaaaaaaa'".repeat(20), (0..=255).collect::<Vec<u8>>()];
        for compression in [Compression::Zlib, Compression::Zstd] {
            let mut packed = Vec::new();
            let mut sequence = 254;
            for text in &texts {
                sequence = pack(&mut packed, compression, 3, sequence, text);
            }
            assert_eq!(sequence, 1);
            assert!(packed.len() < texts.concat().len());
            for cut in [1, 2, 7, 8, 100, packed.len()] {
                assert_eq!(unpack(compression, &packed, cut).unwrap(), texts.concat());
            }
        }
    }

    #[test]
    fn the_pages_example_unpacks() {
        // MySQL Internals, "Compressed Packet: Example: One MySQL Packet".
        let packed =
            b"\x22\0\0\0\x32\0\0\x78\x9c\xd3\x63\x60\x60\x60\x2e\x4e\xcd\x49\x4d\x2e\x51\x50\x32\x30\x34\
            \x32\x36\x31\x35\x33\xb7\xb0\xc4\xcd\x52\x02\0\x0c\xd1\x0a\x6c";
        let plain = b"\x2e\0\0\0\x03select \"012345678901234567890123456789012345\"";
        assert_eq!(unpack(Compression::Zlib, packed, 5).unwrap(), plain);
    }

    #[test]
    fn a_packet_that_is_not_what_it_claims_is_an_error() {
        let text = vec![b'a'; 1000];
        for compression in [Compression::Zlib, Compression::Zstd] {
            let mut packed = Vec::new();
            pack(&mut packed, compression, 1, 0, &text);
            for claimed in [1u32, 999, 1001, 0xff_ffff] {
                let mut wrong = packed.clone();
                wrong[4..7].copy_from_slice(&claimed.to_le_bytes()[..3]);
                assert!(unpack(compression, &wrong, 100).is_err(), "{compression:?} {claimed}");
            }
            let last = packed.len() - 1;
            let mut cut = packed[..last].to_vec();
            cut[0] -= 1;
            assert_eq!(unpack(compression, &cut, 100), Err(CompressionError::Damaged));
        }
    }
}
