use super::capabilities::Capabilities;
use super::primitives::{put_lenenc_bytes, put_lenenc_value};
use super::value::ColumnType;
use crate::{Reader, WireError};

/// Bytes of the fields with a fixed size, which is said in front of them.
const FIXED_BYTES: u8 = 12;

/// `ColumnDefinition41`: a column of a result, or a parameter of a statement.
///
/// Source: MySQL Internals, "Column Definition"; MariaDB Knowledge Base, "Result Set Packets: Column Definition Packet".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Always `def`.
    pub catalog: &'a [u8],
    /// Database of the table.
    pub schema: &'a [u8],
    /// The table as the statement calls it.
    pub table: &'a [u8],
    /// The table's own name.
    pub table_original: &'a [u8],
    /// The column as the statement calls it.
    pub name: &'a [u8],
    /// The column's own name.
    pub name_original: &'a [u8],
    /// More of the type, as entries of a byte and a length-encoded text; only with MARIADB_EXTENDED_METADATA.
    pub extended: Option<&'a [u8]>,
    /// Character set and collation.
    pub character_set: u16,
    /// Longest value, in bytes.
    pub length_max: u32,
    /// How values are written.
    pub column_type: ColumnType,
    /// What the column is: NOT NULL, a key, unsigned.
    pub flags: u16,
    /// Digits behind the point.
    pub decimals: u8,
    /// Two bytes without a meaning.
    pub reserved: u16,
    /// The default, in the reply to COM_FIELD_LIST only: `Some(None)` is NULL.
    pub default: Option<Option<&'a [u8]>>,
}

impl<'a> ColumnDefinition<'a> {
    /// Decodes the payload under the connection's capabilities.
    pub fn decode(body: &'a [u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let catalog = reader.lenenc_bytes_le()?;
        let schema = reader.lenenc_bytes_le()?;
        let table = reader.lenenc_bytes_le()?;
        let table_original = reader.lenenc_bytes_le()?;
        let name = reader.lenenc_bytes_le()?;
        let name_original = reader.lenenc_bytes_le()?;
        let extended = if capabilities.has(Capabilities::MARIADB_EXTENDED_METADATA) {
            Some(reader.lenenc_bytes_le()?)
        } else {
            None
        };
        reader.tag(FIXED_BYTES)?;
        let character_set = reader.u16_le()?;
        let length_max = reader.u32_le()?;
        let column_type = ColumnType(reader.u8()?);
        let flags = reader.u16_le()?;
        let decimals = reader.u8()?;
        let reserved = reader.u16_le()?;
        let default = if reader.is_at_end() { None } else { Some(reader.lenenc_value_le()?) };
        reader.finish().map(|()| Self {
            catalog,
            schema,
            table,
            table_original,
            name,
            name_original,
            extended,
            character_set,
            length_max,
            column_type,
            flags,
            decimals,
            reserved,
            default,
        })
    }

    /// Entries of [`Self::extended`]: 0 names the type, 1 its format. What is not of this form ends them.
    pub fn extended_entries(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.extended.unwrap_or_default());
        std::iter::from_fn(move || Some((reader.u8().ok()?, reader.lenenc_bytes_le().ok()?)))
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let texts =
            [self.catalog, self.schema, self.table, self.table_original, self.name, self.name_original];
        for text in texts.into_iter().chain(self.extended) {
            put_lenenc_bytes(out, text);
        }
        out.push(FIXED_BYTES);
        out.extend_from_slice(&self.character_set.to_le_bytes());
        out.extend_from_slice(&self.length_max.to_le_bytes());
        out.push(self.column_type.0);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.push(self.decimals);
        out.extend_from_slice(&self.reserved.to_le_bytes());
        if let Some(default) = self.default {
            put_lenenc_value(out, default);
        }
    }
}
