//! Messages that only these programs send, and messages as one compares them.

use onetrip_wire::pg::{Column, DataRow, ErrorResponse, Oid, RowDescription, backend, frontend};

use crate::common::may_differ::without_process_ids;
use crate::common::messages::{c_str, message};
use crate::common::transcript::Message;

/// int4.
pub(crate) const INT4: Oid = 23;
/// date.
pub(crate) const DATE: Oid = 1082;
/// Objects of users have numbers from here on.
const FIRST_OF_USERS: Oid = 16384;

/// Parse with the types of its parameters.
pub(crate) fn parse_typed(statement: &str, text: &str, types: &[Oid]) -> Vec<u8> {
    let mut body = [c_str(statement), c_str(text)].concat();
    body.extend_from_slice(&(types.len() as u16).to_be_bytes());
    types.iter().for_each(|oid| body.extend_from_slice(&oid.to_be_bytes()));
    message(frontend::PARSE, &body)
}

/// Binds a statement without parameters; its result comes in binary.
pub(crate) fn bind_binary(portal: &str, statement: &str) -> Vec<u8> {
    message(frontend::BIND, &[&c_str(portal)[..], &c_str(statement), &[0, 0, 0, 0, 0, 1, 0, 1]].concat())
}

/// Execute with any number of rows, also one that makes no sense.
pub(crate) fn execute_number(portal: &str, rows: i32) -> Vec<u8> {
    message(frontend::EXECUTE, &[&c_str(portal)[..], &rows.to_be_bytes()].concat())
}

/// A message in words, without process ids and the numbers of the users' objects: these differ between two databases.
pub(crate) fn shown(message: &Message) -> String {
    let Message { tag, body } = message;
    let text = match *tag {
        backend::BACKEND_KEY_DATA => "a key".to_owned(),
        backend::ROW_DESCRIPTION => shown_columns(body),
        backend::DATA_ROW => shown_row(body),
        backend::ERROR_RESPONSE | backend::NOTICE_RESPONSE => shown_error(body),
        backend::PARAMETER_DESCRIPTION => masked_types(body),
        _ => body.escape_ascii().to_string(),
    };
    format!("{} {text}", char::from(*tag))
}

fn shown_columns(body: &[u8]) -> String {
    let Ok(description) = RowDescription::decode(body) else { return body.escape_ascii().to_string() };
    let masked = |oid: Oid| if oid < FIRST_OF_USERS { oid.to_string() } else { "a user's".to_owned() };
    let column = |column: Column<'_>| {
        let name = column.name.escape_ascii();
        format!(
            "{name}: type {} {} {}, from {} {}, format {:?}",
            masked(column.type_oid),
            column.type_len,
            column.type_modifier,
            masked(column.table),
            column.attribute,
            column.format
        )
    };
    description.columns().map(column).collect::<Vec<_>>().join("; ")
}

/// The values of a row as text; no value is a dash.
pub(crate) fn values(message: &Message) -> Vec<String> {
    let row = DataRow::decode(&message.body).expect("a row");
    let text = |value: Option<&[u8]>| value.map_or("-".to_owned(), |value| value.escape_ascii().to_string());
    row.columns.iter().map(text).collect()
}

fn shown_row(body: &[u8]) -> String {
    values(&Message { tag: backend::DATA_ROW, body: body.to_vec() }).join(" | ")
}

fn shown_error(body: &[u8]) -> String {
    let Ok(error) = ErrorResponse::decode(body) else { return body.escape_ascii().to_string() };
    let field = |code: &u8| {
        let value = error.field(*code)?;
        Some(format!("{}={}", char::from(*code), without_process_ids(value).escape_ascii()))
    };
    b"VCMDHPWFR".iter().filter_map(field).collect::<Vec<_>>().join(" ")
}

fn masked_types(body: &[u8]) -> String {
    let read = |oid: &[u8]| oid.try_into().map_or(0, u32::from_be_bytes);
    let masked = |oid: Oid| if oid < FIRST_OF_USERS { oid.to_string() } else { "a user's".to_owned() };
    body[2..].chunks(4).map(|oid| masked(read(oid))).collect::<Vec<_>>().join(" ")
}
