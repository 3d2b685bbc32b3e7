//! libpq's `sslmode` words.

use std::fmt;
use std::str::FromStr;

use crate::ConninfoError;

/// How much TLS a connection asks for, by libpq's words, weakest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SslMode {
    /// Never TLS.
    Disable,
    /// Plain first; TLS if the server refuses that.
    Allow,
    /// TLS first; plain if the server has none.
    #[default]
    Prefer,
    /// TLS or nothing; the certificate is checked only where a root certificate file exists.
    Require,
    /// TLS, and the certificate must lead to a trusted root.
    VerifyCa,
    /// TLS, a trusted root, and a certificate that names the host.
    VerifyFull,
}

impl SslMode {
    /// Every mode, weakest first.
    pub const ALL: [Self; 6] =
        [Self::Disable, Self::Allow, Self::Prefer, Self::Require, Self::VerifyCa, Self::VerifyFull];

    /// The word libpq uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// Whether a plain connection is refused.
    pub fn requires_tls(self) -> bool {
        self >= Self::Require
    }

    /// Whether a root certificate must be there.
    pub fn requires_root(self) -> bool {
        self >= Self::VerifyCa
    }
}

impl fmt::Display for SslMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for SslMode {
    type Err = ConninfoError;

    /// Reads libpq's words, and node-postgres's `no-verify`, which is `require`.
    fn from_str(word: &str) -> Result<Self, ConninfoError> {
        if word == "no-verify" {
            return Ok(Self::Require);
        }
        Self::ALL.into_iter().find(|mode| mode.as_str() == word).ok_or(ConninfoError::Value {
            keyword: "sslmode",
            expected: "disable, allow, prefer, require, verify-ca or verify-full",
        })
    }
}
