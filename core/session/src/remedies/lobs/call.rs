//! Calls of the functions that read large objects, as drivers send them: by FunctionCall, everything binary.

use onetrip_wire::pg::{Format, Formats, FunctionCall, Oid, Values};

/// A function that opens, reads or closes. Their numbers are the same in every server (`pg_proc.dat` of PostgreSQL).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Open,
    Read,
    Seek,
    SeekWide,
    Tell,
    TellWide,
    Close,
}

impl Function {
    /// How many there are.
    pub(super) const COUNT: usize = 7;

    fn of(oid: Oid) -> Option<Self> {
        Some(match oid {
            952 => Self::Open,
            953 => Self::Close,
            954 => Self::Read,
            956 => Self::Seek,
            958 => Self::Tell,
            3170 => Self::SeekWide,
            3171 => Self::TellWide,
            _ => return None,
        })
    }

    pub(super) fn oid(self) -> Oid {
        match self {
            Self::Open => 952,
            Self::Close => 953,
            Self::Read => 954,
            Self::Seek => 956,
            Self::Tell => 958,
            Self::SeekWide => 3170,
            Self::TellWide => 3171,
        }
    }

    /// Whether it tells places in eight bytes.
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::SeekWide | Self::TellWide)
    }
}

/// Opened for writing (`INV_WRITE` of `libpq-fs.h`).
const WRITES: i32 = 0x2_0000;
/// Opened for reading (`INV_READ`).
const READS: i32 = 0x4_0000;

/// From where a place is counted (`SEEK_SET`, `SEEK_CUR`, `SEEK_END`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whence {
    Start,
    Place,
    End,
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Open { oid: Oid, mode: i32 },
    Read { fd: i32, count: i32 },
    Seek { fd: i32, offset: i64, whence: Whence, is_wide: bool },
    Tell { fd: i32, is_wide: bool },
    Close { fd: i32 },
}

impl Call {
    /// Reads the body of a FunctionCall; `None` for any other function, and where not all is binary.
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let call = FunctionCall::decode(body).ok()?;
        let function = Function::of(call.function)?;
        let count = call.arguments.len();
        let is_binary = (0..count).all(|at| call.argument_formats.of(at) == Format::Binary);
        (is_binary && call.result_format == 1).then_some(())?;
        let mut arguments = call.arguments.iter();
        let mut next = || arguments.next().flatten();
        let made = match function {
            Function::Open => Self::Open { oid: int4(next()?)? as Oid, mode: int4(next()?)? },
            Function::Read => Self::Read { fd: int4(next()?)?, count: int4(next()?)? },
            Function::Seek | Function::SeekWide => {
                let is_wide = function.is_wide();
                let fd = int4(next()?)?;
                let offset = next()?;
                let offset = if is_wide { int8(offset)? } else { i64::from(int4(offset)?) };
                let whence = match int4(next()?)? {
                    0 => Whence::Start,
                    1 => Whence::Place,
                    2 => Whence::End,
                    _ => return None,
                };
                Self::Seek { fd, offset, whence, is_wide }
            }
            Function::Tell | Function::TellWide => {
                Self::Tell { fd: int4(next()?)?, is_wide: function.is_wide() }
            }
            Function::Close => Self::Close { fd: int4(next()?)? },
        };
        (made.arguments().0 == count).then_some(made)
    }

    /// Whether the server reads the object for it, and so locks `pg_largeobject`: not for a read of no bytes.
    pub(super) fn reads(self) -> bool {
        match self {
            Self::Read { count, .. } => count > 0,
            Self::Seek { whence, .. } => whence == Whence::End,
            Self::Open { .. } | Self::Tell { .. } | Self::Close { .. } => false,
        }
    }

    /// Appends the message.
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let (count, values) = self.arguments();
        let mut encoded = (count as u16).to_be_bytes().to_vec();
        encoded.extend_from_slice(&values);
        FunctionCall {
            function: self.function().oid(),
            argument_formats: Formats::of_codes(&1u16.to_be_bytes()),
            arguments: Values::decode(&encoded).unwrap_or_default(),
            result_format: 1,
        }
        .encode(out);
    }

    /// How many arguments it has, and what they are on the wire.
    fn arguments(self) -> (usize, Vec<u8>) {
        let mut out = Vec::with_capacity(32);
        let mut put = |value: &[u8]| {
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            out.extend_from_slice(value);
        };
        let count = match self {
            Self::Open { oid, mode } => {
                put(&oid.to_be_bytes());
                put(&mode.to_be_bytes());
                2
            }
            Self::Read { fd, count } => {
                put(&fd.to_be_bytes());
                put(&count.to_be_bytes());
                2
            }
            Self::Seek { fd, offset, whence, is_wide } => {
                put(&fd.to_be_bytes());
                put(&place_bytes(offset, is_wide));
                put(&(whence as i32).to_be_bytes());
                3
            }
            Self::Tell { fd, .. } | Self::Close { fd } => {
                put(&fd.to_be_bytes());
                1
            }
        };
        (count, out)
    }

    /// How many arguments it has.
    pub(super) fn count(self) -> usize {
        self.arguments().0
    }

    /// The same on another descriptor.
    pub(super) fn on(self, fd: i32) -> Self {
        match self {
            Self::Open { .. } => self,
            Self::Read { count, .. } => Self::Read { fd, count },
            Self::Seek { offset, whence, is_wide, .. } => Self::Seek { fd, offset, whence, is_wide },
            Self::Tell { is_wide, .. } => Self::Tell { fd, is_wide },
            Self::Close { .. } => Self::Close { fd },
        }
    }

    pub(super) fn function(self) -> Function {
        match self {
            Self::Open { .. } => Function::Open,
            Self::Read { .. } => Function::Read,
            Self::Seek { is_wide: true, .. } => Function::SeekWide,
            Self::Seek { .. } => Function::Seek,
            Self::Tell { is_wide: true, .. } => Function::TellWide,
            Self::Tell { .. } => Function::Tell,
            Self::Close { .. } => Function::Close,
        }
    }

    /// The descriptor that it is about; `None` where it makes one.
    pub(crate) fn fd(self) -> Option<i32> {
        match self {
            Self::Open { .. } => None,
            Self::Read { fd, .. } | Self::Seek { fd, .. } | Self::Tell { fd, .. } | Self::Close { fd } => {
                Some(fd)
            }
        }
    }
}

