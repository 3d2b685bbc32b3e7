//! SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677), without channel binding.

use std::collections::HashMap;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::options::User;

/// PostgreSQL's default number of rounds.
const ITERATIONS: u32 = 4096;
const KEY_BYTES: usize = 32;

type Key = [u8; KEY_BYTES];

/// What the server keeps instead of passwords.
pub(crate) struct Secrets {
    by_user: HashMap<String, Secret>,
    /// Stands in for a user that does not exist, so that names cannot be guessed from the answers.
    nobody: Secret,
}

#[derive(Clone)]
struct Secret {
    salt: [u8; 16],
    stored_key: Key,
    server_key: Key,
}

impl Secrets {
    pub(super) fn new(users: &[User]) -> io::Result<Self> {
        let mut by_user = HashMap::new();
        for user in users {
            by_user.insert(user.name.clone(), Secret::new(&user.password, random()?));
        }
        Ok(Self { by_user, nobody: Secret { salt: random()?, stored_key: random()?, server_key: random()? } })
    }
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

impl Secret {
    fn new(password: &str, salt: [u8; 16]) -> Self {
        let salted = salted_password(password.as_bytes(), &salt, ITERATIONS);
        let client_key = hmac(&salted, &[b"Client Key"]);
        Self {
            salt,
            stored_key: Sha256::digest(client_key).into(),
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    // A key of any length is accepted, see `Hmac::new_from_slice`; the zero key can never be reached.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; KEY_BYTES] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// `Hi()` of RFC 5802: PBKDF2 with one block.
fn salted_password(password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let mut block = hmac(password, &[salt, &1u32.to_be_bytes()]);
    let mut result = block;
    for _ in 1..iterations {
        block = hmac(password, &[&block]);
        xor(&mut result, &block);
    }
    result
}

fn xor(left: &mut Key, right: &Key) {
    left.iter_mut().zip(right).for_each(|(left, right)| *left ^= right);
}

/// An exchange after the client's first message.
pub(super) struct Exchange {
    secret: Secret,
    is_known_user: bool,
    gs2_header: String,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

/// Why an exchange ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The message is not SCRAM, or asks for what is not offered.
    Malformed,
    /// Wrong user or password.
    Denied,
}

impl Exchange {
    /// Reads the client's first message; the startup packet names the user.
    pub(super) fn start(
        secrets: &Secrets,
        user: &str,
        message: &[u8],
        server_nonce: &str,
    ) -> Result<Self, Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| Refusal::Malformed)?;
        let mut parts = message.splitn(3, ',');
        let (flag, identity, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag @ ("n" | "y")), Some(identity), Some(bare)) = (flag, identity, bare) else {
            return Err(Refusal::Malformed);
        };
        let nonce = bare.split(',').find_map(|part| part.strip_prefix("r=")).ok_or(Refusal::Malformed)?;
        let is_printable = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_printable || !bare.starts_with("n=") {
            return Err(Refusal::Malformed);
        }
        let known = secrets.by_user.get(user);
        let secret = known.unwrap_or(&secrets.nobody).clone();
        let nonce = format!("{nonce}{server_nonce}");
        Ok(Self {
            server_first: format!("r={nonce},s={},i={ITERATIONS}", BASE64.encode(secret.salt)),
            is_known_user: known.is_some(),
            gs2_header: format!("{flag},{identity},"),
            client_first_bare: bare.to_owned(),
            secret,
            nonce,
        })
    }

    /// A fresh nonce of the server.
    pub(super) fn nonce() -> io::Result<String> {
        Ok(BASE64.encode(random::<18>()?))
    }

    /// What the server answers first.
    pub(super) fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Checks the client's proof; gives the server's own.
    pub(super) fn finish(&self, message: &[u8]) -> Result<String, Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| Refusal::Malformed)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(Refusal::Malformed)?;
        let mut parts = without_proof.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c=")).ok_or(Refusal::Malformed)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r=")).ok_or(Refusal::Malformed)?;
        if binding != BASE64.encode(&self.gs2_header) || nonce != self.nonce {
            return Err(Refusal::Malformed);
        }
        let proof = BASE64.decode(proof).map_err(|_| Refusal::Malformed)?;
        let mut client_key: Key = proof.try_into().map_err(|_| Refusal::Malformed)?;
        let signed: [&[u8]; 5] = [
            self.client_first_bare.as_bytes(),
            b",",
            self.server_first.as_bytes(),
            b",",
            without_proof.as_bytes(),
        ];
        xor(&mut client_key, &hmac(&self.secret.stored_key, &signed));
        let found: Key = Sha256::digest(client_key).into();
        // Both are digests: comparing them in variable time tells nothing of the keys.
        if found != self.secret.stored_key || !self.is_known_user {
            return Err(Refusal::Denied);
        }
        Ok(format!("v={}", BASE64.encode(hmac(&self.secret.server_key, &signed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard_is_accepted_and_answered() {
        let mut secrets = Secrets::new(&[]).unwrap();
        let salt: [u8; 16] = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap().try_into().unwrap();
        secrets.by_user.insert("user".to_owned(), Secret::new("pencil", salt));
        let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let exchange = Exchange::start(&secrets, "user", first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0").unwrap();
        assert_eq!(
            exchange.server_first(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let head = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let last = format!("{head},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let answer = exchange.finish(last.as_bytes());
        assert_eq!(answer.as_deref(), Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        let forged = format!("{head},p={}", BASE64.encode([7; 32]));
        assert_eq!(exchange.finish(forged.as_bytes()), Err(Refusal::Denied));
        assert_eq!(exchange.finish(b"c=biws,r=other,p=AA=="), Err(Refusal::Malformed));
    }

    #[test]
    fn unknown_users_and_channel_binding_are_refused() {
        let secrets = Secrets::new(&[]).unwrap();
        assert!(Exchange::start(&secrets, "x", b"p=tls-unique,,n=,r=abc", "srv").is_err());
        let exchange = Exchange::start(&secrets, "x", b"n,,n=,r=abc", "srv").unwrap();
        let last = format!("c=biws,r=abcsrv,p={}", BASE64.encode([7; 32]));
        assert_eq!(exchange.finish(last.as_bytes()), Err(Refusal::Denied));
    }
}
