use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// `CommandComplete` ('C'): one SQL command is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandComplete<'a> {
    /// Such as `SELECT 5` or `INSERT 0 1`.
    pub tag: &'a [u8],
}

impl<'a> CommandComplete<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let tag = reader.c_str()?;
        reader.finish().map(|()| Self { tag })
    }

    /// Rows that the command returned or changed: the last number of the tag, where there is one.
    pub fn rows(&self) -> Option<u64> {
        let start = self.tag.iter().rposition(|byte| !byte.is_ascii_digit())? + 1;
        let digits = self.tag.get(start..).filter(|digits| !digits.is_empty())?;
        digits.iter().try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::COMMAND_COMPLETE, |out| put_c_str(out, self.tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_last_number_of_the_tag() {
        let rows = |tag: &'static str| CommandComplete { tag: tag.as_bytes() }.rows();
        assert_eq!(rows("SELECT 5"), Some(5));
        assert_eq!(rows("INSERT 0 17"), Some(17));
        assert_eq!(rows("BEGIN"), None);
        assert_eq!(rows("SELECT 99999999999999999999999"), None);
        assert_eq!(rows(""), None);
    }
}
