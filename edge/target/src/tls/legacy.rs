//! Server certificates that OpenSSL, and so libpq, accepts and webpki refuses for their form. One kind stands itself in
//! the root file (self-signed with the CA mark, as `openssl req -x509` makes it). The other is X.509 version 1 signed
//! directly by a root (as the recipe in PostgreSQL's manual makes it).

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error};
use x509_cert::Certificate;
use x509_cert::certificate::Version;
use x509_cert::der::{Decode, Encode};
use x509_cert::spki::AlgorithmIdentifierOwned;

/// Decides about a certificate of one of these forms; `None` for any other.
pub(super) fn check(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    roots: &[CertificateDer<'_>],
    algorithms: &WebPkiSupportedAlgorithms,
    now: UnixTime,
) -> Option<Result<(), Error>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let body = &parsed.tbs_certificate;
    let is_trusted = if body.issuer == body.subject {
        roots.contains(certificate)
    } else if body.version == Version::V1 {
        let is_signed = roots.iter().any(|root| is_signed_by(&parsed, root, algorithms));
        if !is_signed && !intermediates.is_empty() {
            return None; // perhaps signed by one of them, which is not looked into
        }
        is_signed
    } else {
        return None;
    };
    let unknown = Error::InvalidCertificate(CertificateError::UnknownIssuer);
    Some(if is_trusted { check_time(&parsed, now) } else { Err(unknown) })
}

/// Verifies the handshake's signature with the key of a certificate that webpki does not parse. What the signature
/// must look like has been checked by then: rustls accepts only schemes that it offered.
pub(super) fn verify_signature(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let parsed = Certificate::from_der(certificate)
        .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
    let key = &parsed.tbs_certificate.subject_public_key_info;
    let key_algorithm = identifier(&key.algorithm);
    let offered = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let is_good = offered.flat_map(|(_, algorithms)| algorithms.iter()).any(|algorithm| {
        Some(algorithm.public_key_alg_id().as_ref()) == key_algorithm.as_deref()
            && algorithm
                .verify_signature(key.subject_public_key.raw_bytes(), message, signed.signature())
                .is_ok()
    });
    if is_good {
        Ok(HandshakeSignatureValid::assertion())
    } else {
        Err(Error::InvalidCertificate(CertificateError::BadSignature))
    }
}

fn is_signed_by(
    certificate: &Certificate,
    root: &CertificateDer<'_>,
    algorithms: &WebPkiSupportedAlgorithms,
) -> bool {
    let Ok(root) = Certificate::from_der(root) else { return false };
    let issuer = &root.tbs_certificate;
    if issuer.subject != certificate.tbs_certificate.issuer {
        return false;
    }
    let key = &issuer.subject_public_key_info;
    let algorithm = (identifier(&key.algorithm), identifier(&certificate.signature_algorithm));
    let (Some(key_algorithm), Some(signature_algorithm)) = algorithm else { return false };
    let Ok(message) = certificate.tbs_certificate.to_der() else { return false };
    algorithms.all.iter().any(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key_algorithm
            && algorithm.signature_alg_id().as_ref() == signature_algorithm
            && algorithm
                .verify_signature(
                    key.subject_public_key.raw_bytes(),
                    &message,
                    certificate.signature.raw_bytes(),
                )
                .is_ok()
    })
}

/// What stands inside an algorithm identifier's sequence, which is how webpki compares them.
fn identifier(algorithm: &AlgorithmIdentifierOwned) -> Option<Vec<u8>> {
    algorithm.to_der().ok().and_then(|der| der.get(2..).map(<[u8]>::to_vec))
}

fn check_time(certificate: &Certificate, now: UnixTime) -> Result<(), Error> {
    let time = |time: x509_cert::time::Time| UnixTime::since_unix_epoch(time.to_unix_duration());
    let validity = &certificate.tbs_certificate.validity;
    let (not_before, not_after) = (time(validity.not_before), time(validity.not_after));
    let error = if now.as_secs() < not_before.as_secs() {
        CertificateError::NotValidYetContext { time: now, not_before }
    } else if now.as_secs() > not_after.as_secs() {
        CertificateError::ExpiredContext { time: now, not_after }
    } else {
        return Ok(());
    };
    Err(Error::InvalidCertificate(error))
}
