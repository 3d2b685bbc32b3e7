//! Columns of others, and their values.

use super::ffi::{Buffer, Node, Schema};
use crate::binary::DAY;

/// The extension type whose values are UUIDs.
const UUID: &str = "arrow.uuid";

/// Digits after the point, or zeros before it, that a `numeric` may have, by PostgreSQL's documentation (8.1.2): a schema from
/// elsewhere may name any number, and each value is written with so many.
const SCALES: std::ops::RangeInclusive<i32> = -131_072..=16_383;

/// What of a value's time its number counts.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "s" => Self::Seconds,
            "m" => Self::Millis,
            "u" => Self::Micros,
            "n" => Self::Nanos,
            _ => return None,
        })
    }

    /// Microseconds, to which nanoseconds are rounded as the server rounds them.
    fn micros(self, count: i64) -> Option<i64> {
        match self {
            Self::Seconds => count.checked_mul(1_000_000),
            Self::Millis => count.checked_mul(1_000),
            Self::Micros => Some(count),
            Self::Nanos => {
                let (micros, rest) = (count.div_euclid(1_000), count.rem_euclid(1_000));
                let is_up = rest > 500 || (rest == 500 && micros % 2 != 0);
                Some(micros + i64::from(is_up))
            }
        }
    }
}

/// Where the bytes of text are.
#[derive(Debug, Clone, Copy)]
enum Layout {
    Offsets32,
    Offsets64,
    Views,
}

/// What values are.
#[derive(Debug, Clone)]
enum Kind {
    Null,
    Bool,
    Int(usize),
    Unsigned(usize),
    Float32,
    Float64,
    /// So many bytes, and digits after the point.
    Decimal(usize, i32),
    Text(Layout),
    Bytes(Layout),
    /// So many bytes each.
    Fixed(usize),
    Uuid,
    Date32,
    Date64,
    /// In so many bytes.
    Time(usize, Unit),
    /// And whether it is a point in time rather than what a clock shows.
    Timestamp(Unit, bool),
    Duration(Unit),
    /// Numbers of values.
    Dictionary(Box<Kind>, Box<Kind>),
}

/// A column's name and what it holds.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    /// What Arrow calls its type, for messages.
    pub(super) type_name: String,
    kind: Kind,
}

impl Field {
    /// The columns of a table's schema.
    ///
    /// # Errors
    /// A schema that is none, and whether it is one whose types are merely not known here.
    pub(super) fn of_table(schema: &Schema) -> Result<Vec<Self>, (String, bool)> {
        let broken = |problem| (problem, false);
        let format = schema.format().map_err(broken)?;
        if format != "+s" {
            let name = name_of(format);
            return Err((
                format!("rows are a table, a batch or a stream of those, not an array of {name}"),
                true,
            ));
        }
        let field = |child: &Schema| {
            let name = child.name().map_err(broken)?.to_owned();
            let type_name = name_of(child.format().map_err(broken)?);
            let kind = Kind::of(child, true).map_err(broken)?;
            let kind = kind.ok_or_else(|| {
                (
                    format!("column {name:?}: values of Arrow's type {type_name} cannot be written: cast it"),
                    true,
                )
            })?;
            Ok(Self { name, type_name, kind })
        };
        schema.children().map_err(broken)?.into_iter().map(field).collect()
    }
}

impl Field {
    /// Whether its values are text.
    pub(super) fn is_text(&self) -> bool {
        match &self.kind {
            Kind::Dictionary(_, values) => matches!(**values, Kind::Text(_)),
            kind => matches!(kind, Kind::Text(_)),
        }
    }
}

