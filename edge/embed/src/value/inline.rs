//! Short text without allocation.

use std::fmt;

/// Text of at most 64 bytes, kept in place; what does not fit is refused by [`fmt::Write`].
#[derive(Clone, Copy)]
pub(crate) struct InlineText {
    len: u8,
    bytes: [u8; 64],
}

impl InlineText {
    pub(crate) fn new() -> Self {
        Self { len: 0, bytes: [0; 64] }
    }

    pub(crate) fn format(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::new();
        // What does not fit is cut; every caller's longest text fits.
        let _ = fmt::Write::write_fmt(&mut text, arguments);
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Write for InlineText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.len);
        let end = start + text.len();
        self.bytes.get_mut(start..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end as u8;
        Ok(())
    }
}

impl fmt::Debug for InlineText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
