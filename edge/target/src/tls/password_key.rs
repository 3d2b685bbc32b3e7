//! A key pair of RSA, under which a password can be sent where there is no TLS.

use std::fmt;

#[cfg(feature = "tls")]
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
#[cfg(feature = "tls")]
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
#[cfg(feature = "tls")]
use x509_cert::der::pem::{LineEnding, encode_string};

/// A key pair; the private half stays in memory.
pub struct PasswordKey {
    public_pem: String,
    #[cfg(feature = "tls")]
    private: OaepPrivateDecryptingKey,
}

impl PasswordKey {
    /// Makes one of 2048 bits, which takes a while; `None` if it cannot be made, or without the feature `tls`.
    pub fn generate() -> Option<Self> {
        #[cfg(feature = "tls")]
        {
            let key = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
            let public: PublicKeyX509Der<'_> = key.public_key().as_der().ok()?;
            let public_pem = encode_string("PUBLIC KEY", LineEnding::LF, public.as_ref()).ok()?;
            Some(Self { public_pem, private: OaepPrivateDecryptingKey::new(key).ok()? })
        }
        #[cfg(not(feature = "tls"))]
        None
    }

    /// The public key in PEM form.
    pub fn public_pem(&self) -> &[u8] {
        self.public_pem.as_bytes()
    }

    /// What was encrypted with the public key, by OAEP with SHA-1; `None` for anything else.
    #[cfg(feature = "tls")]
    pub fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        let mut room = vec![0; self.private.min_output_size()];
        let clear = self.private.decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut room, None).ok()?;
        Some(clear.to_vec())
    }

    /// There is no key without the feature `tls`.
    #[cfg(not(feature = "tls"))]
    pub fn decrypt(&self, _encrypted: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

impl fmt::Debug for PasswordKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(crate::REDACTED)
    }
}
