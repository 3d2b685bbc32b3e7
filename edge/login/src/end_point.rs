//! `tls-server-end-point` (RFC 5929): the hash of the server's certificate that SCRAM binds itself to.

use sha2::{Digest, Sha256, Sha384, Sha512};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::oid::db::{rfc5912, rfc8410};

/// The hash, by the algorithm that the certificate is signed with; MD5 and SHA-1 give way to SHA-256. `None` for
/// signatures whose hash the RFC does not tell.
pub(crate) fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = Certificate::from_der(certificate).ok()?.signature_algorithm.oid;
    let is = |list: &[ObjectIdentifier]| list.contains(&algorithm);
    if is(&[rfc8410::ID_ED_25519, rfc5912::ID_RSASSA_PSS]) {
        None
    } else if is(&[rfc5912::SHA_384_WITH_RSA_ENCRYPTION, rfc5912::ECDSA_WITH_SHA_384]) {
        Some(Sha384::digest(certificate).to_vec())
    } else if is(&[rfc5912::SHA_512_WITH_RSA_ENCRYPTION, rfc5912::ECDSA_WITH_SHA_512]) {
        Some(Sha512::digest(certificate).to_vec())
    } else if is(&SHA_256) {
        Some(Sha256::digest(certificate).to_vec())
    } else {
        None
    }
}

/// SHA-256, and what counts as it.
const SHA_256: [ObjectIdentifier; 4] = [
    rfc5912::SHA_256_WITH_RSA_ENCRYPTION,
    rfc5912::ECDSA_WITH_SHA_256,
    rfc5912::SHA_1_WITH_RSA_ENCRYPTION,
    rfc5912::MD_5_WITH_RSA_ENCRYPTION,
];
