//! Memory that begins where Arrow recommends it, at a multiple of 64 bytes.
#![allow(unsafe_code, reason = "bytes are written into lines that are aligned")]

use std::mem::MaybeUninit;

const LINE: usize = 64;

/// Bytes of it are written before they are read.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line([MaybeUninit<u8>; LINE]);

#[repr(C, align(64))]
struct Zeros([u8; LINE]);

static EMPTY: Zeros = Zeros([0; LINE]);

/// Bytes that grow at their end. Memory that waits for more of them is not written to, so that the system need not have it.
#[derive(Debug, Default)]
pub(super) struct Aligned {
    /// Its capacity holds the bytes; its length stays zero.
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
        // SAFETY: the first `length` bytes of the capacity were written.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.length) }
    }

    /// Where they begin; never null.
    pub(super) fn pointer(&self) -> *const u8 {
        if self.lines.capacity() == 0 { EMPTY.0.as_ptr() } else { self.lines.as_ptr().cast() }
    }

    /// Makes room for so many bytes more.
    pub(super) fn reserve(&mut self, count: usize) {
        let end = self.length + count;
        if end > self.capacity() {
            self.go_to(end.div_ceil(LINE));
        }
    }

    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.space(bytes.len());
        // SAFETY: there is room for them, in memory that nobody else borrows.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len()) };
        self.length += bytes.len();
    }

    /// Adds zeros.
    pub(super) fn extend_zeros(&mut self, count: usize) {
        let end = self.space(count);
        // SAFETY: there is room for them.
        unsafe { end.write_bytes(0, count) };
        self.length += count;
    }

    /// Sets a bit of those that are counted from each byte's lowest on; the bits before it have been set or cleared.
    pub(super) fn push_bit(&mut self, at: usize, is_set: bool) {
        if at % 8 == 0 {
            self.extend_zeros(1);
        }
        let byte = at / 8;
        assert!(byte < self.length, "bits come one after the other");
        // SAFETY: the byte is one of those that were written.
        unsafe { *self.lines.as_mut_ptr().cast::<u8>().add(byte) |= u8::from(is_set) << (at % 8) };
    }

    /// Gives back what is left of the memory, unless that is little, and makes zeros of the rest of the last line.
    pub(super) fn finish(&mut self) {
        let lines = self.length.div_ceil(LINE);
        if self.lines.capacity() > lines + lines / 8 {
            self.go_to(lines);
        }
        if self.lines.capacity() > 0 {
            let left = lines * LINE - self.length;
            // SAFETY: `lines` are not more than there are.
            unsafe { self.lines.as_mut_ptr().cast::<u8>().add(self.length).write_bytes(0, left) };
        }
    }

    fn capacity(&self) -> usize {
        self.lines.capacity() * LINE
    }

    /// Where so many more bytes are to be written.
    fn space(&mut self, count: usize) -> *mut u8 {
        let end = self.length + count;
        if end > self.capacity() {
            self.go_to(end.div_ceil(LINE).max(self.lines.capacity() * 2));
        }
        // SAFETY: `length` is not more than the capacity.
        unsafe { self.lines.as_mut_ptr().cast::<u8>().add(self.length) }
    }

    /// Moves the bytes to memory of so many lines, which they fit into.
    #[cold]
    fn go_to(&mut self, lines: usize) {
        let mut to: Vec<Line> = Vec::with_capacity(lines);
        // SAFETY: the callers ask for as many lines as `length` bytes need; the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(self.pointer(), to.as_mut_ptr().cast(), self.length) };
        self.lines = to;
    }
}
