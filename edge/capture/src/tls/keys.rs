//! From a session's secrets to what opens its records.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, hmac};

const IV_BYTES: usize = 12;
/// The part of a GCM nonce that TLS 1.2 derives; the other is in the record.
const SALT_BYTES: usize = 4;
const EXPLICIT_BYTES: usize = 8;

/// A cipher suite that rustls speaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suite {
    aead: &'static aead::Algorithm,
    /// The hash of its key derivation.
    hash: Hash,
    is_gcm: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha384,
}

impl Suite {
    /// The suite with this number, if it belongs to the version.
    pub(super) fn of(number: u16, is_13: bool) -> Option<Self> {
        let (aead, hash, is_gcm) = match (number, is_13) {
            (0x1301, true) | (0xc02b | 0xc02f, false) => (&aead::AES_128_GCM, Hash::Sha256, true),
            (0x1302, true) | (0xc02c | 0xc030, false) => (&aead::AES_256_GCM, Hash::Sha384, true),
            (0x1303, true) | (0xcca8 | 0xcca9, false) => (&aead::CHACHA20_POLY1305, Hash::Sha256, false),
            _ => return None,
        };
        Some(Self { aead, hash, is_gcm })
    }

    /// What opens the records of a side whose secret this is (TLS 1.3).
    pub(super) fn opener_13(self, secret: &[u8]) -> Option<Opener> {
        let mut key = vec![0; self.aead.key_len()];
        let mut iv = [0; IV_BYTES];
        self.expand_label(secret, b"key", &mut key)?;
        self.expand_label(secret, b"iv", &mut iv)?;
        let key = LessSafeKey::new(UnboundKey::new(self.aead, &key).ok()?);
        Some(Opener { key, iv, form: Form::Tls13 })
    }

    /// The secret after a KeyUpdate.
    pub(super) fn next_secret(self, secret: &[u8]) -> Option<Box<[u8]>> {
        let mut next = vec![0; secret.len()];
        self.expand_label(secret, b"traffic upd", &mut next)?;
        Some(next.into())
    }

    /// What opens the records of client and server (TLS 1.2).
    pub(super) fn openers_12(
        self,
        master: &[u8],
        client: &[u8; 32],
        server: &[u8; 32],
    ) -> Option<[Opener; 2]> {
        let (key_bytes, iv_bytes) = (self.aead.key_len(), if self.is_gcm { SALT_BYTES } else { IV_BYTES });
        let seed = [&b"key expansion"[..], server, client].concat();
        let block = self.expand_12(master, &seed, 2 * (key_bytes + iv_bytes));
        let (keys, ivs) = block.split_at(2 * key_bytes);
        let opener = |side: usize| {
            let key = &keys[side * key_bytes..][..key_bytes];
            let mut iv = [0; IV_BYTES];
            iv[..iv_bytes].copy_from_slice(&ivs[side * iv_bytes..][..iv_bytes]);
            let key = LessSafeKey::new(UnboundKey::new(self.aead, key).ok()?);
            let form = if self.is_gcm { Form::Gcm12 } else { Form::ChaCha12 };
            Some(Opener { key, iv, form })
        };
        Some([opener(0)?, opener(1)?])
    }

    /// HKDF-Expand-Label without a context (RFC 8446, 7.1).
    fn expand_label(self, secret: &[u8], label: &[u8], out: &mut [u8]) -> Option<()> {
        struct Length(usize);
        impl hkdf::KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }
        let hash = match self.hash {
            Hash::Sha256 => hkdf::HKDF_SHA256,
            Hash::Sha384 => hkdf::HKDF_SHA384,
        };
        let length = u16::try_from(out.len()).ok()?.to_be_bytes();
        let label_bytes = [u8::try_from(6 + label.len()).ok()?];
        let info = [&length[..], &label_bytes, b"tls13 ", label, &[0]];
        hkdf::Prk::new_less_safe(hash, secret).expand(&info, Length(out.len())).ok()?.fill(out).ok()
    }

    /// The first bytes of `P_hash` (RFC 5246, 5).
    fn expand_12(self, secret: &[u8], seed: &[u8], length: usize) -> Vec<u8> {
        let hash = match self.hash {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha384 => hmac::HMAC_SHA384,
        };
        let key = hmac::Key::new(hash, secret);
        let mut out = Vec::new();
        let mut link = hmac::sign(&key, seed);
        while out.len() < length {
            out.extend_from_slice(hmac::sign(&key, &[link.as_ref(), seed].concat()).as_ref());
            link = hmac::sign(&key, link.as_ref());
        }
        out.truncate(length);
        out
    }
}

/// Opens records of one side.
pub(super) struct Opener {
    key: LessSafeKey,
    iv: [u8; IV_BYTES],
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Tls13,
    Gcm12,
    ChaCha12,
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("form", &self.form).finish_non_exhaustive()
    }
}

impl Opener {
    /// Opens the record with this number: its type and content, in `plain`. `None` where it is not this record.
    pub(super) fn open(&self, number: u64, header: [u8; 5], body: &[u8], plain: &mut Vec<u8>) -> Option<u8> {
        let mut nonce = self.iv;
        let sealed = match self.form {
            Form::Gcm12 => {
                let (explicit, sealed) = body.split_at_checked(EXPLICIT_BYTES)?;
                nonce[SALT_BYTES..].copy_from_slice(explicit);
                sealed
            }
            Form::Tls13 | Form::ChaCha12 => {
                for (byte, number) in nonce[IV_BYTES - 8..].iter_mut().zip(number.to_be_bytes()) {
                    *byte ^= number;
                }
                body
            }
        };
        let content_bytes = sealed.len().checked_sub(self.key.algorithm().tag_len())?;
        plain.clear();
        plain.extend_from_slice(sealed);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = if self.form == Form::Tls13 {
            self.key.open_in_place(nonce, Aad::from(header), plain)
        } else {
            let length = u16::try_from(content_bytes).ok()?.to_be_bytes();
            let mut bound = [0; 13];
            bound[..8].copy_from_slice(&number.to_be_bytes());
            bound[8..11].copy_from_slice(&header[..3]);
            bound[11..].copy_from_slice(&length);
            self.key.open_in_place(nonce, Aad::from(bound), plain)
        };
        opened.ok()?;
        plain.truncate(content_bytes);
        if self.form != Form::Tls13 {
            return Some(header[0]);
        }
        // The content, its type, then padding.
        let end = plain.iter().rposition(|byte| *byte != 0)?;
        let kind = plain[end];
        plain.truncate(end);
        Some(kind)
    }
}