/// Whether a descriptor of this mode reads, and cannot write.
pub(super) fn only_reads(mode: i32) -> bool {
    mode & READS != 0 && mode & WRITES == 0
}

/// A place as a function returns it.
pub(super) fn place_bytes(place: i64, is_wide: bool) -> Vec<u8> {
    match is_wide {
        true => place.to_be_bytes().to_vec(),
        false => (place as i32).to_be_bytes().to_vec(),
    }
}

pub(super) fn int4(value: &[u8]) -> Option<i32> {
    value.try_into().ok().map(i32::from_be_bytes)
}

pub(super) fn int8(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use onetrip_wire::pg::HEADER_BYTES;

    use super::*;

    #[test]
    fn what_is_encoded_is_read_again() {
        let seek = |is_wide| Call::Seek { fd: 3, offset: -7, whence: Whence::End, is_wide };
        for call in [
            Call::Open { oid: 4_000_000_000, mode: READS },
            Call::Read { fd: 0, count: 8192 },
            seek(true),
            seek(false),
            Call::Tell { fd: 1, is_wide: true },
            Call::Tell { fd: 1, is_wide: false },
            Call::Close { fd: 2 },
        ] {
            let mut out = Vec::new();
            call.encode(&mut out);
            assert_eq!(Call::decode(&out[HEADER_BYTES..]), Some(call));
        }
    }

    #[test]
    fn other_calls_and_other_formats_are_not_understood() {
        let mut out = Vec::new();
        Call::Close { fd: 2 }.encode(&mut out);
        let body = &out[HEADER_BYTES..];
        let with = |at: usize, byte: u8| {
            let mut other = body.to_vec();
            other[at] = byte;
            other
        };
        assert!(Call::decode(body).is_some());
        for other in [with(3, 0xbb), with(7, 0), with(body.len() - 1, 0), with(9, 0), body[1..].to_vec()] {
            assert_eq!(Call::decode(&other), None, "{}", other.escape_ascii());
        }
    }

    #[test]
    fn only_a_descriptor_that_cannot_write_reads_a_snapshot() {
        assert!(only_reads(READS));
        for mode in [READS | WRITES, WRITES, 0] {
            assert!(!only_reads(mode), "{mode:x}");
        }
    }
}
