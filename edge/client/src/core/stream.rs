//! The bytes of a connection, both ways, with TLS on them or without; the sockets are the caller's.

use std::io::{self, Read, Write};
use std::ops::Range;

use onetrip_wire::WireError;
use onetrip_wire::pg::{FrameHeader, HEADER_BYTES, backend};
use rustls::ClientConnection;

/// Room for reading that is always there, in bytes.
const READ_BYTES: usize = 32 * 1024;

/// A buffer that a long message made larger than this is given back once it is empty.
const KEPT_BYTES: usize = 1024 * 1024;

/// Longest message that is accepted, in bytes: PostgreSQL itself makes none above one gigabyte.
const FRAME_BYTES_MAX: u32 = 0x4000_0000;

/// A message that has arrived: its tag, and where its body stands in the input buffer.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) tag: u8,
    pub(crate) body: Range<usize>,
}

/// Bytes to send, bytes that came.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// What is to be sent, before TLS.
    pub(crate) out: Vec<u8>,
    /// How much of `out` the caller (or TLS) has taken.
    out_taken: usize,
    /// Bytes taken since the connection began, before those in `out`.
    taken_before: u64,
    input: Input,
    tls: Option<Box<Tls>>,
}

/// What came: a buffer whose messages are read in place.
#[derive(Debug, Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

/// TLS and its bytes on both sides.
#[derive(Debug)]
struct Tls {
    session: ClientConnection,
    out: Vec<u8>,
    out_taken: usize,
    input: Vec<u8>,
}

impl Stream {
    /// Everything from here on goes through TLS.
    pub(crate) fn start_tls(&mut self, session: ClientConnection) {
        self.tls = Some(Box::new(Tls { session, out: Vec::new(), out_taken: 0, input: vec![0; READ_BYTES] }));
    }

    pub(crate) fn tls(&self) -> Option<&ClientConnection> {
        self.tls.as_ref().map(|tls| &tls.session)
    }

    /// What the caller shall send now.
    pub(crate) fn output(&mut self) -> &[u8] {
        if let Some(tls) = &mut self.tls {
            if !tls.session.is_handshaking() {
                let taken = tls.encrypt(&self.out[self.out_taken..]);
                self.taken_before += taken as u64;
                self.out_taken += taken;
            }
            tls.fill_output();
        }
        match &self.tls {
            None => &self.out[self.out_taken..],
            Some(_) => self.tls_output(),
        }
    }

    fn tls_output(&mut self) -> &[u8] {
        self.reset_output();
        self.tls.as_ref().map_or(&[], |tls| &tls.out[tls.out_taken..])
    }

    /// Whether there is something to send.
    pub(crate) fn has_output(&self) -> bool {
        let encrypted =
            self.tls.as_ref().is_some_and(|tls| tls.out_taken < tls.out.len() || tls.session.wants_write());
        encrypted || self.out_taken < self.out.len()
    }

    /// `count` bytes of [`output`](Self::output) were sent.
    pub(crate) fn sent(&mut self, count: usize) {
        match &mut self.tls {
            None => {
                self.taken_before += count as u64;
                self.out_taken += count;
                self.reset_output();
            }
            Some(tls) => {
                tls.out_taken += count;
                if tls.out_taken == tls.out.len() {
                    tls.out.clear();
                    tls.out_taken = 0;
                }
            }
        }
    }

    fn reset_output(&mut self) {
        if self.out_taken == self.out.len() {
            self.out.clear();
            self.out_taken = 0;
            if self.out.capacity() > KEPT_BYTES {
                self.out.shrink_to(READ_BYTES);
            }
        }
    }

    /// Bytes that wait to be sent.
    pub(crate) fn pending(&self) -> usize {
        self.out.len() - self.out_taken
    }

    /// Where in the connection's stream the next byte of `out` will stand.
    pub(crate) fn position(&self) -> u64 {
        self.taken_before + self.pending() as u64
    }

    /// Where in the connection's stream the first byte stands that surely has not been sent.
    pub(crate) fn position_sent(&self) -> u64 {
        self.taken_before
    }

    /// Room for what arrives. Spans of messages read before are void from here on.
    pub(crate) fn input_space(&mut self) -> &mut [u8] {
        match &mut self.tls {
            None => self.input.space(),
            Some(tls) => &mut tls.input,
        }
    }

    /// `count` bytes have arrived in [`input_space`](Self::input_space).
    pub(crate) fn received(&mut self, count: usize) -> Result<(), rustls::Error> {
        match &mut self.tls {
            None => {
                self.input.end += count;
                Ok(())
            }
            Some(tls) => tls.decrypt(count, &mut self.input),
        }
    }

    /// Takes one byte that stands before all messages: the answer to SSLRequest.
    pub(crate) fn take_byte(&mut self) -> Option<u8> {
        let byte = *self.input.bytes.get(self.input.start..self.input.end)?.first()?;
        self.input.start += 1;
        Some(byte)
    }

    /// Whether bytes have arrived that no message took.
    pub(crate) fn has_input(&self) -> bool {
        self.input.start < self.input.end
    }

    /// Whether the next message, of which something has arrived, is an answer: the server may say some by itself.
    pub(crate) fn is_answered(&self) -> bool {
        const UNASKED: [u8; 3] =
            [backend::NOTICE_RESPONSE, backend::NOTIFICATION_RESPONSE, backend::PARAMETER_STATUS];
        let came = self.input.bytes.get(self.input.start..self.input.end).unwrap_or_default();
        came.first().is_some_and(|tag| !UNASKED.contains(tag))
    }

