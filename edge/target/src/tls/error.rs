//! TLS failures in libpq's words, each with what to do.

use std::io;
use std::path::PathBuf;

use rustls::CertificateError;
use rustls::pki_types::UnixTime;
use x509_cert::der::DateTime;

use super::verifier::NameMismatch;
use super::words::Words;
use crate::{Host, SslMode};

/// TLS that cannot be set up, or a server that fails its check.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// `verify-ca` or `verify-full` without a root.
    #[error(
        "root certificate file \"{}\" does not exist: provide the file, use the system's trusted roots with {system_roots}, or change {mode} to disable server certificate verification",
        path.display()
    )]
    RootMissing {
        /// The file.
        path: PathBuf,
        /// What asks for the system's roots.
        system_roots: &'static str,
        /// The mode that needs it.
        mode: String,
    },
    /// A default file is needed, and there is no home directory to look for it.
    #[error(
        "could not get home directory to locate certificate files: name them in sslrootcert (or use sslrootcert=system), sslcert and sslkey"
    )]
    NoHome,
    /// A file that is there but cannot be read.
    #[error("could not read {what} \"{}\": check the path and its permissions", path.display())]
    Unreadable {
        /// What the file is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file without anything usable in it.
    #[error("{what} \"{}\" holds nothing usable: {expected}", path.display())]
    Content {
        /// What the file is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
    /// `sslrootcert=system` on a system without trusted roots.
    #[error(
        "the system has no trusted root certificates: install them (Debian: ca-certificates) or name a file in sslrootcert"
    )]
    SystemRoots,
    /// `sslcrldir`, which is OpenSSL's own format.
    #[error("sslcrldir is not supported: put the revocation lists into one PEM file and name it in sslcrl")]
    CrlDirectory,
    /// A client certificate whose key is missing.
    #[error("certificate present, but not private key file \"{}\": name it in sslkey", path.display())]
    ClientKeyMissing {
        /// Where the key was expected.
        path: PathBuf,
    },
    /// A key that others may read.
    #[error(
        "private key file \"{}\" has group or world access: file must have permissions u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root",
        path.display()
    )]
    ClientKeyAccess {
        /// The file.
        path: PathBuf,
    },
    /// A key under a password.
    #[error("private key file \"{}\" is encrypted, which is not supported: decrypt it with `openssl pkey -in FILE -out FILE.plain` and name that in sslkey", path.display())]
    ClientKeyEncrypted {
        /// The file.
        path: PathBuf,
    },
    /// A key that does not fit its certificate.
    #[error("certificate does not match private key file \"{}\"", path.display())]
    ClientKey {
        /// The key's file.
        path: PathBuf,
        /// What rustls says.
        #[source]
        source: rustls::Error,
    },
    /// `ssl_min_protocol_version` and `ssl_max_protocol_version` leave nothing.
    #[error(
        "no TLS version is left: ssl_min_protocol_version and ssl_max_protocol_version must allow TLSv1.2 or TLSv1.3"
    )]
    Versions,
    /// libpq: `weak sslmode … may not be used with sslnegotiation=direct`.
    #[error(
        "weak sslmode \"{sslmode}\" may not be used with sslnegotiation=direct: use require, verify-ca or verify-full"
    )]
    WeakDirect {
        /// The mode that was asked for.
        sslmode: SslMode,
    },
    /// A host that no certificate can name.
    #[error("\"{host}\" cannot stand in a certificate: use another name of the host, or {weaker}")]
    HostName {
        /// The host as it was given.
        host: String,
        /// What does not check the name.
        weaker: &'static str,
    },
    /// The server answered SSLRequest with "no".
    #[error(
        "server {host} does not support SSL, but SSL was required: set {weaker} if the path to it is safe without TLS"
    )]
    NotSupported {
        /// The server.
        host: String,
        /// What does not require it, and the mode that was asked for.
        weaker: String,
    },
    /// The certificate does not pass.
    #[error("{problem}: {advice}")]
    Certificate {
        /// What libpq says, and why.
        problem: String,
        /// What to do.
        advice: String,
    },
    /// The handshake failed for another reason.
    #[error("could not negotiate SSL with {host}: {advice}")]
    Handshake {
        /// The server.
        host: String,
        /// What to do.
        advice: &'static str,
        /// What rustls says.
        #[source]
        source: rustls::Error,
    },
    /// A build without the feature `tls`.
    #[error("this onetrip was built without TLS: build it with the feature \"tls\", which is on by default")]
    LeftOut,
    /// The certificate for clients cannot be made.
    #[error("a certificate for clients cannot be made: {0}; name one with --tls-cert and --tls-key")]
    OwnCertificate(String),
    /// A file of `--tls-cert` or `--tls-key` cannot be used.
    #[error("{}: {reason}; it must be a PEM file", path.display())]
    OwnFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Settings that rustls refuses.
    #[error("TLS cannot be set up")]
    Configuration(#[source] rustls::Error),
}

/// Words a failed handshake.
pub(super) fn explain(host: &Host, words: &Words, roots: Option<&str>, error: rustls::Error) -> TlsError {
    let rustls::Error::InvalidCertificate(reason) = &error else {
        return TlsError::Handshake { host: host.to_string(), advice: words.server, source: error };
    };
    let Words { roots: setting, unchecked, chain_only, other_name, .. } = words;
    let other_root = || {
        format!(
            "name the file with the root certificate of its issuer in {setting}, or use {unchecked} to skip the check"
        )
    };
    let roots = roots.unwrap_or("no root certificates");
    let failed =
        |why: String| format!("SSL error: certificate verify failed: the certificate of {host} {why}");
    let (problem, advice) = match reason {
        CertificateError::Other(other) => match other.0.downcast_ref::<NameMismatch>() {
            Some(mismatch) => (mismatch.to_string(), format!("{other_name}, or use {chain_only}")),
            None => (
                failed(format!("cannot be used: {}", other.0)),
                "issue an X.509 version 3 certificate for the server".to_owned(),
            ),
        },
        CertificateError::UnknownIssuer => {
            (failed(format!("does not lead to a trusted root ({roots})")), other_root())
        }
        CertificateError::BadSignature => (
            failed(format!("is not signed by the root of that name ({roots}), or the server lacks its key")),
            other_root(),
        ),
        CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => (
            failed("is signed by an algorithm that is not accepted".to_owned()),
            "issue one with RSA, ECDSA or Ed25519 and SHA-256 or better".to_owned(),
        ),
        CertificateError::ExpiredContext { not_after, .. } => (
            failed(format!("has expired on {}", date(*not_after))),
            "renew the server's certificate".to_owned(),
        ),
        CertificateError::NotValidYetContext { not_before, .. } => (
            failed(format!("is valid only from {}", date(*not_before))),
            "check the clock of this machine".to_owned(),
        ),
        CertificateError::Revoked => {
            (failed("is revoked".to_owned()), "renew the server's certificate".to_owned())
        }
        CertificateError::UnknownRevocationStatus => (
            failed("is on no revocation list that covers it".to_owned()),
            "put the revocation list of its issuer into the file named in sslcrl".to_owned(),
        ),
        reason => (failed(format!("does not pass: {reason}")), "check the server's certificate".to_owned()),
    };
    TlsError::Certificate { problem, advice }
}

/// A day and time for people.
fn date(time: UnixTime) -> String {
    let duration = std::time::Duration::from_secs(time.as_secs());
    DateTime::from_unix_duration(duration)
        .map_or_else(|_| "an unknown day".to_owned(), |date| date.to_string())
}
