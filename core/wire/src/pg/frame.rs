use crate::WireError;

/// Bytes of a frame before its body: one tag, four of length.
pub const HEADER_BYTES: usize = 5;

/// Tag and size of one message after the startup phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// First byte: which message this is.
    pub tag: u8,
    /// Bytes after the five of the header.
    pub body_len: u32,
}

impl FrameHeader {
    /// Reads the header at the start of `bytes`; `None` while fewer than five bytes are there.
    ///
    /// `length_max` bounds the length field (which counts itself) and so what a peer can make a reader wait for.
    #[inline]
    pub fn peek(bytes: &[u8], length_max: u32) -> Option<Result<Self, WireError>> {
        let (&[tag, a, b, c, d], _) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let length = i32::from_be_bytes([a, b, c, d]);
        if length < 4 {
            return Some(Err(WireError::FrameTooShort(length)));
        }
        let length = length as u32;
        if length > length_max {
            return Some(Err(WireError::FrameTooLong { length, limit: length_max }));
        }
        Some(Ok(Self { tag, body_len: length - 4 }))
    }

    /// Bytes of the whole frame, header included.
    #[inline]
    pub fn frame_len(&self) -> usize {
        HEADER_BYTES + self.body_len as usize
    }
}

/// Appends one frame; its length is patched in after `body` has written.
pub fn frame(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    length_prefixed(out, body);
}

/// Appends an Int32 length that counts itself, then what `body` writes.
pub(super) fn length_prefixed(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a string and its closing NUL.
pub(super) fn put_c_str(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends a value with its Int32 length; NULL is −1.
pub(super) fn put_value(out: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_waits_for_five_bytes_and_checks_its_length() {
        assert_eq!(FrameHeader::peek(b"Q\0\0\0", 100), None);
        assert_eq!(FrameHeader::peek(b"Q\0\0\0\x05x", 100), Some(Ok(FrameHeader { tag: b'Q', body_len: 1 })));
        assert_eq!(FrameHeader::peek(b"Q\0\0\0\x03", 100), Some(Err(WireError::FrameTooShort(3))));
        assert_eq!(FrameHeader::peek(b"Q\xff\xff\xff\xff", 100), Some(Err(WireError::FrameTooShort(-1))));
        assert_eq!(
            FrameHeader::peek(b"Q\0\0\0\x65", 100),
            Some(Err(WireError::FrameTooLong { length: 101, limit: 100 }))
        );
    }
}