/// What a type is called, by its format.
fn name_of(format: &str) -> String {
    let name = match format {
        "n" => "null",
        "b" => "bool",
        "c" => "int8",
        "s" => "int16",
        "i" => "int32",
        "l" => "int64",
        "C" => "uint8",
        "S" => "uint16",
        "I" => "uint32",
        "L" => "uint64",
        "e" => "halffloat",
        "f" => "float",
        "g" => "double",
        "u" => "string",
        "U" => "large_string",
        "vu" => "string_view",
        "z" => "binary",
        "Z" => "large_binary",
        "vz" => "binary_view",
        "tdD" => "date32",
        "tdm" => "date64",
        "tiM" => "month_interval",
        "tiD" => "day_time_interval",
        "tin" => "month_day_nano_interval",
        "+l" => "list",
        "+L" => "large_list",
        "+vl" => "list_view",
        "+vL" => "large_list_view",
        "+s" => "struct",
        "+m" => "map",
        "+r" => "run_end_encoded",
        _ => match format.split_once(':') {
            Some(("d", _)) => "decimal",
            Some(("w", _)) => "fixed_size_binary",
            Some(("+w", _)) => "fixed_size_list",
            Some(("+ud", _)) => "dense_union",
            Some(("+us", _)) => "sparse_union",
            Some((time, _)) if time.starts_with("ts") => "timestamp",
            _ if format.starts_with("tt") => "time",
            _ if format.starts_with("tD") => "duration",
            _ => return format!("{format:?}"),
        },
    };
    name.to_owned()
}

impl Kind {
    /// `None` for a type whose values cannot be written.
    fn of(schema: &Schema, may_be_dictionary: bool) -> Result<Option<Self>, String> {
        let format = schema.format()?;
        let kind = match format {
            "n" => Self::Null,
            "b" => Self::Bool,
            "c" => Self::Int(1),
            "s" => Self::Int(2),
            "i" => Self::Int(4),
            "l" => Self::Int(8),
            "C" => Self::Unsigned(1),
            "S" => Self::Unsigned(2),
            "I" => Self::Unsigned(4),
            "L" => Self::Unsigned(8),
            "f" => Self::Float32,
            "g" => Self::Float64,
            "u" => Self::Text(Layout::Offsets32),
            "U" => Self::Text(Layout::Offsets64),
            "vu" => Self::Text(Layout::Views),
            "z" => Self::Bytes(Layout::Offsets32),
            "Z" => Self::Bytes(Layout::Offsets64),
            "vz" => Self::Bytes(Layout::Views),
            "tdD" => Self::Date32,
            "tdm" => Self::Date64,
            "tts" => Self::Time(4, Unit::Seconds),
            "ttm" => Self::Time(4, Unit::Millis),
            "ttu" => Self::Time(8, Unit::Micros),
            "ttn" => Self::Time(8, Unit::Nanos),
            _ => match Self::of_words(format, schema)? {
                Some(kind) => kind,
                None => return Ok(None),
            },
        };
        let Some(values) = schema.dictionary() else { return Ok(Some(kind)) };
        if !may_be_dictionary || !matches!(kind, Self::Int(_) | Self::Unsigned(_)) {
            return Ok(None);
        }
        let values = Self::of(values, false)?;
        Ok(values.map(|values| Self::Dictionary(Box::new(kind), Box::new(values))))
    }

    /// Of a format that has more than a letter or two.
    fn of_words(format: &str, schema: &Schema) -> Result<Option<Self>, String> {
        if let Some(unit) = format.strip_prefix("tD") {
            return Ok(Unit::of(unit).map(Self::Duration));
        }
        let Some((word, rest)) = format.split_once(':') else { return Ok(None) };
        Ok(match word {
            "w" => match rest.parse() {
                Ok(16) if schema.metadata(b"ARROW:extension:name")?.as_deref() == Some(UUID.as_bytes()) => {
                    Some(Self::Uuid)
                }
                Ok(width) => Some(Self::Fixed(width)),
                Err(_) => None,
            },
            "d" => {
                let mut numbers = rest.split(',').map(str::parse::<i32>);
                let (_, scale) = (numbers.next(), numbers.next());
                match (scale, numbers.next().unwrap_or(Ok(128))) {
                    (Some(Ok(scale)), Ok(bits @ (32 | 64 | 128 | 256))) if SCALES.contains(&scale) => {
                        Some(Self::Decimal(bits as usize / 8, scale))
                    }
                    _ => None,
                }
            }
            _ => {
                word.strip_prefix("ts").and_then(Unit::of).map(|unit| Self::Timestamp(unit, !rest.is_empty()))
            }
        })
    }

