use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// How bad an error is; a FATAL one ends the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The statement failed.
    Error,
    /// The session ends.
    Fatal,
}

impl Severity {
    /// The word in the message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        }
    }
}

/// `ErrorResponse` ('E') and `NoticeResponse` ('N'): fields by a letter each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorResponse<'a> {
    fields: &'a [u8],
}

impl<'a> ErrorResponse<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        while reader.u8()? != 0 {
            reader.c_str()?;
        }
        reader.finish().map(|()| Self { fields: body })
    }

    /// All fields in order, as letter and text.
    pub fn fields(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut reader = Reader::new(self.fields);
        std::iter::from_fn(move || match reader.u8() {
            Ok(code) if code != 0 => reader.c_str().ok().map(|text| (code, text)),
            _ => None,
        })
    }

    /// The field with this letter. A peer may leave any of them out, SQLSTATE included.
    pub fn field(&self, code: u8) -> Option<&'a [u8]> {
        self.fields().find(|(letter, _)| *letter == code).map(|(_, text)| text)
    }

    /// The SQLSTATE, where it has its five characters.
    pub fn sqlstate(&self) -> Option<[u8; 5]> {
        self.field(b'C')?.try_into().ok()
    }

    /// Whether the server ends the session with this error.
    pub fn is_fatal(&self) -> bool {
        let severity = self.field(b'V').or_else(|| self.field(b'S'));
        matches!(severity, Some(b"FATAL" | b"PANIC"))
    }

    /// The primary message, empty where the peer sent none.
    pub fn message(&self) -> &'a [u8] {
        self.field(b'M').unwrap_or_default()
    }
}

/// What an ErrorResponse of our own says.
#[derive(Debug, Clone, Copy)]
pub struct ErrorFields<'a> {
    /// Whether the session ends.
    pub severity: Severity,
    /// Five characters, from the manual's appendix "PostgreSQL Error Codes".
    pub sqlstate: &'a str,
    /// What went wrong.
    pub message: &'a str,
    /// What to do about it.
    pub hint: Option<&'a str>,
}

/// Appends an ErrorResponse.
pub fn encode_error(out: &mut Vec<u8>, error: ErrorFields<'_>) {
    frame(out, backend::ERROR_RESPONSE, |out| {
        let severity = error.severity.as_str();
        let fields = [(b'S', severity), (b'V', severity), (b'C', error.sqlstate), (b'M', error.message)];
        for (code, text) in fields.into_iter().chain(error.hint.map(|hint| (b'H', hint))) {
            out.push(code);
            put_c_str(out, text.as_bytes());
        }
        out.push(0);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_error_reads_back() {
        let mut out = Vec::new();
        let error = ErrorFields {
            severity: Severity::Fatal,
            sqlstate: "08006",
            message: "gone",
            hint: Some("look there"),
        };
        encode_error(&mut out, error);
        let decoded = ErrorResponse::decode(&out[5..]).unwrap();
        assert!(decoded.is_fatal());
        assert_eq!(decoded.sqlstate(), Some(*b"08006"));
        assert_eq!(decoded.message(), b"gone");
        assert_eq!(decoded.field(b'H'), Some(&b"look there"[..]));
    }

    #[test]
    fn an_error_without_sqlstate_is_still_an_error() {
        let decoded = ErrorResponse::decode(b"Mgone\0\0").unwrap();
        assert_eq!(decoded.sqlstate(), None);
        assert!(!decoded.is_fatal());
        assert_eq!(ErrorResponse::decode(b"Mgone\0"), Err(WireError::Truncated));
    }
}
