//! How a password answers a challenge.
//!
//! Source: MySQL Internals, "Secure Password Authentication", "Caching SHA-2 Pluggable Authentication" and "Clear text
//! client plugin".

use aws_lc_rs::digest::{Digest, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;

/// Bytes of a challenge; what may follow is a closing NUL.
const CHALLENGE_BYTES: usize = 20;

/// A way to log in that is spoken here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The only one of MySQL 5.6, and the usual one of MariaDB.
    Native,
    /// MySQL 8's; not verified on 8.x.
    CachingSha2,
    /// The password as it is, under TLS only.
    Clear,
}

impl Way {
    const ALL: [Self; 3] = [Self::Native, Self::CachingSha2, Self::Clear];

    pub(super) fn of(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name().as_bytes() == name)
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Clear => "mysql_clear_password",
        }
    }

    /// The answer to a challenge.
    pub(super) fn answer(self, password: &[u8], challenge: &[u8]) -> Vec<u8> {
        let challenge = &challenge[..challenge.len().min(CHALLENGE_BYTES)];
        match self {
            Self::Clear => as_it_is(password),
            Self::Native | Self::CachingSha2 if password.is_empty() => Vec::new(),
            Self::Native => {
                let sha1 = |bytes: &[u8]| digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
                let once = sha1(password);
                let mixed = sha1(&[challenge, sha1(once.as_ref()).as_ref()].concat());
                different(&once, &mixed)
            }
            Self::CachingSha2 => {
                let sha256 = |bytes: &[u8]| digest(&SHA256, bytes);
                let once = sha256(password);
                let mixed = sha256(&[sha256(once.as_ref()).as_ref(), challenge].concat());
                different(&once, &mixed)
            }
        }
    }
}

/// The password with the NUL that ends it.
pub(super) fn as_it_is(password: &[u8]) -> Vec<u8> {
    [password, &[0]].concat()
}

/// The password for the owner of this public key, in PEM; `None` if the key cannot be used.
pub(super) fn encrypted(password: &[u8], challenge: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let challenge = &challenge[..challenge.len().min(CHALLENGE_BYTES)];
    let key = SubjectPublicKeyInfoDer::from_pem_slice(key).ok()?;
    let key = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&key).ok()?).ok()?;
    let mixed: Vec<u8> =
        as_it_is(password).iter().zip(challenge.iter().cycle()).map(|(one, other)| one ^ other).collect();
    let mut encrypted = vec![0; key.ciphertext_size()];
    let length = key.encrypt(&OAEP_SHA1_MGF1SHA1, &mixed, &mut encrypted, None).ok()?.len();
    encrypted.truncate(length);
    Some(encrypted)
}

fn different(one: &Digest, other: &Digest) -> Vec<u8> {
    one.as_ref().iter().zip(other.as_ref()).map(|(one, other)| one ^ other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What Python's hashlib makes of the formulas.
    #[test]
    fn a_challenge_is_answered_as_the_pages_say() {
        let challenge: Vec<u8> = (1..=20).chain([0]).collect();
        let answer = |way: Way| hex(&way.answer(b"onetrip-secret", &challenge));
        assert_eq!(answer(Way::Native), "645438b4bd1887c9182cc1030dd7fa6941585113");
        assert_eq!(
            answer(Way::CachingSha2),
            "8bd8866cc65fb32dd1a8383237fef38f8d5e5de3e95f1310d5a2fe8cd3d3b9d0"
        );
        assert_eq!(Way::Clear.answer(b"secret", &challenge), b"secret\0");
        assert_eq!(Way::Native.answer(b"", &challenge), b"");
    }

    #[test]
    fn what_is_no_key_encrypts_nothing() {
        for key in [&b""[..], b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"] {
            assert_eq!(encrypted(b"secret", &[7; 20], key), None);
        }
    }
}
