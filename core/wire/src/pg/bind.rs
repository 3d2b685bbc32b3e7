use super::frame::{frame, put_c_str, put_value};
use super::tags::frontend;
use crate::{Reader, WireError};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// As its type prints it.
    #[default]
    Text,
    /// As its type's `send` function writes it.
    Binary,
}

/// Format codes of parameters or result columns: none means text for all, one means that one for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Formats<'a> {
    codes: &'a [u8],
}

impl<'a> Formats<'a> {
    /// The format of position `index`, counted from zero. An undefined code counts as binary, as in PostgreSQL's tests for `== 0`.
    pub fn of(&self, index: usize) -> Format {
        let index = if self.codes.len() == 2 { 0 } else { index };
        match self.codes.get(2 * index..2 * index + 2) {
            None | Some([0, 0]) => Format::Text,
            Some(_) => Format::Binary,
        }
    }

    /// The Int16 codes as sent.
    pub fn codes(&self) -> &'a [u8] {
        self.codes
    }

    /// These Int16 codes, as sent. A byte too many is left out.
    pub fn of_codes(codes: &'a [u8]) -> Self {
        Self { codes: &codes[..codes.len() & !1] }
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = reader.count()?;
        Ok(Self { codes: reader.bytes(2 * usize::from(count))? })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&((self.codes.len() / 2) as u16).to_be_bytes());
        out.extend_from_slice(self.codes);
    }
}

/// Parameter values or row columns in order; `None` is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values<'a> {
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| reader.value().ok())
    }

    /// Values as they stand in a message: their count, then each with its length.
    ///
    /// # Errors
    ///
    /// Bytes that are too few.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        Self::read(&mut Reader::new(bytes))
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let count = reader.count()?;
        let bytes = reader.rest();
        for _ in 0..count {
            reader.value()?;
        }
        Ok(Self { count, bytes: &bytes[..bytes.len() - reader.rest().len()] })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.count.to_be_bytes());
        for value in self.iter() {
            put_value(out, value);
        }
    }
}

/// `Bind` ('B'): give a prepared statement its parameters and make a portal of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bind<'a> {
    /// Portal to make; empty is the unnamed one.
    pub portal: &'a [u8],
    /// Statement to bind; empty is the unnamed one.
    pub statement: &'a [u8],
    /// How the parameters are written.
    pub parameter_formats: Formats<'a>,
    /// The parameters.
    pub parameters: Values<'a>,
    /// How the result's columns are to be written.
    pub result_formats: Formats<'a>,
}

impl<'a> Bind<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let bind = Self {
            portal: reader.c_str()?,
            statement: reader.c_str()?,
            parameter_formats: Formats::read(&mut reader)?,
            parameters: Values::read(&mut reader)?,
            result_formats: Formats::read(&mut reader)?,
        };
        reader.finish().map(|()| bind)
    }

    /// One without parameters, whose result is text.
    pub fn without_parameters(portal: &'a [u8], statement: &'a [u8]) -> Self {
        let (parameter_formats, parameters) = Default::default();
        Self { portal, statement, parameter_formats, parameters, result_formats: Formats::default() }
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, frontend::BIND, |out| {
            put_c_str(out, self.portal);
            put_c_str(out, self.statement);
            self.parameter_formats.put(out);
            self.parameters.put(out);
            self.result_formats.put(out);
        });
    }
}

/// Appends a Bind whose parameters are written in place: `put` appends parameter `index` (counted from zero) and says in
/// which format, or `None` for NULL, for which it appends nothing. On an error nothing is appended.
///
/// # Errors
///
/// Those of `put`.
pub fn encode_bind<E>(
    out: &mut Vec<u8>,
    portal: &[u8],
    statement: &[u8],
    result_formats: Formats<'_>,
    count: u16,
    mut put: impl FnMut(usize, &mut Vec<u8>) -> Result<Option<Format>, E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[frontend::BIND, 0, 0, 0, 0]);
    put_c_str(out, portal);
    put_c_str(out, statement);
    out.extend_from_slice(&count.to_be_bytes());
    let codes = out.len();
    out.resize(codes + 2 * usize::from(count), 0);
    out.extend_from_slice(&count.to_be_bytes());
    for index in 0..usize::from(count) {
        let at = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        match put(index, out) {
            Ok(Some(format)) => {
                let length = (out.len() - at - 4) as u32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
                out[codes + 2 * index + 1] = format as u8;
            }
            Ok(None) => out.truncate(at + 4),
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        }
    }
    result_formats.put(out);
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_written_in_place_is_the_bind_of_its_values() {
        let mut out = vec![b'x'];
        let values = [Some(&b"one"[..]), None, Some(b"")];
        let put = |index: usize, out: &mut Vec<u8>| -> Result<Option<Format>, ()> {
            out.extend_from_slice(values[index].unwrap_or_default());
            Ok(values[index].map(|_| if index == 0 { Format::Binary } else { Format::Text }))
        };
        encode_bind(&mut out, b"p", b"s", Formats::of_codes(&[0, 1]), 3, put).unwrap();
        let bind = Bind::decode(&out[6..]).unwrap();
        assert_eq!((bind.portal, bind.statement), (&b"p"[..], &b"s"[..]));
        assert_eq!(bind.parameters.iter().collect::<Vec<_>>(), values);
        assert_eq!(bind.parameter_formats.codes(), [0, 1, 0, 0, 0, 0]);
        assert_eq!(bind.result_formats.codes(), [0, 1]);
        let mut again = vec![b'x'];
        bind.encode(&mut again);
        assert_eq!(again, out);
        assert_eq!(encode_bind(&mut out, b"", b"", Formats::default(), 1, |_, _| Err(7)), Err(7));
        assert_eq!(again, out, "what failed leaves nothing");
    }

    #[test]
    fn one_format_code_holds_for_all_and_none_means_text() {
        assert_eq!(Formats::default().of(3), Format::Text);
        assert_eq!(Formats { codes: &[0, 1] }.of(3), Format::Binary);
        assert_eq!(Formats { codes: &[0, 1, 0, 0] }.of(1), Format::Text);
    }
}
