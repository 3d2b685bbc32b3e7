//! What a server sent, as messages, and the comparison of two such streams.

use std::fmt;

use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, RowDescription, backend};

use super::may_differ::{self, Columns};

/// Tag given to the single-byte answers to SSLRequest and GSSENCRequest, which have none.
pub(crate) const SINGLE_BYTE: u8 = 0;
/// Tag given to what is left at the end and no whole message.
const FRAGMENT: u8 = 1;

/// One message of the server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) tag: u8,
    pub(crate) body: Vec<u8>,
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 300;
        let shown = &self.body[..self.body.len().min(SHOWN)];
        write!(f, "{}[{}] {}", char::from(self.tag), self.body.len(), shown.escape_ascii())
    }
}

/// All that a server sent in one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    pub(crate) messages: Vec<Message>,
    /// Where each ReadyForQuery is in `messages`: it is asked for at every step.
    ready: Vec<usize>,
    rest: Vec<u8>,
    single_bytes_due: usize,
}

impl Transcript {
    /// The next byte is one without a frame.
    pub(crate) fn single_byte_follows(&mut self) {
        self.single_bytes_due += 1;
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let mut at = 0;
        while at < self.rest.len() {
            if self.single_bytes_due > 0 {
                self.single_bytes_due -= 1;
                self.messages.push(Message { tag: SINGLE_BYTE, body: vec![self.rest[at]] });
                at += 1;
                continue;
            }
            let Some(Ok(header)) = FrameHeader::peek(&self.rest[at..], u32::MAX) else { break };
            let Some(frame) = self.rest.get(at..at + header.frame_len()) else { break };
            if header.tag == backend::READY_FOR_QUERY {
                self.ready.push(self.messages.len());
            }
            self.messages.push(Message { tag: header.tag, body: frame[HEADER_BYTES..].to_vec() });
            at += header.frame_len();
        }
        self.rest.drain(..at);
    }

    /// Forgets the messages that have been read.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.ready.clear();
    }

    /// Messages with this tag.
    pub(crate) fn count(&self, tag: u8) -> usize {
        match tag {
            backend::READY_FOR_QUERY => self.ready.len(),
            _ => self.messages.iter().filter(|message| message.tag == tag).count(),
        }
    }

    /// The status of the transaction that the last ReadyForQuery says.
    pub(crate) fn status(&self) -> Option<u8> {
        let &last = self.ready.last()?;
        self.messages[last].body.first().copied()
    }

    /// The tags in order, as text.
    pub(crate) fn tags(&self) -> String {
        self.messages.iter().map(|message| char::from(message.tag)).collect()
    }

    /// The messages with this tag.
    pub(crate) fn with_tag(&self, tag: u8) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.tag == tag)
    }

    /// The messages, and what follows the last whole one as another.
    fn all(&self) -> impl Iterator<Item = Message> + '_ {
        let rest = Some(&self.rest).filter(|rest| !rest.is_empty());
        let fragment = rest.map(|rest| Message { tag: FRAGMENT, body: rest.clone() });
        self.messages.iter().cloned().chain(fragment)
    }

    /// Where `self` and `other` differ beyond what may; `None` if nowhere.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let (left, right): (Vec<_>, Vec<_>) = (self.all().collect(), other.all().collect());
        let (mut left_columns, mut right_columns) = (Columns::default(), Columns::default());
        for position in 0..left.len().max(right.len()) {
            let (Some(one), Some(two)) = (left.get(position), right.get(position)) else {
                return Some(format!(
                    "message {position}: {:?} against {:?}",
                    left.get(position),
                    right.get(position)
                ));
            };
            note_columns(&mut left_columns, one);
            note_columns(&mut right_columns, two);
            if may_differ::masked(one, &left_columns) != may_differ::masked(two, &right_columns) {
                return Some(format!("message {position}: {one:?} against {two:?}"));
            }
        }
        None
    }
}

fn note_columns(columns: &mut Columns, message: &Message) {
    if message.tag == backend::ROW_DESCRIPTION {
        if let Ok(description) = RowDescription::decode(&message.body) {
            *columns = description.columns().map(|column| (column.name.to_vec(), column.type_oid)).collect();
        }
    }
}