    /// Bits that each value has in the buffer after the validity.
    fn width(&self) -> usize {
        let bytes = match self {
            Self::Bool => return 1,
            Self::Null => 0,
            Self::Int(width) | Self::Unsigned(width) | Self::Time(width, _) => *width,
            Self::Decimal(width, _) | Self::Fixed(width) => *width,
            Self::Float32 | Self::Date32 => 4,
            Self::Float64 | Self::Date64 | Self::Timestamp(..) | Self::Duration(_) => 8,
            Self::Uuid => 16,
            Self::Text(layout) | Self::Bytes(layout) => match layout {
                Layout::Offsets32 => 4,
                Layout::Offsets64 => 8,
                Layout::Views => 16,
            },
            Self::Dictionary(index, _) => return index.width(),
        };
        8_usize.saturating_mul(bytes)
    }

    /// Offsets are one more than there are values.
    fn has_offsets(&self) -> bool {
        matches!(self, Self::Text(Layout::Offsets32 | Layout::Offsets64))
            || matches!(self, Self::Bytes(Layout::Offsets32 | Layout::Offsets64))
    }
}

/// A value of others. Numbers have the width that the server's type has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Bool(bool),
    /// With the number of bytes that the server's type for it has.
    Int(i64, usize),
    Unsigned(u64),
    Float32(f32),
    Float64(f64),
    /// An integer, the lowest byte first, and how many of its digits stand after the point.
    Decimal(&'a [u8], i32),
    Text(&'a str),
    Bytes(&'a [u8]),
    Uuid(&'a [u8]),
    /// Days since 1970.
    Date(i64),
    /// Microseconds of the day.
    Time(i64),
    /// Microseconds since 1970, and whether it is a point in time.
    Timestamp(i64, bool),
    /// Microseconds.
    Duration(i64),
}

/// One column of a batch.
struct Column {
    kind: Kind,
    /// Values before the first.
    offset: usize,
    validity: Option<Buffer>,
    /// Values, or where they are.
    data: Option<Buffer>,
    /// What the values are a part of.
    parts: Vec<Option<Buffer>>,
    /// How many values there are, and which the numbers stand for.
    values: Option<(usize, Box<Column>)>,
}

impl Column {
    fn of(kind: &Kind, node: &Node, rows: usize) -> Result<Self, String> {
        let (length, offset) = node.extent()?;
        if length < rows {
            return Err(format!("{length} values for {rows} rows"));
        }
        let mut made =
            Self { kind: kind.clone(), offset, validity: None, data: None, parts: Vec::new(), values: None };
        if rows == 0 || matches!(kind, Kind::Null) {
            return Ok(made); // its buffers may be missing
        }
        let end = offset + length;
        made.validity = node.buffer(0, Some(end.div_ceil(8)))?;
        if made.validity.is_none() && node.has_nulls() {
            return Err("NULLs, and nothing that says where".to_owned());
        }
        let count = end.checked_add(usize::from(kind.has_offsets()));
        let bits = count.and_then(|count| count.checked_mul(kind.width()));
        let data = node.buffer(1, bits.map(|bits| bits.div_ceil(8)))?;
        if data.is_none() && kind.width() > 0 {
            return Err("values, and no buffer with them".to_owned());
        }
        made.data = data;
        match kind {
            Kind::Text(Layout::Views) | Kind::Bytes(Layout::Views) => made.parts = viewed(node)?,
            Kind::Text(_) | Kind::Bytes(_) => {
                let length = made.offset_at(end)?;
                made.parts = vec![node.buffer(2, Some(length))?];
            }
            Kind::Dictionary(_, values) => {
                let node = node.dictionary().ok_or("numbers of values, and no values")?;
                let (length, _) = node.extent()?;
                made.values = Some((length, Box::new(Self::of(values, &node, length)?)));
            }
            _ => {}
        }
        Ok(made)
    }

    /// The value of a row; `None` is NULL.
    fn value(&self, row: usize) -> Result<Option<Value<'_>>, String> {
        let at = self.offset + row;
        if let Some(validity) = &self.validity {
            if !bit(validity.bytes(), at)? {
                return Ok(None);
            }
        }
        let range = || "a time that is out of range".to_owned();
        Ok(Some(match &self.kind {
            Kind::Null => return Ok(None),
            Kind::Bool => Value::Bool(bit(self.data()?, at)?),
            Kind::Int(width) => Value::Int(self.int(*width, at)?, (*width).max(2)),
            Kind::Unsigned(8) => Value::Unsigned(u64::from_ne_bytes(self.array(at)?)),
            Kind::Unsigned(width) => Value::Int(self.unsigned(*width, at)?, 2 * width),
            Kind::Float32 => Value::Float32(f32::from_ne_bytes(self.array(at)?)),
            Kind::Float64 => Value::Float64(f64::from_ne_bytes(self.array(at)?)),
            Kind::Decimal(width, scale) => Value::Decimal(self.bytes(*width, at)?, *scale),
            Kind::Text(layout) => {
                let text = std::str::from_utf8(self.part(*layout, at)?);
                Value::Text(text.map_err(|_| "text that is not UTF-8")?)
            }
            Kind::Bytes(layout) => Value::Bytes(self.part(*layout, at)?),
            Kind::Fixed(width) => Value::Bytes(self.bytes(*width, at)?),
            Kind::Uuid => Value::Uuid(self.bytes(16, at)?),
            Kind::Date32 => Value::Date(self.int(4, at)?),
            Kind::Date64 => Value::Date(self.int(8, at)?.div_euclid(DAY / 1_000)),
            Kind::Time(width, unit) => Value::Time(
                unit.micros(self.int(*width, at)?)
                    .filter(|time| (0..DAY).contains(time))
                    .ok_or_else(range)?,
            ),
            Kind::Timestamp(unit, has_zone) => {
                Value::Timestamp(unit.micros(self.int(8, at)?).ok_or_else(range)?, *has_zone)
            }
            Kind::Duration(unit) => Value::Duration(unit.micros(self.int(8, at)?).ok_or_else(range)?),
            Kind::Dictionary(index, _) => {
                let number = match **index {
                    Kind::Unsigned(8) => i64::from_ne_bytes(self.array(at)?),
                    Kind::Unsigned(width) => self.unsigned(width, at)?,
                    _ => self.int(index.width() / 8, at)?,
                };
                let found = self.values.as_ref().and_then(|(length, values)| {
                    usize::try_from(number)
                        .ok()
                        .filter(|number| number < length)
                        .map(|number| (number, values))
                });
                let (number, values) = found.ok_or_else(|| format!("number {number}, which no value has"))?;
                return values.value(number);
            }
        }))
    }

    fn data(&self) -> Result<&[u8], String> {
        self.data.as_ref().map(Buffer::bytes).ok_or_else(|| "no values".to_owned())
    }

    /// So many bytes of a value.
    fn bytes(&self, width: usize, at: usize) -> Result<&[u8], String> {
        if width == 0 {
            return Ok(&[]);
        }
        self.data()?.get(at * width..(at + 1) * width).ok_or_else(|| "a buffer that is too short".to_owned())
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], String> {
        self.bytes(N, at)?.try_into().map_err(|_| "a buffer that is too short".to_owned())
    }

    fn int(&self, width: usize, at: usize) -> Result<i64, String> {
        Ok(match width {
            1 => i8::from_ne_bytes(self.array(at)?).into(),
            2 => i16::from_ne_bytes(self.array(at)?).into(),
            4 => i32::from_ne_bytes(self.array(at)?).into(),
            _ => i64::from_ne_bytes(self.array(at)?),
        })
    }

    /// Of at most four bytes.
    fn unsigned(&self, width: usize, at: usize) -> Result<i64, String> {
        Ok(match width {
            1 => u8::from_ne_bytes(self.array(at)?).into(),
            2 => u16::from_ne_bytes(self.array(at)?).into(),
            _ => u32::from_ne_bytes(self.array(at)?).into(),
        })
    }

    fn offset_at(&self, at: usize) -> Result<usize, String> {
        let offset = self.int(self.kind.width() / 8, at)?;
        usize::try_from(offset).map_err(|_| format!("text from {offset} on, which cannot be"))
    }

    /// The bytes of text.
    fn part(&self, layout: Layout, at: usize) -> Result<&[u8], String> {
        let missing = || "text where there is no buffer".to_owned();
        let (buffer, start, end) = match layout {
            Layout::Offsets32 | Layout::Offsets64 => (0, self.offset_at(at)?, self.offset_at(at + 1)?),
            Layout::Views => {
                let view: [u8; 16] = self.array(at)?;
                let number = |at: usize| {
                    let bytes =
                        view.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
                    usize::try_from(i32::from_ne_bytes(bytes)).map_err(|_| missing())
                };
                let length = number(0)?;
                if length <= 12 {
                    let start = at * 16 + 4;
                    return self.data()?.get(start..start + length).ok_or_else(missing);
                }
                let start = number(12)?;
                (number(8)?, start, start + length)
            }
        };
        if start == end {
            return Ok(&[]);
        }
        let part = self.parts.get(buffer).and_then(Option::as_ref).ok_or_else(missing)?;
        part.bytes().get(start..end).ok_or_else(missing)
    }
}

/// The buffers that views point into; the last one has their lengths.
fn viewed(node: &Node) -> Result<Vec<Option<Buffer>>, String> {
    let count = node.buffer_count()?;
    let parts = count.checked_sub(3).ok_or("views without the lengths of what they point into")?;
    let lengths = node.buffer(count - 1, parts.checked_mul(8))?;
    (0..parts)
        .map(|at| {
            let lengths = lengths.as_ref().map(Buffer::bytes).unwrap_or_default();
            let length = lengths.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok());
            let length = length.and_then(|bytes| usize::try_from(i64::from_ne_bytes(bytes)).ok());
            node.buffer(2 + at, length)
        })
        .collect()
}

fn bit(bytes: &[u8], at: usize) -> Result<bool, String> {
    let byte = bytes.get(at / 8).ok_or("a buffer that is too short")?;
    Ok(byte >> (at % 8) & 1 == 1)
}

/// Rows of others.
pub(super) struct Table {
    rows: usize,
    /// Rows before the first, of each column.
    offset: usize,
    columns: Vec<Column>,
}

impl Table {
    /// A batch.
    ///
    /// # Errors
    /// One that is not what its schema says, or that cannot be.
    pub(super) fn of(fields: &[Field], node: &Node) -> Result<Self, String> {
        let (rows, offset) = node.extent()?;
        let children = node.children()?;
        if children.len() != fields.len() {
            return Err(format!("a batch has {} columns, and its schema {}", children.len(), fields.len()));
        }
        if rows > 0 {
            if let Some(validity) = node.buffer(0, Some((rows + offset).div_ceil(8)))? {
                for at in offset..offset + rows {
                    if !bit(validity.bytes(), at)? {
                        return Err("a row that is NULL: this is a column of structs, not a table".to_owned());
                    }
                }
            }
        }
        let column = |(field, child): (&Field, &Node)| {
            // An empty batch may have columns without anything.
            let needed = if rows == 0 { 0 } else { rows + offset };
            Column::of(&field.kind, child, needed).map_err(|problem| {
                format!("column {:?} of type {} has {problem}", field.name, field.type_name)
            })
        };
        let columns = fields.iter().zip(&children).map(column).collect::<Result<_, _>>()?;
        Ok(Self { rows, offset, columns })
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// A value; `None` is NULL.
    ///
    /// # Errors
    /// A value that is not where it should be, or that no type of the server can hold.
    pub(super) fn value(&self, row: usize, column: usize) -> Result<Option<Value<'_>>, String> {
        let column = self.columns.get(column).ok_or("no such column")?;
        if row >= self.rows { Err("no such row".to_owned()) } else { column.value(self.offset + row) }
    }
}
