//! One direction's bytes, put in order.

/// Bytes that wait for a gap to be filled, at most; beyond, what is missing is given up.
const WAITING_BYTES_MAX: usize = 4 << 20;
const PIECES_MAX: usize = 4_096;
/// The first byte's place: segments before the first one seen have places, too.
const BASE: u64 = 1 << 32;

/// What comes next in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chunk<'a> {
    /// Bytes as captured.
    Known(&'a [u8]),
    /// Bytes that were sent and not captured.
    Unknown(u64),
}

impl<'a> Chunk<'a> {
    /// Its bytes, if they were captured.
    pub(crate) fn known(&self) -> Option<&'a [u8]> {
        match self {
            Self::Known(bytes) => Some(bytes),
            Self::Unknown(_) => None,
        }
    }

    /// How many bytes they are.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Known(bytes) => bytes.len() as u64,
            Self::Unknown(bytes) => *bytes,
        }
    }
}

/// Puts segments in order, each byte once: the first copy of a byte counts, as for most receivers.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Place of the next byte to come, once any segment was seen.
    next: Option<u64>,
    /// Sorted by place; none of it overlaps `next`.
    waiting: Vec<Piece>,
    waiting_bytes: usize,
    has_bytes: bool,
    is_finished: bool,
}

#[derive(Debug)]
struct Piece {
    start: u64,
    end: u64,
    data: Vec<u8>,
}

impl Stream {
    /// The first byte will have this number. Once there were bytes, that is said too late.
    pub(crate) fn begin(&mut self, sequence: u32) {
        if !self.has_bytes {
            self.next = Some(BASE + u64::from(sequence));
        }
    }

    /// Nothing more is wanted: gives back what waits.
    pub(crate) fn close(&mut self) {
        (self.waiting, self.waiting_bytes) = (Vec::new(), 0);
    }

    /// No byte follows those of the segment that ends it.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Whether any of its numbers is known.
    pub(crate) fn is_begun(&self) -> bool {
        self.next.is_some()
    }

    /// The number of the next byte to come.
    pub(crate) fn next_sequence(&self) -> u32 {
        self.next.unwrap_or(BASE) as u32
    }

