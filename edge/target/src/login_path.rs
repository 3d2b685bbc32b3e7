//! `.mylogin.cnf`, which `mysql_config_editor` writes: an option file, obfuscated so that nobody reads it over a shoulder.
//!
//! Source: MySQL Reference Manual, "mysql_config_editor". An unused word and a key of 20 bytes, which is folded into 16, come
//! first. Then come lines, each a length of four bytes and as many bytes of AES-128 in ECB mode.

#[cfg(feature = "tls")]
use aws_lc_rs::cipher::{AES_128, DecryptionContext, PaddedBlockDecryptingKey, UnboundCipherKey};

#[cfg(feature = "tls")]
const UNUSED_BYTES: usize = 4;
#[cfg(feature = "tls")]
const KEY_BYTES: usize = 20;
#[cfg(feature = "tls")]
const AES_KEY_BYTES: usize = 16;

/// Without a cryptographic library it cannot be read.
#[cfg(not(feature = "tls"))]
pub(crate) fn decode(_: &[u8]) -> Option<String> {
    None
}

/// The text of the file; `None` if it is not one.
#[cfg(feature = "tls")]
pub(crate) fn decode(bytes: &[u8]) -> Option<String> {
    let (folded, mut rest) = bytes.get(UNUSED_BYTES..)?.split_at_checked(KEY_BYTES)?;
    let mut key = [0; AES_KEY_BYTES];
    for (place, byte) in folded.iter().enumerate() {
        key[place % AES_KEY_BYTES] ^= byte;
    }
    let key = UnboundCipherKey::new(&AES_128, &key).ok()?;
    let key = PaddedBlockDecryptingKey::ecb_pkcs7(key).ok()?;
    let mut text = String::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (line, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let mut line = line.to_vec();
        let plain = key.decrypt(&mut line, DecryptionContext::None).ok()?;
        text.push_str(&String::from_utf8_lossy(plain));
        rest = after;
    }
    Some(text)
}

#[cfg(all(test, feature = "tls"))]
pub(crate) mod tests {
    use super::*;
    use aws_lc_rs::cipher::PaddedBlockEncryptingKey;

    /// A file as the editor writes it.
    pub(crate) fn encode(lines: &[&str]) -> Vec<u8> {
        let folded: Vec<u8> = (1..=20).collect();
        let mut key = [0; AES_KEY_BYTES];
        folded.iter().enumerate().for_each(|(place, byte)| key[place % AES_KEY_BYTES] ^= byte);
        let key = UnboundCipherKey::new(&AES_128, &key).unwrap();
        let key = PaddedBlockEncryptingKey::ecb_pkcs7(key).unwrap();
        let mut file = [vec![0; UNUSED_BYTES], folded].concat();
        for line in lines {
            let mut sealed = line.as_bytes().to_vec();
            key.encrypt(&mut sealed).unwrap();
            file.extend_from_slice(&(sealed.len() as u32).to_le_bytes());
            file.extend_from_slice(&sealed);
        }
        file
    }

    #[test]
    fn a_file_as_the_editor_writes_it_is_read() {
        let file = encode(&["[client]\n", "host = \"db\"\n"]);
        assert_eq!(decode(&file).as_deref(), Some("[client]\nhost = \"db\"\n"));
        for cut in 0..file.len() {
            let _ = decode(&file[..cut]);
        }
        assert_eq!(decode(b"[client]\nhost=db\nuser=nobody"), None);
    }
}
