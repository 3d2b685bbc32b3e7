//! Memory that begins where Arrow recommends it, at a multiple of 64 bytes.
#![allow(unsafe_code, reason = "bytes are written into lines that are aligned")]

const LINE: usize = 64;

#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

static EMPTY: Line = Line([0; LINE]);

/// Bytes that grow at their end. Those after the end, up to a whole line, are zero.
#[derive(Debug, Default)]
pub(super) struct Aligned {
    lines: Vec<Line>,
    length: usize,
}

impl Aligned {
    /// How many bytes there are.
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are initialized bytes without padding, and `length` never exceeds theirs.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }

    /// Where they begin; never null.
    pub(super) fn pointer(&self) -> *const u8 {
        if self.lines.is_empty() { EMPTY.0.as_ptr() } else { self.lines.as_ptr().cast() }
    }

    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if end > self.lines.len() * LINE {
            self.grow(end);
        }
        let start = self.length;
        self.space()[start..end].copy_from_slice(bytes);
        self.length = end;
    }

    /// Adds zeros.
    pub(super) fn extend_zeros(&mut self, count: usize) {
        let end = self.length + count;
        if end > self.lines.len() * LINE {
            self.grow(end);
        }
        self.length = end;
    }

    /// Sets a bit of those that are counted from each byte's lowest on; the bits before it have been set or cleared.
    pub(super) fn push_bit(&mut self, at: usize, is_set: bool) {
        if at % 8 == 0 {
            self.extend_zeros(1);
        }
        let byte = at / 8;
        self.space()[byte] |= u8::from(is_set) << (at % 8);
    }

    fn space(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE) }
    }

    #[cold]
    fn grow(&mut self, end: usize) {
        let lines = end.div_ceil(LINE).max(self.lines.len() * 2);
        self.lines.resize(lines, EMPTY);
    }
}
