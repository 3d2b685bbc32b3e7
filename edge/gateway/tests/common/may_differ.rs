//! The one list of what may differ between two runs of one session, direct or through the gateway.
//!
//! | what | where |
//! |---|---|
//! | process id and cancel key | BackendKeyData: the gateway gives out keys of its own |
//! | process id | NotificationResponse; columns named `pid`, `pg_backend_pid`; "PID n" and "Process n" in errors |
//! | salt and nonces | Authentication (md5, SCRAM) |
//! | clock | columns of date and time types; text that reads like a timestamp |
//! | object ids of users' relations | RowDescription: each run has a database of its own |
//! | LSN, transaction id | columns of types `pg_lsn`, `xid`, `xid8`; columns named `txid_current`, `xlogpos` |
//!
//! Everything else has to be equal to the byte. Two direct runs are compared as well, so that the list is known to
//! be long enough before the gateway is measured with it.

use onetrip_wire::pg::{DataRow, Oid, backend};

use super::transcript::Message;

/// Names and types of the columns of the current result.
pub(crate) type Columns = Vec<(Vec<u8>, Oid)>;

/// date, time, timetz, timestamp, timestamptz, interval (durations are clock readings, too), pg_lsn, xid, xid8.
const TYPES: [Oid; 9] = [1082, 1083, 1266, 1114, 1184, 1186, 3220, 28, 5069];
/// Columns whose values belong to one backend or one moment.
const NAMES: [&[u8]; 5] = [b"pg_backend_pid", b"pid", b"txid_current", b"backend_start", b"xlogpos"];
/// Words in front of a process id in the texts of errors and notices.
const BEFORE_PID: [&[u8]; 2] = [b"PID ", b"rocess "];

/// The message with everything blotted out that may differ.
pub(crate) fn masked(message: &Message, columns: &Columns) -> Message {
    let Message { tag, body } = message;
    let body = match *tag {
        backend::BACKEND_KEY_DATA => vec![b'*'; body.len()],
        backend::AUTHENTICATION => masked_authentication(body),
        backend::NOTIFICATION_RESPONSE => [b"****", &body[body.len().min(4)..]].concat(),
        backend::ERROR_RESPONSE | backend::NOTICE_RESPONSE => without_process_ids(&without_clock(body)),
        backend::DATA_ROW => masked_row(body, columns),
        backend::ROW_DESCRIPTION => masked_description(body),
        _ => body.clone(),
    };
    Message { tag: *tag, body }
}

/// What follows the code of AuthenticationMD5Password, SASLContinue and SASLFinal is random.
fn masked_authentication(body: &[u8]) -> Vec<u8> {
    match body.first_chunk::<4>() {
        Some(code @ [0, 0, 0, 5 | 11 | 12]) => code.to_vec(),
        _ => body.to_vec(),
    }
}

/// Object ids from here on are of users (`FirstNormalObjectId`).
const USERS_FROM: u32 = 16_384;

/// A description without the object ids of users' relations.
fn masked_description(body: &[u8]) -> Vec<u8> {
    let mut out = body.to_vec();
    let mut at = 2;
    while let Some(length) = out.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) {
        let table = at + length + 1;
        let Some(oid) = out.get_mut(table..table + 4) else { break };
        if u32::from_be_bytes([oid[0], oid[1], oid[2], oid[3]]) >= USERS_FROM {
            oid.copy_from_slice(b"****");
        }
        at = table + 18;
    }
    out
}

fn masked_row(body: &[u8], columns: &Columns) -> Vec<u8> {
    let Ok(row) = DataRow::decode(body) else { return body.to_vec() };
    let mut out = Vec::with_capacity(body.len());
    for (position, value) in row.columns.iter().enumerate() {
        let may_differ = columns
            .get(position)
            .is_some_and(|(name, oid)| TYPES.contains(oid) || NAMES.contains(&name.as_slice()));
        match value {
            None => out.extend_from_slice(b"NULL"),
            Some(_) if may_differ => out.extend_from_slice(b"*"),
            Some(value) => {
                out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                out.extend_from_slice(&without_clock(value));
            }
        }
    }
    out
}

/// Replaces `2026-11-21 10:32:47.123456` by a mark; fractions may have any number of digits.
fn without_clock(text: &[u8]) -> Vec<u8> {
    const SHAPE: &[u8] = b"0000-00-00 00:00:00";
    let fits = |window: &[u8]| {
        window.len() == SHAPE.len()
            && window.iter().zip(SHAPE).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                b' ' => matches!(byte, b' ' | b'T'),
                _ => byte == shape,
            })
    };
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if !fits(&text[at..text.len().min(at + SHAPE.len())]) {
            out.push(text[at]);
            at += 1;
            continue;
        }
        out.push(b'*');
        at += SHAPE.len();
        while text.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.') {
            at += 1;
        }
    }
    out
}

/// The text with marks instead of process ids.
pub(crate) fn without_process_ids(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let word = BEFORE_PID.iter().find(|word| text[at..].starts_with(word));
        let Some(word) = word else {
            out.push(text[at]);
            at += 1;
            continue;
        };
        out.extend_from_slice(word);
        at += word.len();
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
    }
    out
}
