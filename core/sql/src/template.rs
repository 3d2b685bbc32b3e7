//! The template while it grows: runs of the text are copied in one piece wherever blanks are already single.

use crate::scan;

/// Longest template in bytes; a longer one is cut and ends with [`CUT_MARK`].
pub const TEMPLATE_BYTES_MAX: usize = 64 * 1024;

/// The end of a template that was cut at [`TEMPLATE_BYTES_MAX`].
pub const CUT_MARK: &[u8] = b" ... (cut)";

/// A half-open range of byte offsets, into the template or into the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: offset(start), end: offset(end) }
    }

    /// Whether no byte is in it.
    pub fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The bytes it covers, none if it does not lie within `bytes`.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// Part of the text that belongs behind `bytes` and is not copied yet.
    run_start: usize,
    run_end: usize,
    cut: bool,
}

impl Template {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.run_start = 0;
        self.run_end = 0;
        self.cut = false;
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + (self.run_end - self.run_start)
    }

    /// What was written; up to date only behind [`Self::flush`].
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the token `text[start..end]`, behind one blank if asked. Gives its place, empty once cut.
    #[inline]
    pub(crate) fn keep(&mut self, text: &[u8], start: usize, end: usize, blank: bool) -> Span {
        let adjoins = if blank {
            start == self.run_end + 1 && text.get(self.run_end) == Some(&b' ') && self.len() > 0
        } else {
            start == self.run_end
        };
        if adjoins {
            self.run_end = end;
        } else {
            self.flush(text);
            if blank && !self.bytes.is_empty() {
                self.write(b" ");
            }
            self.run_start = start;
            self.run_end = end;
        }
        let template_end = self.len();
        if self.cut || template_end > TEMPLATE_BYTES_MAX {
            return Span::default();
        }
        Span::new(template_end - (end - start), template_end)
    }

    /// Appends `$number` in the place of the text's token that ends at `token_end`.
    pub(crate) fn place(&mut self, text: &[u8], token_end: usize, number: u32, blank: bool) -> Span {
        self.flush(text);
        let glued = self.bytes.last().is_some_and(|&byte| scan::is_word_byte(byte));
        if glued || (blank && !self.bytes.is_empty()) {
            self.write(b" ");
        }
        let start = self.bytes.len();
        let mut digits = [0; 11];
        let first = decimal(number, &mut digits);
        self.write(&digits[first..]);
        self.run_start = token_end;
        self.run_end = token_end;
        if self.cut { Span::default() } else { Span::new(start, self.bytes.len()) }
    }

    /// Appends bytes that do not come from the text.
    pub(crate) fn push(&mut self, text: &[u8], bytes: &[u8], resume_at: usize) {
        self.flush(text);
        self.write(bytes);
        self.run_start = resume_at;
        self.run_end = resume_at;
    }

    /// Takes back all behind the first `len` bytes. The next token starts a new run.
    pub(crate) fn truncate(&mut self, text: &[u8], len: usize, resume_at: usize) {
        self.flush(text);
        self.bytes.truncate(len);
        self.run_start = resume_at;
        self.run_end = resume_at;
    }

    pub(crate) fn flush(&mut self, text: &[u8]) {
        let run = text.get(self.run_start..self.run_end).unwrap_or_default();
        self.run_start = self.run_end;
        self.write(run);
    }

    pub(crate) fn finish(&mut self, text: &[u8]) {
        self.flush(text);
        if self.cut {
            self.bytes.extend_from_slice(CUT_MARK);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.cut {
            return;
        }
        let room = TEMPLATE_BYTES_MAX - self.bytes.len();
        self.cut = bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Writes `$number` to the end of `digits` and gives the offset of the `$`.
fn decimal(mut number: u32, digits: &mut [u8; 11]) -> usize {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            at -= 1;
            digits[at] = b'$';
            return at;
        }
    }
}
