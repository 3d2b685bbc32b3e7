//! An open large object: where the program stands in it, what of it is known, and where the server's descriptor stands.

use onetrip_wire::pg::Oid;

use super::call::Whence;
use super::verify::Replay;

/// Where the server's descriptor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The server has none: it was opened ahead, and closed again.
    Nowhere,
    /// Here, in bytes.
    Place(i64),
    /// Something failed while it moved.
    Unknown,
}

/// Bytes of an object that follow each other, as one snapshot has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) start: i64,
    pub(super) bytes: Vec<u8>,
    /// Nothing is behind them.
    pub(super) is_end: bool,
    /// The object's length, in bytes.
    pub(super) size: Option<i64>,
}

impl Content {
    /// Where it ends.
    pub(super) fn end(&self) -> i64 {
        self.start + self.bytes.len() as i64
    }

    /// What a read of `asked` bytes has brought, from `from` on.
    pub(super) fn add(&mut self, from: i64, read: &[u8], asked: i32) {
        if self.end() != from || self.is_end {
            self.bytes.clear();
            self.start = from;
            self.is_end = false;
        }
        self.bytes.extend_from_slice(read);
        self.is_end = (read.len() as i64) < i64::from(asked);
        if self.is_end && (!self.bytes.is_empty() || from == 0) {
            self.size = Some(self.end());
        }
    }

    /// What a read brings, if that is known.
    fn read(&self, place: i64, count: i32) -> Option<&[u8]> {
        let count = usize::try_from(count).ok()?;
        let from = usize::try_from(place.checked_sub(self.start)?).ok()?;
        match self.bytes.get(from..from.checked_add(count)?) {
            None if self.is_end => Some(self.bytes.get(from..).unwrap_or_default()),
            known => known,
        }
    }
}

/// A descriptor that the program has open for reading.
#[derive(Debug)]
pub(super) struct Descriptor {
    pub(super) oid: Oid,
    pub(super) mode: i32,
    /// Where the program stands, in bytes.
    pub(super) place: i64,
    pub(super) at: At,
    pub(super) content: Content,
    /// Calls ahead that the server has not answered.
    pub(super) under_way: usize,
    /// Bytes that the program has read.
    pub(super) read: usize,
    /// What of it is verified.
    pub(super) replay: Replay,
}

impl Descriptor {
    pub(super) fn new(oid: Oid, mode: i32, at: At) -> Self {
        Self {
            oid,
            mode,
            place: 0,
            at,
            content: Content::default(),
            under_way: 0,
            read: 0,
            replay: Replay::default(),
        }
    }

    /// Whether the server's descriptor stands where the program believes it to.
    pub(super) fn is_in_place(&self) -> bool {
        self.at == At::Place(self.place)
    }

    /// Reads on, if what is there is known.
    pub(super) fn read(&mut self, count: i32) -> Option<&[u8]> {
        let bytes = self.content.read(self.place, count)?;
        self.place += bytes.len() as i64;
        self.read += bytes.len();
        Some(bytes)
    }

    /// Goes elsewhere, if that is known and surely allowed. Returns the place.
    pub(super) fn seek(&mut self, offset: i64, whence: Whence) -> Option<i64> {
        let from = match whence {
            Whence::Start => 0,
            Whence::Place => self.place,
            Whence::End => self.content.size?,
        };
        let place = from.checked_add(offset)?;
        (0..=i64::from(i32::MAX)).contains(&place).then_some(())?;
        self.place = place;
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(copy: &[(i64, &[u8], i32)]) -> Descriptor {
        let mut descriptor = Descriptor::new(1, 0x4_0000, At::Place(0));
        for (from, read, asked) in copy {
            descriptor.content.add(*from, read, *asked);
        }
        descriptor
    }

    #[test]
    fn a_read_is_answered_as_far_as_the_copy_goes() {
        let mut open = of(&[(0, b"abcd", 4)]);
        assert_eq!(open.read(3), Some(&b"abc"[..]));
        assert_eq!(open.read(2), None, "what is behind it is not known");
        assert_eq!(open.read(1), Some(&b"d"[..]));
        assert_eq!(open.place, 4);
        assert_eq!(open.seek(0, Whence::End), None);
        let mut whole = of(&[(0, b"abcd", 4), (4, b"ef", 4)]);
        assert_eq!(whole.seek(-3, Whence::End), Some(3));
        assert_eq!(whole.read(100), Some(&b"def"[..]));
        assert_eq!(whole.read(100), Some(&b""[..]));
        assert_eq!(whole.seek(90, Whence::Place), Some(96));
        assert_eq!(whole.read(1), Some(&b""[..]));
        assert_eq!(whole.read(-1), None, "for the server to say");
    }

    #[test]
    fn a_copy_that_does_not_follow_takes_the_place_of_the_last() {
        let mut open = of(&[(0, b"abcd", 4), (8, b"ij", 4)]);
        assert_eq!(open.read(1), None);
        assert_eq!(open.seek(0, Whence::End), Some(10));
        assert_eq!(open.seek(-2, Whence::Place), Some(8));
        assert_eq!(open.read(2), Some(&b"ij"[..]));
        assert_eq!(of(&[(8, b"", 4)]).content.size, None, "it may end before");
    }

    #[test]
    fn a_place_that_may_be_refused_is_for_the_server() {
        let mut open = of(&[(0, b"abcd", 9)]);
        for (offset, whence) in
            [(-1, Whence::Start), (-5, Whence::End), (i64::MAX, Whence::End), (1 << 31, Whence::Start)]
        {
            assert_eq!(open.seek(offset, whence), None);
            assert_eq!(open.place, 0);
        }
    }
}
