//! Where COPY data goes on after a gap: the header of its next message, found again.
//!
//! Only in text: it has no zero bytes, as no encoding of PostgreSQL's has them, and every header has. Binary data may hold
//! whole messages (a table of captured packets, say), so nothing is looked for in it.

const COPY_DATA: u8 = b'd';
const HEADER_BYTES: usize = 5;
/// CopyDone: it has no body.
const COPY_DONE: [u8; HEADER_BYTES] = *b"c\0\0\0\x04";
/// Longest message of COPY data that is believed: its length begins with a zero byte.
const LENGTH_MAX: u32 = (16 << 20) - 1;

/// Looks for the next message in COPY data whose framing is lost. A CopyDone is believed at once, a CopyData where the next
/// header is at its end.
#[derive(Debug, Default)]
pub(crate) struct CopySearch {
    /// Bytes from the next one to where a header must be, if a CopyData was seen.
    next: Option<usize>,
}

impl CopySearch {
    /// Bytes are missing here.
    pub(crate) fn miss(&mut self) {
        self.next = None;
    }

    /// Looks through the next bytes; where in them a message begins. A header that is cut in two is passed over.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut place = 0;
        loop {
            if let Some(next) = self.next.take() {
                if next >= bytes.len() {
                    self.next = Some(next - bytes.len());
                    return None;
                }
                if next_message(&bytes[next..]).is_some() {
                    return Some(next);
                }
            }
            let (at, length) = bytes[place..]
                .iter()
                .enumerate()
                .filter(|(_, byte)| matches!(**byte, COPY_DATA | b'c'))
                .find_map(|(at, _)| Some((place + at, next_message(&bytes[place + at..])?)))?;
            if bytes[at] != COPY_DATA {
                return Some(at);
            }
            self.next = Some(at + length);
            place = at + 1;
        }
    }
}

/// Length of the message that begins here, with its tag, if one does.
fn next_message(bytes: &[u8]) -> Option<usize> {
    let header = bytes.first_chunk::<HEADER_BYTES>()?;
    let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
    let is_data = header[0] == COPY_DATA && (4..=LENGTH_MAX).contains(&length);
    (is_data || *header == COPY_DONE).then_some(1 + length as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(body: &str) -> Vec<u8> {
        [&[COPY_DATA][..], &(body.len() as u32 + 4).to_be_bytes(), body.as_bytes()].concat()
    }

    /// The place that is found in bytes that come in pieces.
    fn find(bytes: &[u8], piece: usize) -> Option<usize> {
        let mut search = CopySearch::default();
        let mut chunks = bytes.chunks(piece).zip((0..).step_by(piece));
        chunks.find_map(|(chunk, before)| search.push(chunk).map(|place| before + place))
    }

    #[test]
    fn a_header_that_leads_to_another_is_found_wherever_the_segments_end() {
        let rows: Vec<_> = (0..9).map(|row| data(&format!("{row}\tdddd\tcccc\n"))).collect();
        let bytes = [b"the end of a row, dddd\n".to_vec(), rows.concat()].concat();
        let headers: Vec<_> = (1..9).map(|row| 23 + rows[..row].concat().len()).collect();
        assert_eq!(find(&bytes, 1_000), Some(headers[0]));
        for piece in 5..60 {
            let found = find(&bytes, piece);
            assert!(found.is_none_or(|place| headers.contains(&place)), "{piece}: {found:?}");
            assert!(found.is_some() || piece < 12, "{piece}");
        }
    }

    #[test]
    fn the_end_of_the_data_is_believed_alone_and_a_length_that_leads_nowhere_is_not() {
        assert_eq!(find(b"row\nc\0\0\0\x04", 100), Some(4));
        let wrong = [&b"row\nd\0\0\0\x09abcdeXX"[..], &data("row\n"), &data("row\n")].concat();
        assert_eq!(find(&wrong, 100), Some(wrong.len() - 9));
        assert_eq!(find(&[b'd'; 100], 100), None);
    }

    #[test]
    fn after_a_gap_a_length_leads_nowhere() {
        let mut search = CopySearch::default();
        assert_eq!(search.push(&data("row\n")[..8]), None);
        search.miss();
        assert_eq!(search.push(&[b"\n", &data("row\n")[..]].concat()), None);
    }
}
