use crate::WireError;

/// First byte of a length-encoded value that is NULL.
pub(crate) const NULL: u8 = 0xfb;
pub(crate) const TWO_BYTES: u8 = 0xfc;
pub(crate) const THREE_BYTES: u8 = 0xfd;
pub(crate) const EIGHT_BYTES: u8 = 0xfe;

/// Reads the fields of one message body without copying.
///
/// Numbers of PostgreSQL are big-endian. Those of MySQL are little-endian; their readers have `_le` in their names.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Starts at the first byte of `body`, which holds this message only.
    #[inline]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The bytes not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes the next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes an Int16.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, WireError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// Takes an Int32.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, WireError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Takes an Int32 as the unsigned number that object identifiers and keys are.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Takes an Int16 that counts what follows.
    ///
    /// PostgreSQL reads the counts of Bind and RowDescription as unsigned: 65,535 parameters are legal.
    #[inline]
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
    #[inline]
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
    #[inline]
    pub fn finish(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }
}

/// Numbers and strings as MySQL writes them.
///
/// Source: MySQL Internals, "Protocol Basics: Data Types"; MariaDB Knowledge Base, "Protocol Data Types".
impl<'a> Reader<'a> {
    /// Takes an `int<2>`.
    pub fn u16_le(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Takes an `int<3>`.
    pub fn u24_le(&mut self) -> Result<u32, WireError> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Takes an `int<4>`.
    pub fn u32_le(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Takes an `int<8>`.
    pub fn u64_le(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Takes an `int<lenenc>`: one, three, four or nine bytes, and no more than its value needs.
    pub fn lenenc_le(&mut self) -> Result<u64, WireError> {
        let (value, least) = self.lenenc_and_least()?;
        if value < least { Err(WireError::OverlongInteger(value)) } else { Ok(value) }
    }

    /// Takes an `int<lenenc>` in any of its forms, and tells the least value that needs this one.
    fn lenenc_and_least(&mut self) -> Result<(u64, u64), WireError> {
        Ok(match self.u8()? {
            one @ 0..=0xfa => (u64::from(one), 0),
            TWO_BYTES => (u64::from(self.u16_le()?), 0xfb),
            THREE_BYTES => (u64::from(self.u24_le()?), 0x1_0000),
            EIGHT_BYTES => (self.u64_le()?, 0x100_0000),
            undefined => return Err(WireError::UndefinedValue(i32::from(undefined))),
        })
    }

    /// Takes a `string<lenenc>` whose length may have more bytes than it needs, as servers do.
    pub(crate) fn overlong_bytes_le(&mut self) -> Result<&'a [u8], WireError> {
        let (length, _) = self.lenenc_and_least()?;
        self.bytes(usize::try_from(length).map_err(|_| WireError::Truncated)?)
    }

    /// Takes a `string<lenenc>`.
    pub fn lenenc_bytes_le(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.lenenc_le()?;
        self.bytes(usize::try_from(length).map_err(|_| WireError::Truncated)?)
    }

    /// Takes a `string<lenenc>` that may be NULL (0xfb), as the values of text rows are.
    #[inline]
    pub fn lenenc_value_le(&mut self) -> Result<Option<&'a [u8]>, WireError> {
        let Some((&first, rest)) = self.rest.split_first() else { return Err(WireError::Truncated) };
        match first {
            0..NULL => {
                let (value, rest) = rest.split_at_checked(usize::from(first)).ok_or(WireError::Truncated)?;
                self.rest = rest;
                Ok(Some(value))
            }
            NULL => {
                self.rest = rest;
                Ok(None)
            }
            _ => self.lenenc_bytes_le().map(Some),
        }
    }

    /// Takes a string with its length in one byte in front.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.u8()?;
        self.bytes(usize::from(length))
    }

    /// Takes a `string<EOF>`: all that is left.
    pub fn all(&mut self) -> &'a [u8] {
        let rest = self.rest();
        *self = Self::new(&[]);
        rest
    }

    /// Takes the byte that says which message this is.
    pub(crate) fn tag(&mut self, expected: u8) -> Result<(), WireError> {
        match self.u8()? {
            tag if tag == expected => Ok(()),
            other => Err(WireError::UndefinedValue(i32::from(other))),
        }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.rest().is_empty()
    }
}
