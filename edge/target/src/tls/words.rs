//! What settings of TLS are called, for messages: libpq's words, or those of MySQL's client.

use std::path::PathBuf;

use super::TlsError;
use crate::{Host, Protocol, SslMode};

/// The words of one protocol.
#[derive(Debug)]
pub(super) struct Words {
    /// The setting of the trusted roots.
    pub(super) roots: &'static str,
    /// What uses those of the system.
    pub(super) system_roots: &'static str,
    /// What checks the chain alone.
    pub(super) chain_only: &'static str,
    /// What checks nothing.
    pub(super) unchecked: &'static str,
    /// How else to name the host.
    pub(super) other_name: &'static str,
    /// What else the server has to be.
    pub(super) server: &'static str,
    /// The setting of the mode, and whether its words are MySQL's.
    mode: &'static str,
    is_mysql: bool,
}

const LIBPQ: Words = Words {
    roots: "sslrootcert",
    system_roots: "sslrootcert=system",
    chain_only: "sslmode=verify-ca",
    unchecked: "sslmode=require without a root certificate file",
    other_name: "connect by a name that is in the certificate (hostaddr can give the address)",
    server: "check that it is a PostgreSQL server with TLS 1.2 or newer",
    mode: "sslmode",
    is_mysql: false,
};
const MYSQL: Words = Words {
    roots: "ssl-ca",
    system_roots: "no ssl-ca",
    chain_only: "ssl-mode=VERIFY_CA",
    unchecked: "ssl-mode=REQUIRED without ssl-ca",
    other_name: "connect by a name that is in the certificate",
    server: "check that it has TLS 1.2 or newer. Set ssl-mode=DISABLED if the path to it is safe without TLS",
    mode: "ssl-mode",
    is_mysql: true,
};

impl Words {
    pub(super) fn of(protocol: Protocol) -> &'static Self {
        match protocol {
            Protocol::Postgres => &LIBPQ,
            Protocol::Mysql => &MYSQL,
        }
    }

    /// A server that has no TLS.
    pub(super) fn not_supported(&self, host: &Host, sslmode: SslMode) -> TlsError {
        let (mode, prefer, now) = (self.mode, self.word(SslMode::Prefer), self.word(sslmode));
        let weaker = format!("{mode}={prefer} (now {now})");
        TlsError::NotSupported { host: host.to_string(), weaker }
    }

    /// A file of trusted roots that is not there.
    pub(super) fn root_missing(&self, path: PathBuf, sslmode: SslMode) -> TlsError {
        let mode = format!("{} (now {})", self.mode, self.word(sslmode));
        TlsError::RootMissing { path, system_roots: self.system_roots, mode }
    }

    fn word(&self, sslmode: SslMode) -> &'static str {
        match sslmode {
            mode if !self.is_mysql => mode.as_str(),
            SslMode::Disable => "DISABLED",
            SslMode::Allow | SslMode::Prefer => "PREFERRED",
            SslMode::Require => "REQUIRED",
            SslMode::VerifyCa => "VERIFY_CA",
            SslMode::VerifyFull => "VERIFY_IDENTITY",
        }
    }
}
