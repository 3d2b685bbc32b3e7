/// Bytes that are no capture, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: {problem}")]
pub struct FileError {
    /// Place of the record in the (uncompressed) file.
    pub offset: u64,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// What is wrong with a capture file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// Not one byte.
    #[error("the file is empty")]
    Empty,
    /// Neither pcap nor pcapng.
    #[error("neither a pcap nor a pcapng file begins with {0:02x?}; write one with tcpdump -w FILE")]
    NotACapture([u8; 4]),
    /// The last record is not whole.
    #[error("the file ends inside a record, {bytes} bytes after its beginning")]
    Cut {
        /// Bytes of it that are there.
        bytes: usize,
    },
    /// A record that claims more than any packet has.
    #[error("a record claims {bytes} bytes, more than any packet has")]
    TooLong {
        /// What it claims.
        bytes: u64,
    },
    /// Nothing but zeros.
    #[error("a record of zeros: the file is sparse here, or its writer was stopped")]
    Zeros,
    /// Other damage.
    #[error("{0}")]
    Damaged(&'static str),
}

impl FileProblem {
    /// Whether what was read before is all that could be expected: a capture that was stopped while it was written.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::Cut { .. })
    }
}
