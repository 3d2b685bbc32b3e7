//! A unit of the client's that has come whole, before it is booked.

use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, frontend};

use crate::contract::{INSPECT_BYTES_MAX, LENGTH_MAX};

/// A unit that has come whole, with nothing behind it: its client waits for the answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived<'a> {
    bytes: &'a [u8],
}

impl<'a> Arrived<'a> {
    /// The unit in `input`: one simple query, or an extended group with the Sync that ends it.
    pub(crate) fn peek(input: &'a [u8]) -> Option<Self> {
        Self::peek_until(input, &[frontend::SYNC])
    }

    /// The same, or an extended group with the Flush that ends it.
    pub(crate) fn peek_flushed(input: &'a [u8]) -> Option<Self> {
        Self::peek_until(input, &[frontend::SYNC, frontend::FLUSH])
    }

    fn peek_until(input: &'a [u8], ends: &[u8]) -> Option<Self> {
        if input.len() > INSPECT_BYTES_MAX {
            return None;
        }
        let mut rest = input;
        loop {
            let header = FrameHeader::peek(rest, LENGTH_MAX)?.ok()?;
            rest = rest.get(header.frame_len()..)?;
            match header.tag {
                tag if ends.contains(&tag) => break,
                frontend::QUERY if rest.len() + header.frame_len() == input.len() => break,
                frontend::PARSE
                | frontend::BIND
                | frontend::DESCRIBE
                | frontend::EXECUTE
                | frontend::CLOSE => {}
                _ => return None,
            }
        }
        rest.is_empty().then_some(Self { bytes: input })
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Its messages: tag and body.
    pub(crate) fn messages(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        messages(self.bytes)
    }
}

/// Tag and body of each whole message.
pub(super) fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let header = FrameHeader::peek(rest, LENGTH_MAX)?.ok()?;
        let (message, after) = rest.split_at_checked(header.frame_len())?;
        rest = after;
        Some((header.tag, message.get(HEADER_BYTES..)?))
    })
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::frame;

    use super::*;

    fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        frame(&mut out, tag, |out| out.extend_from_slice(body));
        out
    }

    fn tags(input: &[u8]) -> Option<Vec<u8>> {
        Arrived::peek(input).map(|unit| unit.messages().map(|(tag, _)| tag).collect())
    }

    #[test]
    fn only_what_is_whole_and_alone_is_a_unit() {
        let query = message(b'Q', b"COMMIT\0");
        let group = [message(b'P', b""), message(b'E', b"\0\0\0\0\0"), message(b'S', b"")].concat();
        assert_eq!(tags(&query).as_deref(), Some(&b"Q"[..]));
        assert_eq!(tags(&group).as_deref(), Some(&b"PES"[..]));
        for not in [
            &b""[..],
            &query[..query.len() - 1],
            &group[..group.len() - 5],
            &[&query[..], &query].concat(),
            &[&group[..], &query].concat(),
            &[message(b'P', b""), query.clone()].concat(),
            &[message(b'P', b""), message(b'H', b"")].concat(),
            &message(b'Q', &vec![b' '; INSPECT_BYTES_MAX]),
        ] {
            assert_eq!(tags(not), None, "{}", not.escape_ascii());
        }
    }
}