    /// Takes a segment's `length` bytes, of which `data` was captured.
    pub(crate) fn push(
        &mut self,
        sequence: u32,
        data: &[u8],
        length: u32,
        deliver: &mut impl FnMut(Chunk<'_>),
    ) {
        let next = *self.next.get_or_insert(BASE + u64::from(sequence));
        self.has_bytes = true;
        let start = place(next, sequence);
        let end = start + u64::from(length);
        if end <= next {
            return;
        }
        if start > next {
            self.keep(start, end, data);
            if self.waiting_bytes > WAITING_BYTES_MAX || self.waiting.len() > PIECES_MAX {
                let first = self.waiting[0].start;
                deliver(Chunk::Unknown(first - next));
                self.next = Some(first);
                self.drain(deliver);
            }
            return;
        }
        self.next = Some(hand_over(next, start, end, data, deliver));
        if !self.waiting.is_empty() {
            self.drain(deliver);
        }
    }

    /// The receiver has everything before this number: what is missing of it was sent, and not captured.
    pub(crate) fn acknowledged(&mut self, sequence: u32, deliver: &mut impl FnMut(Chunk<'_>)) -> u64 {
        let Some(next) = self.next else {
            self.begin(sequence);
            return 0;
        };
        let end = place(next, sequence);
        // One byte more than was seen is a FIN, or the first word of a gap that further segments will show.
        if end <= next + 1 && (self.waiting.is_empty() || end <= next) {
            return 0;
        }
        let mut missed = 0;
        while let Some(next) = self.next.filter(|next| *next < end) {
            let until = self.waiting.first().map_or(end, |piece| piece.start.min(end));
            if until > next {
                let is_fin = self.is_finished && until - next == 1 && self.waiting.is_empty();
                if is_fin {
                    break;
                }
                missed += until - next;
                deliver(Chunk::Unknown(until - next));
                self.next = Some(until);
            }
            self.drain(deliver);
        }
        missed
    }

    fn keep(&mut self, start: u64, end: u64, data: &[u8]) {
        let at = self.waiting.partition_point(|piece| (piece.start, piece.end) < (start, end));
        if self.waiting.get(at).is_some_and(|same| (same.start, same.end) == (start, end)) {
            return;
        }
        self.waiting_bytes += data.len();
        self.waiting.insert(at, Piece { start, end, data: data.to_vec() });
    }

    /// Delivers what waited and is now next.
    fn drain(&mut self, deliver: &mut impl FnMut(Chunk<'_>)) {
        let Some(mut next) = self.next else { return };
        let mut used = 0;
        for piece in &self.waiting {
            if piece.start > next {
                break;
            }
            used += 1;
            self.waiting_bytes -= piece.data.len();
            if piece.end > next {
                next = hand_over(next, piece.start, piece.end, &piece.data, deliver);
            }
        }
        self.waiting.drain(..used);
        self.next = Some(next);
    }
}

/// Delivers the part of a segment that is new; the place after it.
fn hand_over(next: u64, start: u64, end: u64, data: &[u8], deliver: &mut impl FnMut(Chunk<'_>)) -> u64 {
    let seen = usize::try_from(next - start).unwrap_or(usize::MAX);
    let new = data.get(seen..).unwrap_or_default();
    if !new.is_empty() {
        deliver(Chunk::Known(new));
    }
    let unknown = end - next - new.len() as u64;
    if unknown > 0 {
        deliver(Chunk::Unknown(unknown));
    }
    end
}

/// The place of a sequence number near the place `next`: numbers wrap around.
pub(crate) fn place(next: u64, sequence: u32) -> u64 {
    let distance = sequence.wrapping_sub(next as u32) as i32;
    next.saturating_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was delivered; unknown bytes as underscores.
    fn collect(run: impl FnOnce(&mut dyn FnMut(Chunk<'_>))) -> String {
        let mut text = String::new();
        run(&mut |chunk| match chunk {
            Chunk::Known(bytes) => text.push_str(&String::from_utf8_lossy(bytes)),
            Chunk::Unknown(bytes) => text.push_str(&"_".repeat(bytes as usize)),
        });
        text
    }

    #[test]
    fn segments_out_of_order_overlapping_and_twice_give_each_byte_once() {
        let mut stream = Stream::default();
        stream.begin(u32::MAX - 2);
        let at = |offset: u32| (u32::MAX - 2).wrapping_add(offset);
        let text = collect(|mut deliver| {
            stream.push(at(3), b"def", 3, &mut deliver);
            stream.push(at(2), b"cd", 2, &mut deliver);
            stream.push(at(0), b"ab", 2, &mut deliver);
            stream.push(at(0), b"XX", 2, &mut deliver);
            stream.push(at(4), b"efgh", 4, &mut deliver);
        });
        assert_eq!(text, "abcdefgh", "and the numbers wrap around in it");
    }

    #[test]
    fn what_is_acknowledged_and_was_not_captured_is_unknown() {
        let mut stream = Stream::default();
        stream.begin(100);
        let mut missed = 0;
        let text = collect(|mut deliver| {
            stream.push(100, b"ab", 2, &mut deliver);
            stream.push(105, b"fg", 2, &mut deliver);
            missed += stream.acknowledged(102, &mut deliver);
            missed += stream.acknowledged(110, &mut deliver);
            stream.push(103, b"d", 1, &mut deliver);
            stream.push(110, b"k", 1, &mut deliver);
        });
        assert_eq!((text.as_str(), missed), ("ab___fg___k", 6));
    }

    #[test]
    fn a_fin_is_no_byte_and_a_cut_packet_has_a_tail_that_is_unknown() {
        let mut stream = Stream::default();
        stream.begin(0);
        let text = collect(|mut deliver| {
            stream.push(0, b"ab", 5, &mut deliver);
            stream.finish();
            stream.acknowledged(6, &mut deliver);
        });
        assert_eq!(text, "ab___");
    }

    proptest! {
        #[test]
        fn any_order_of_any_pieces_gives_the_same_bytes(
            isn: u32,
            mut cuts in proptest::collection::vec((0_usize..300, 1_usize..60), 1..40),
            seed in 0_usize..1000,
        ) {
            let sent: Vec<u8> = (0..360).map(|byte: usize| byte as u8).collect();
            cuts.extend((0..360).step_by(60).map(|start| (start, 60)));
            let turn = seed % cuts.len();
            cuts.rotate_left(turn);
            let mut stream = Stream::default();
            stream.begin(isn);
            let mut got = Vec::new();
            for (start, length) in cuts {
                let end = (start + length).min(360);
                stream.push(isn.wrapping_add(start as u32), &sent[start..end], (end - start) as u32, &mut |chunk| {
                    if let Chunk::Known(bytes) = chunk { got.extend_from_slice(bytes) }
                });
            }
            prop_assert_eq!(got, sent);
        }
    }
}
