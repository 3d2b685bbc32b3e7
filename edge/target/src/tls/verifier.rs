//! libpq's check of a server certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

use super::{legacy, names};

/// Checks chain and name as far as `sslmode` asks for it.
#[derive(Debug)]
pub(super) struct Verifier {
    /// `None` checks nothing: there is no root certificate file.
    pub(super) trust: Option<Trust>,
    /// `verify-full`.
    pub(super) checks_name: bool,
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

/// What a certificate must lead to.
#[derive(Debug)]
pub(super) struct Trust {
    pub(super) chain: Arc<WebPkiServerVerifier>,
    pub(super) roots: Vec<CertificateDer<'static>>,
    pub(super) has_revocation_lists: bool,
    /// Where the roots come from, for messages.
    pub(super) origin: String,
}

/// libpq: `server certificate for … does not match host name …`.
#[derive(Debug)]
pub(super) struct NameMismatch {
    names: Vec<String>,
    host: String,
}

impl fmt::Display for NameMismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match self.names.as_slice() {
            [] => write!(
                formatter,
                "could not get server's host name from server certificate, wanted \"{host}\""
            ),
            [name] => {
                write!(formatter, "server certificate for \"{name}\" does not match host name \"{host}\"")
            }
            [name, others @ ..] => write!(
                formatter,
                "server certificate for \"{name}\" (and {} other names) does not match host name \"{host}\"",
                others.len()
            ),
        }
    }
}

impl std::error::Error for NameMismatch {}

impl Trust {
    /// Checks the chain; says whether webpki found the name to fit as well.
    fn check_chain(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        algorithms: &WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Result<bool, Error> {
        match self.chain.verify_server_cert(end_entity, intermediates, name, &[], now) {
            Ok(_) => Ok(true),
            // webpki looks at the name last, so the chain is good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(false),
            Err(error @ Error::InvalidCertificate(CertificateError::Other(_)))
                if !self.has_revocation_lists =>
            {
                let decision = legacy::check(end_entity, intermediates, &self.roots, algorithms, now);
                decision.unwrap_or(Err(error)).map(|()| false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Verifies a handshake's signature in one TLS version.
type VerifySignature = fn(
    &[u8],
    &CertificateDer<'_>,
    &DigitallySignedStruct,
    &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error>;

impl Verifier {
    /// Whoever shows a certificate must have its key, unless any certificate would do.
    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
        verify: VerifySignature,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.trust.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        match verify(message, certificate, signed, &self.algorithms) {
            Err(Error::InvalidCertificate(CertificateError::Other(_))) => {
                legacy::verify_signature(message, certificate, signed, &self.algorithms)
            }
            result => result,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trust) = &self.trust {
            let name_fits =
                trust.check_chain(end_entity, intermediates, server_name, &self.algorithms, now)?;
            if self.checks_name && !name_fits {
                names::check(end_entity, server_name).map_err(|names| {
                    let mismatch = NameMismatch { names, host: server_name.to_str().into_owned() };
                    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(mismatch))))
                })?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed, verify_tls12_signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signed, verify_tls13_signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
