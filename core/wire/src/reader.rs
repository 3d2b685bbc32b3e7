use crate::WireError;

/// Reads the fields of one message body without copying.
///
/// Numbers of PostgreSQL are big-endian. Those of MySQL are little-endian; their readers are in [`crate::mysql`] and have
/// `_le` in their names.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `body`, which holds this message only.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The bytes not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes an Int16.
    pub fn i16(&mut self) -> Result<i16, WireError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// Takes an Int32.
    pub fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Takes an Int32 as the unsigned number that object identifiers and keys are.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Takes an Int16 that counts what follows.
    ///
    /// PostgreSQL reads the counts of Bind and RowDescription as unsigned: 65,535 parameters are legal.
    pub fn count(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Takes a NUL-terminated string, without the NUL. It need not be UTF-8.
    pub fn c_str(&mut self) -> Result<&'a [u8], WireError> {
        let end = memchr::memchr(0, self.rest).ok_or(WireError::UnterminatedString)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(text)
    }

    /// Takes a value with its Int32 length in front; −1 is NULL.
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| WireError::NegativeLength)?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// Ends the message: left-over bytes are an error, not padding.
    pub fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }
}
