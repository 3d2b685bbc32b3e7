/// Why bytes are not the message they claim to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The body ended inside a field.
    #[error("message ends inside a field")]
    Truncated,
    /// The body goes on after its last field.
    #[error("message has {0} bytes after its last field")]
    Trailing(usize),
    /// A string has no closing NUL.
    #[error("string without closing NUL")]
    UnterminatedString,
    /// A count or length field is negative where it may not be.
    #[error("negative count or length")]
    NegativeLength,
    /// A field holds a value that the protocol does not define.
    #[error("field has undefined value {0}")]
    UndefinedValue(i32),
    /// A length-encoded integer takes more bytes than its value needs.
    #[error("length-encoded integer {0} is written with more bytes than it needs")]
    OverlongInteger(u64),
    /// The length field of a frame is below its own size.
    #[error("invalid message length {0}")]
    FrameTooShort(i32),
    /// The length field of a frame is above what the reader accepts.
    #[error("message of {length} bytes is longer than the {limit} accepted here")]
    FrameTooLong {
        /// Length field as sent, in bytes.
        length: u32,
        /// The reader's limit, in bytes.
        limit: u32,
    },
    /// The startup packet asks for a protocol major version that does not exist.
    #[error("unsupported frontend protocol {major}.{minor}")]
    UnsupportedProtocol {
        /// Major version asked for.
        major: u16,
        /// Minor version asked for.
        minor: u16,
    },
}
