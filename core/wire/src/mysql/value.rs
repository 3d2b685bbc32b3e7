use crate::{Reader, WireError};

/// Type of a column or parameter, which says how its values are written in binary.
///
/// Source: MySQL Internals, "Binary Protocol Value"; MariaDB Knowledge Base, "Result Set Packets: Field Types".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnType(pub u8);

impl ColumnType {
    /// DECIMAL of before 5.0.
    pub const DECIMAL: Self = Self(0);
    /// TINYINT.
    pub const TINY: Self = Self(1);
    /// SMALLINT.
    pub const SHORT: Self = Self(2);
    /// INT.
    pub const LONG: Self = Self(3);
    /// FLOAT.
    pub const FLOAT: Self = Self(4);
    /// DOUBLE.
    pub const DOUBLE: Self = Self(5);
    /// NULL, which has no bytes.
    pub const NULL: Self = Self(6);
    /// TIMESTAMP.
    pub const TIMESTAMP: Self = Self(7);
    /// BIGINT.
    pub const LONGLONG: Self = Self(8);
    /// MEDIUMINT.
    pub const INT24: Self = Self(9);
    /// DATE.
    pub const DATE: Self = Self(10);
    /// TIME.
    pub const TIME: Self = Self(11);
    /// DATETIME.
    pub const DATETIME: Self = Self(12);
    /// YEAR.
    pub const YEAR: Self = Self(13);
    /// VARCHAR.
    pub const VARCHAR: Self = Self(15);
    /// BIT.
    pub const BIT: Self = Self(16);
    /// VECTOR (MySQL 9; not verified on it).
    pub const VECTOR: Self = Self(242);
    /// JSON.
    pub const JSON: Self = Self(245);
    /// DECIMAL.
    pub const NEWDECIMAL: Self = Self(246);
    /// ENUM.
    pub const ENUM: Self = Self(247);
    /// SET.
    pub const SET: Self = Self(248);
    /// TINYBLOB and TINYTEXT.
    pub const TINY_BLOB: Self = Self(249);
    /// MEDIUMBLOB and MEDIUMTEXT.
    pub const MEDIUM_BLOB: Self = Self(250);
    /// LONGBLOB and LONGTEXT.
    pub const LONG_BLOB: Self = Self(251);
    /// BLOB and TEXT.
    pub const BLOB: Self = Self(252);
    /// VARCHAR and VARBINARY of a result.
    pub const VAR_STRING: Self = Self(253);
    /// CHAR and BINARY.
    pub const STRING: Self = Self(254);
    /// GEOMETRY.
    pub const GEOMETRY: Self = Self(255);

    /// Takes one value in binary form: its bytes, without the length in front of those that have one.
    pub fn read_value<'a>(self, reader: &mut Reader<'a>) -> Result<&'a [u8], WireError> {
        match self {
            Self::NULL => Ok(&[]),
            Self::TINY => reader.bytes(1),
            Self::SHORT | Self::YEAR => reader.bytes(2),
            Self::LONG | Self::FLOAT | Self::INT24 => reader.bytes(4),
            Self::DOUBLE | Self::LONGLONG => reader.bytes(8),
            Self::TIMESTAMP | Self::DATE | Self::DATETIME | Self::TIME => reader.short_bytes(),
            Self::DECIMAL
            | Self::VARCHAR
            | Self::BIT
            | Self::VECTOR
            | Self::JSON
            | Self::NEWDECIMAL
            | Self::ENUM
            | Self::SET
            | Self::TINY_BLOB
            | Self::MEDIUM_BLOB
            | Self::LONG_BLOB
            | Self::BLOB
            | Self::VAR_STRING
            | Self::STRING
            | Self::GEOMETRY => reader.lenenc_bytes_le(),
            Self(other) => Err(WireError::UndefinedValue(i32::from(other))),
        }
    }
}