    /// Takes the next message if all of it is there. Its span holds until [`input_space`](Self::input_space).
    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let Input { bytes, start, end } = &mut self.input;
        let Some(header) = FrameHeader::peek(&bytes[*start..*end], FRAME_BYTES_MAX) else { return Ok(None) };
        let header = header?;
        let length = header.frame_len();
        if *end - *start < length {
            return Ok(None);
        }
        let body = *start + HEADER_BYTES..*start + length;
        *start += length;
        Ok(Some(Frame { tag: header.tag, body }))
    }

    /// Takes the next messages with a tag, as far as they are all there: where they stand, headers included, and how many
    /// they are. The span holds as that of [`next_frame`](Self::next_frame).
    pub(crate) fn next_frames(&mut self, tag: u8) -> (Range<usize>, usize) {
        let Input { bytes, start, end } = &mut self.input;
        let (first, mut count) = (*start, 0);
        while let Some(Ok(header)) = FrameHeader::peek(&bytes[*start..*end], FRAME_BYTES_MAX) {
            let length = header.frame_len();
            if header.tag != tag || *end - *start < length {
                break;
            }
            *start += length;
            count += 1;
        }
        (first..*start, count)
    }

    /// The bytes of a span.
    pub(crate) fn span(&self, span: Range<usize>) -> &[u8] {
        self.input.bytes.get(span).unwrap_or_default()
    }
}

impl Input {
    fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > KEPT_BYTES {
                self.bytes = Vec::new();
            }
        } else if self.start > 0 && self.bytes.len() - self.end < READ_BYTES / 2 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // It grows with what has come, not with what a length field promises.
        if self.bytes.len() - self.end < READ_BYTES / 2 {
            self.bytes.resize((self.bytes.len() * 2).max(READ_BYTES), 0);
        }
        &mut self.bytes[self.end..]
    }
}

impl Tls {
    /// Takes plain bytes; how many.
    fn encrypt(&mut self, plain: &[u8]) -> usize {
        let mut taken = 0;
        while taken < plain.len() {
            // A writer that is full takes nothing until its records are moved out.
            let count = self.session.writer().write(&plain[taken..]).unwrap_or_default();
            taken += count;
            self.fill_output();
            if count == 0 {
                break;
            }
        }
        taken
    }

    fn fill_output(&mut self) {
        while self.session.wants_write() {
            // Writing to a Vec cannot fail.
            if self.session.write_tls(&mut self.out).is_err() {
                break;
            }
        }
    }

    fn decrypt(&mut self, count: usize, into: &mut Input) -> Result<(), rustls::Error> {
        let mut raw = &self.input[..count];
        while !raw.is_empty() {
            // Reading from a slice cannot fail; rustls refuses only what does not fit its own buffer.
            if self.session.read_tls(&mut raw).is_err() {
                return Err(rustls::Error::General("more data than TLS can take".to_owned()));
            }
            self.session.process_new_packets()?;
            loop {
                let space = into.space();
                match self.session.reader().read(space) {
                    Ok(0) => break,
                    Ok(count) => into.end += count,
                    // The end of the stream shows in the socket as well.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(_) => break,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(stream: &mut Stream, bytes: &[u8]) {
        let space = stream.input_space();
        space[..bytes.len()].copy_from_slice(bytes);
        stream.received(bytes.len()).unwrap();
    }

    #[test]
    fn a_message_is_taken_once_all_of_it_is_there() {
        let mut stream = Stream::default();
        receive(&mut stream, b"Z\0\0\0\x05");
        assert!(stream.next_frame().unwrap().is_none());
        receive(&mut stream, b"IC\0\0\0");
        let frame = stream.next_frame().unwrap().unwrap();
        assert_eq!((frame.tag, stream.span(frame.body)), (b'Z', &b"I"[..]));
        assert!(stream.next_frame().unwrap().is_none());
        assert!(stream.has_input());
    }

    #[test]
    fn messages_of_a_kind_are_taken_together_as_far_as_they_are_there() {
        let mut stream = Stream::default();
        receive(&mut stream, b"D\0\0\0\x05aD\0\0\0\x04C\0\0\0\x04D\0\0\0\x06b");
        let (span, count) = stream.next_frames(b'D');
        assert_eq!((stream.span(span), count), (&b"D\0\0\0\x05aD\0\0\0\x04"[..], 2));
        assert_eq!(stream.next_frames(b'D').1, 0);
        assert_eq!(stream.next_frame().unwrap().unwrap().tag, b'C');
        assert_eq!(stream.next_frames(b'D').1, 0);
        receive(&mut stream, b"c");
        assert_eq!(stream.next_frames(b'D').1, 1);
    }

    #[test]
    fn the_input_grows_with_what_came_and_not_with_a_promise() {
        let mut stream = Stream::default();
        receive(&mut stream, b"D\x3f\xff\xff\xff");
        for _ in 0..10 {
            assert!(stream.next_frame().unwrap().is_none());
            receive(&mut stream, &[7; 1000]);
        }
        assert!(stream.input.bytes.len() <= 2 * READ_BYTES);
        receive(&mut stream, b"");
        let mut greedy = Stream::default();
        receive(&mut greedy, b"D\x7f\xff\xff\xff");
        assert!(matches!(greedy.next_frame(), Err(WireError::FrameTooLong { .. })));
    }

    #[test]
    fn positions_tell_what_was_sent() {
        let mut stream = Stream::default();
        stream.out.extend_from_slice(b"0123456789");
        assert_eq!((stream.position(), stream.position_sent()), (10, 0));
        stream.sent(4);
        assert_eq!(stream.output(), b"456789");
        assert_eq!((stream.position(), stream.position_sent()), (10, 4));
        stream.sent(6);
        stream.out.push(b'x');
        assert_eq!((stream.pending(), stream.position(), stream.position_sent()), (1, 11, 10));
    }
}
