/// What a server answers to SSLRequest: one byte. What comes after it in the same read is not to be trusted
/// (CVE-2021-23222).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsAnswer {
    /// TLS may begin.
    Yes,
    /// The server has no TLS; the connection goes on without.
    No,
    /// The server cannot serve the request, or is too old to know it. The connection is of no more use.
    Error,
}

impl TlsAnswer {
    /// What the byte means; `None` for bytes that no PostgreSQL server sends.
    pub fn of(byte: u8) -> Option<Self> {
        match byte {
            b'S' => Some(Self::Yes),
            b'N' => Some(Self::No),
            b'E' => Some(Self::Error),
            _ => None,
        }
    }
}
