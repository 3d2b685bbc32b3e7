//! Values as messages hold them.

use onetrip_wire::pg::{Bind, DataRow, Format, Values};

use super::analysis::format_of;
use super::backend::Output;
use super::failure::Failure;
use super::value::{Type, Value};

/// The values of a Bind.
pub(super) fn parameters(bind: &Bind<'_>, kinds: &[Type]) -> Result<Vec<Value>, Failure> {
    let pairs = bind.parameters.iter().zip(kinds).enumerate();
    pairs
        .map(|(place, (bytes, kind))| match bytes {
            None => Ok(Value::Null),
            Some(bytes) => Value::decode(bytes, *kind, bind.parameter_formats.of(place)),
        })
        .collect()
}

/// Some rows of a result; times are written in a zone so many hours east.
pub(super) fn put_rows(
    out: &mut Vec<u8>,
    output: &Output,
    range: std::ops::Range<usize>,
    formats: &[u8],
    zone_hours: i64,
) {
    for row in &output.rows[range] {
        let mut body = (row.len() as u16).to_be_bytes().to_vec();
        for (place, value) in row.iter().enumerate() {
            let kind =
                output.columns.as_ref().and_then(|columns| columns.get(place)).map(|column| column.kind);
            let format = if formats.is_empty() { Format::Text } else { format_of(formats, place) };
            match value.encode(kind.unwrap_or(Type::Text), format, zone_hours) {
                None => body.extend_from_slice(&u32::MAX.to_be_bytes()),
                Some(bytes) => {
                    body.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                    body.extend_from_slice(&bytes);
                }
            }
        }
        if let Ok(columns) = Values::decode(&body) {
            DataRow { columns }.encode(out);
        }
    }
}
