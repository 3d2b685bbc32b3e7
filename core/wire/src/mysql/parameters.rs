use super::primitives::put_lenenc_bytes;
use super::value::ColumnType;
use crate::{Reader, WireError};

/// Values of parameters in binary form, with the bits and the types in front of them.
///
/// Source: MySQL Internals, "COM_STMT_EXECUTE" and "COM_QUERY" (query attributes; not verified on 8.x).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters<'a> {
    count: usize,
    nulls: &'a [u8],
    /// Types, and names if they have any; absent if those sent earlier hold.
    types: Option<&'a [u8]>,
    is_named: bool,
    values: &'a [u8],
}

/// One parameter's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterType<'a> {
    /// How its values are written.
    pub column_type: ColumnType,
    /// 0x80 if it is unsigned.
    pub flags: u8,
    /// Its name, where parameters have names; empty is none.
    pub name: &'a [u8],
}

impl<'a> ParameterType<'a> {
    fn read(reader: &mut Reader<'a>, is_named: bool) -> Result<Self, WireError> {
        let (column_type, flags) = (ColumnType(reader.u8()?), reader.u8()?);
        let name = if is_named { reader.lenenc_bytes_le()? } else { &[] };
        Ok(Self { column_type, flags, name })
    }

    /// Appends the type, with its name if it `is_named`.
    pub fn put(&self, out: &mut Vec<u8>, is_named: bool) {
        out.extend_from_slice(&[self.column_type.0, self.flags]);
        if is_named {
            put_lenenc_bytes(out, self.name);
        }
    }
}

impl<'a> Parameters<'a> {
    /// Takes the bits and types of `count` parameters; of the values that follow, nothing yet.
    pub(super) fn read_types(
        reader: &mut Reader<'a>,
        count: usize,
        is_named: bool,
    ) -> Result<Self, WireError> {
        let nulls = reader.bytes(count.div_ceil(8))?;
        let types = match reader.u8()? {
            0 => None,
            1 => {
                let all = reader.rest();
                for _ in 0..count {
                    ParameterType::read(reader, is_named)?;
                }
                Some(&all[..all.len() - reader.rest().len()])
            }
            other => return Err(WireError::UndefinedValue(i32::from(other))),
        };
        Ok(Self { count, nulls, types, is_named, values: &[] })
    }

    /// Takes the values of parameters that came with their types.
    pub(super) fn read_values(mut self, reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let all = reader.rest();
        if self.types.is_none() {
            return Err(WireError::UndefinedValue(0));
        }
        for (index, parameter) in self.types().enumerate() {
            if !self.is_null(index) {
                parameter.column_type.read_value(reader)?;
            }
        }
        self.values = &all[..all.len() - reader.rest().len()];
        Ok(self)
    }

    /// Takes all that is left as the values.
    pub(super) fn with_rest(mut self, reader: &mut Reader<'a>) -> Self {
        self.values = reader.all();
        self
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the one at `index` is NULL.
    pub fn is_null(&self, index: usize) -> bool {
        self.nulls.get(index / 8).is_some_and(|bits| bits & (1 << (index % 8)) != 0)
    }

    /// Whether types came along.
    pub fn has_types(&self) -> bool {
        self.types.is_some()
    }

    /// Types that came along, in order.
    pub fn types(&self) -> impl Iterator<Item = ParameterType<'a>> + use<'a> {
        let (mut reader, is_named) = (Reader::new(self.types.unwrap_or_default()), self.is_named);
        std::iter::from_fn(move || ParameterType::read(&mut reader, is_named).ok())
    }

    /// Bytes of the values, one after the other; those that are NULL, or were sent as long data, have none.
    pub fn values_as_sent(&self) -> &'a [u8] {
        self.values
    }

    /// Values in order, by `types`, which are those that came along or the ones that hold from earlier; `None` is NULL.
    /// `is_long` says which ones came as long data: these have no bytes here and are given as `Some(&[])`.
    pub fn values(
        &self,
        types: impl IntoIterator<Item = ColumnType>,
        is_long: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = Result<Option<&'a [u8]>, WireError>> {
        let mut reader = Reader::new(self.values);
        let this = *self;
        let mut types = types.into_iter();
        (0..self.count).map(move |index| {
            let column_type = types.next().ok_or(WireError::Truncated)?;
            match index {
                index if this.is_null(index) => Ok(None),
                index if is_long(index) => Ok(Some(&[][..])),
                _ => column_type.read_value(&mut reader).map(Some),
            }
        })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.nulls);
        out.push(u8::from(self.types.is_some()));
        out.extend_from_slice(self.types.unwrap_or_default());
        out.extend_from_slice(self.values);
    }
}
