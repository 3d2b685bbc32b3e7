//! One direction of TLS 1.3 made by hand, with the secret that opens it.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf;

pub const CLIENT_RANDOM: [u8; 32] = [0xc1; 32];
const CLIENT_SECRET: [u8; 32] = [0x11; 32];
const SERVER_SECRET: [u8; 32] = [0x22; 32];
const DATA: u8 = 23;

/// Seals the records of one side, after its handshake.
pub struct Sealer {
    key: LessSafeKey,
    iv: [u8; 12],
    number: u64,
}

impl Sealer {
    pub fn client() -> Self {
        Self::new(&CLIENT_SECRET)
    }

    pub fn server() -> Self {
        Self::new(&SERVER_SECRET)
    }

    fn new(secret: &[u8]) -> Self {
        let key = UnboundKey::new(&AES_128_GCM, &expand(secret, b"key", 16)).expect("a key");
        let iv = expand(secret, b"iv", 12).try_into().expect("twelve bytes");
        Self { key: LessSafeKey::new(key), iv, number: 0 }
    }

    /// A record that carries these bytes.
    pub fn record(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.number.to_be_bytes()) {
            *byte ^= number;
        }
        self.number += 1;
        let mut body = [plain, &[DATA]].concat();
        let length = (body.len() as u16 + 16).to_be_bytes();
        let header = [DATA, 3, 3, length[0], length[1]];
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(header), &mut body).expect("it seals");
        [&header[..], &body].concat()
    }
}

/// Both hellos, as records.
pub fn hellos() -> [Vec<u8>; 2] {
    let handshake = |kind: u8, body: &[u8]| {
        let message = [&[kind, 0, 0, body.len() as u8], body].concat();
        [&[22, 3, 3, 0, message.len() as u8][..], &message].concat()
    };
    let client = [&[3, 3][..], &CLIENT_RANDOM, &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat();
    let server = [&[3, 3][..], &[0x5e; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
    [handshake(1, &client), handshake(2, &server)]
}

/// The key log of the session.
pub fn key_log() -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let random = hex(&CLIENT_RANDOM);
    format!(
        "CLIENT_TRAFFIC_SECRET_0 {random} {}\nSERVER_TRAFFIC_SECRET_0 {random} {}\n",
        hex(&CLIENT_SECRET),
        hex(&SERVER_SECRET)
    )
}

/// HKDF-Expand-Label without a context (RFC 8446, 7.1).
fn expand(secret: &[u8], label: &[u8], length: usize) -> Vec<u8> {
    struct Length(usize);
    impl hkdf::KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let info = [&[0, length as u8, 6 + label.len() as u8][..], b"tls13 ", label, &[0]];
    let mut out = vec![0; length];
    let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
    secret.expand(&info, Length(length)).expect("a length").fill(&mut out).expect("that length");
    out
}
