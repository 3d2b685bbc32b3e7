use std::collections::VecDeque;

use onetrip_ledger::Moment;
use onetrip_wire::pg::{FrameHeader, backend};

use crate::session::LENGTH_MAX;

/// Where a piece of a result ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// At its size; there may be more.
    Suspended,
    /// With the result.
    Complete,
    /// With this ErrorResponse.
    Failed(Vec<u8>),
}

/// Where an answer from memory ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// As the server would end it.
    At(End),
    /// Too early: the rest is on the server.
    Short,
}

/// Rows that were read ahead, as the messages that they came in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    bytes: Vec<u8>,
    /// What of them has been delivered.
    delivered: usize,
    /// Rows that have not.
    rows: u64,
    end: End,
}

/// What was read ahead of one result and is not delivered, in order.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// The piece that is coming.
    coming: Vec<u8>,
    coming_rows: u64,
    /// When the last piece had come.
    pub(crate) filled_at: Option<Moment>,
}

impl Buffer {
    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether the result's end is known.
    pub(crate) fn is_ended(&self) -> bool {
        self.pieces.back().is_some_and(|piece| piece.end != End::Suspended)
    }

    /// Pieces that are kept.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.coming.len()
    }

    /// A message, or a part of one, of the piece that is coming.
    pub(crate) fn add(&mut self, bytes: &[u8], is_row: bool) {
        self.coming.extend_from_slice(bytes);
        self.coming_rows += u64::from(is_row);
    }

    /// The piece that was coming is there. Returns its bytes.
    pub(crate) fn end(&mut self, end: End) -> usize {
        let bytes = std::mem::take(&mut self.coming);
        let rows = std::mem::take(&mut self.coming_rows);
        let length = bytes.len();
        if !self.is_ended() {
            self.bytes += length;
            self.pieces.push_back(Piece { bytes, delivered: 0, rows, end });
        }
        length
    }

    /// Whether the whole answer to a request for so many rows, or for all, is kept.
    pub(crate) fn covers(&self, limit: Option<u64>) -> bool {
        let mut rows = 0;
        for piece in &self.pieces {
            rows += piece.rows;
            if limit.is_some_and(|limit| rows >= limit) {
                return true;
            }
            match piece.end {
                End::Suspended => {}
                End::Complete => return true,
                End::Failed(_) => return false,
            }
        }
        false
    }

    /// Takes up to `limit` rows, or all, and appends their messages to `out`. Returns how many they are, and where the
    /// answer ends. The end of a result stays, to be told again.
    pub(crate) fn take(&mut self, limit: Option<u64>, out: &mut Vec<u8>) -> (u64, Stop) {
        let mut rows = 0;
        loop {
            let left = limit.map(|limit| limit - rows);
            let Some(piece) = self.pieces.front_mut() else { return (rows, Stop::Short) };
            let before = piece.delivered;
            rows += piece.take(left, out);
            self.bytes -= piece.delivered - before;
            let is_over = piece.rows == 0;
            if is_over && piece.end == End::Suspended {
                self.pieces.pop_front();
                if limit == Some(rows) {
                    return (rows, Stop::At(End::Suspended));
                }
            } else if limit == Some(rows) {
                return (rows, Stop::At(End::Suspended));
            } else {
                return (rows, Stop::At(piece.end.clone()));
            }
        }
    }

    /// Gives back what was taken and not delivered.
    pub(crate) fn put_back(&mut self, bytes: Vec<u8>, rows: u64) {
        if rows > 0 {
            self.bytes += bytes.len();
            self.pieces.push_front(Piece { bytes, delivered: 0, rows, end: End::Suspended });
        }
    }
}

impl Piece {
    /// Appends the messages of so many rows, or of all that are left.
    fn take(&mut self, limit: Option<u64>, out: &mut Vec<u8>) -> u64 {
        let rest = &self.bytes[self.delivered..];
        let wanted = limit.map_or(self.rows, |limit| limit.min(self.rows));
        let length = if wanted == self.rows { rest.len() } else { length_of(rest, wanted) };
        out.extend_from_slice(&rest[..length]);
        self.delivered += length;
        self.rows -= wanted;
        wanted
    }
}

/// Length of the messages up to and with this many rows.
fn length_of(messages: &[u8], rows: u64) -> usize {
    let (mut length, mut left) = (0, rows);
    while left > 0 {
        let Some(Ok(header)) = FrameHeader::peek(&messages[length..], LENGTH_MAX) else { break };
        length = (length + header.frame_len()).min(messages.len());
        left -= u64::from(header.tag == backend::DATA_ROW);
    }
    length
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::frame;

    use super::*;

    fn row(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(&mut out, backend::DATA_ROW, |out| out.extend_from_slice(value));
        out
    }

    fn buffer(pieces: &[(&[&[u8]], End)]) -> Buffer {
        let mut buffer = Buffer::default();
        for (rows, end) in pieces {
            rows.iter().for_each(|value| buffer.add(&row(value), true));
            buffer.end(end.clone());
        }
        buffer
    }

    fn taken(buffer: &mut Buffer, limit: u64) -> (String, Stop) {
        let mut out = Vec::new();
        let (rows, stop) = buffer.take(Some(limit).filter(|limit| *limit > 0), &mut out);
        let values: String = out.iter().copied().filter(u8::is_ascii_lowercase).map(char::from).collect();
        assert_eq!(values.len() as u64, rows);
        (values, stop)
    }

    #[test]
    fn rows_are_cut_as_they_are_asked_for_and_the_end_is_told_again() {
        let pieces: [(&[&[u8]], End); 3] =
            [(&[b"a", b"b"], End::Suspended), (&[b"c", b"d"], End::Suspended), (&[b"e"], End::Complete)];
        let mut one = buffer(&pieces);
        assert!(one.covers(Some(5)) && one.covers(Some(9)) && one.covers(None) && one.is_ended());
        assert_eq!(taken(&mut one, 3), ("abc".into(), Stop::At(End::Suspended)));
        assert_eq!(taken(&mut one, 2), ("de".into(), Stop::At(End::Suspended)), "the server does not look");
        assert_eq!(taken(&mut one, 2), (String::new(), Stop::At(End::Complete)));
        assert_eq!(taken(&mut one, 0), (String::new(), Stop::At(End::Complete)));
        assert_eq!(one.bytes(), 0);
        assert_eq!(taken(&mut buffer(&pieces), 0), ("abcde".into(), Stop::At(End::Complete)));
        let mut short = buffer(&pieces[..2]);
        assert!(short.covers(Some(4)) && !short.covers(Some(5)) && !short.covers(None));
        assert_eq!(taken(&mut short, 5), ("abcd".into(), Stop::Short));
        assert!(short.is_empty());
    }

    #[test]
    fn an_error_comes_behind_the_rows_before_it() {
        let failed = || End::Failed(b"E".to_vec());
        let mut one = buffer(&[(&[b"a"], End::Suspended), (&[b"b"], failed()), (&[], failed())]);
        assert_eq!(one.len(), 2, "what comes behind an error is another one");
        assert!(one.covers(Some(2)) && !one.covers(Some(3)));
        assert_eq!(taken(&mut one, 2), ("ab".into(), Stop::At(End::Suspended)));
        assert_eq!(taken(&mut one, 2), (String::new(), Stop::At(failed())));
        one.put_back(row(b"z"), 1);
        assert_eq!(taken(&mut one, 1), ("z".into(), Stop::At(End::Suspended)));
    }
}
