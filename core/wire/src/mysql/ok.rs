use super::capabilities::Capabilities;
use super::primitives::{put_lenenc, put_lenenc_bytes};
use super::session_state::SessionStates;
use super::status::Status;
use super::tags::server;
use crate::{Reader, WireError};

/// `OK_Packet`: a command is done, or, with the head of an EOF packet, rows have ended (DEPRECATE_EOF).
///
/// Source: MySQL Internals, "OK_Packet"; MariaDB Knowledge Base, "OK_Packet".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Whether its first byte is an EOF packet's.
    pub ends_rows: bool,
    /// Rows changed, or found (FOUND_ROWS).
    pub affected_rows: u64,
    /// First number that AUTO_INCREMENT gave, or zero.
    pub last_insert_id: u64,
    /// Of the session.
    pub status: Status,
    /// Warnings of the command.
    pub warnings: u16,
    /// What a person may read of it.
    pub info: Info<'a>,
}

/// The last part of an [`OkPacket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Info<'a> {
    /// Without SESSION_TRACK, all that is left. Servers write a length-encoded string, though the pages say otherwise.
    Plain(&'a [u8]),
    /// With SESSION_TRACK, nothing.
    Absent,
    /// With SESSION_TRACK, a text, and what changed of the session if the status says that something did.
    Tracked {
        /// For people.
        text: &'a [u8],
        /// Only with SESSION_STATE_CHANGED.
        states: Option<SessionStates<'a>>,
    },
}

impl<'a> OkPacket<'a> {
    /// Decodes the payload. Of the connection's capabilities, SESSION_TRACK decides.
    pub fn decode(body: &'a [u8], capabilities: Capabilities) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let ends_rows = match reader.u8()? {
            server::OK => false,
            server::EOF => true,
            other => return Err(WireError::UndefinedValue(i32::from(other))),
        };
        let affected_rows = reader.lenenc_le()?;
        let last_insert_id = reader.lenenc_le()?;
        let status = Status(reader.u16_le()?);
        let warnings = reader.u16_le()?;
        let info = if !capabilities.has(Capabilities::SESSION_TRACK) {
            Info::Plain(reader.all())
        } else if reader.is_at_end() {
            Info::Absent
        } else {
            let text = reader.lenenc_bytes_le()?;
            let states = if status.has(Status::SESSION_STATE_CHANGED) {
                Some(SessionStates::read(&mut reader)?)
            } else {
                None
            };
            Info::Tracked { text, states }
        };
        reader.finish().map(|()| Self { ends_rows, affected_rows, last_insert_id, status, warnings, info })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(if self.ends_rows { server::EOF } else { server::OK });
        put_lenenc(out, self.affected_rows);
        put_lenenc(out, self.last_insert_id);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        match &self.info {
            Info::Plain(rest) => out.extend_from_slice(rest),
            Info::Absent => {}
            Info::Tracked { text, states } => {
                put_lenenc_bytes(out, text);
                if let Some(states) = states {
                    states.put(out);
                }
            }
        }
    }
}
