//! Bytes of both sides of a MySQL connection on which the gateway speaks TLS with the server, or reaches it by a Unix socket: a session never
//! panics, takes no more than it was given, changes no byte but numbers and passwords, and lets all pass once the login is over.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use onetrip_ledger::{Moment, ValueHasher};
use onetrip_session::{Hello, MysqlConfig, MysqlSession, PasswordKey, TlsOffer, Verdict};
use onetrip_wire::mysql::packet;

const GREETINGS: [&[u8]; 2] = [
    b"\x0a10.11.6-MariaDB\0\x07\0\0\0challeng\0\xff\xff\x2d\x02\0\xff\xc1\x15\0\0\0\0\0\0\x1d\0\0\0challenge123\0mysql_native_password\0",
    b"\x0a8.0.36\0\x07\0\0\0challeng\0\xff\xff\x2d\x02\0\xff\xc1\x15\0\0\0\0\0\0\0\0\0\0challenge123\0caching_sha2_password\0",
];
const LOGIN_REST: &[u8] = b"me\0\0caching_sha2_password\0";

/// Its "encryption" is none.
#[derive(Debug)]
struct Key;

impl PasswordKey for Key {
    fn public_pem(&self) -> Option<&[u8]> {
        Some(b"key")
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        (encrypted.first() != Some(&b'-')).then(|| encrypted.to_vec())
    }
}

fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, mut data)) = data.split_first() else { return };
    let is_framed = mode & 4 != 0;
    MysqlSession::tls_offer(data);
    let config = MysqlConfig {
        hasher: ValueHasher::new(),
        keep_values: false,
        hides_tls: mode & 8 == 0,
        common: Default::default(),
        texts: Default::default(),
    };
    let mut session = MysqlSession::new(config);
    session.connected(Moment(0));
    let greeting = framed(0, GREETINGS[usize::from(mode & 1)]);
    assert_eq!(MysqlSession::tls_offer(&greeting), TlsOffer::Yes);
    let capabilities = 0x000f_8281u32 | u32::from(mode & 16 != 0) << 5;
    let login = framed(1, &[&capabilities.to_le_bytes()[..], &[0; 28], LOGIN_REST].concat());
    let (mut up, mut down) = (if mode & 2 != 0 { data.to_vec() } else { login }, Vec::new());
    if mode & 8 == 0 {
        session.secure(Arc::new(Key));
        assert_eq!(session.handle_server(Moment(1), &greeting), Verdict::Replace(greeting.len()));
        session.to_client().clear();
        let Hello::Request(request) = session.hello(Moment(2), &up) else { return };
        session.tls_began(Moment(3), &request);
    } else {
        session.lend_key(Arc::new(Key));
        down = greeting;
    }
    let (mut now, mut sequence) = (1000, 1u8);
    loop {
        now += 100;
        loop {
            let Ok(verdict) = session.handle_client(Moment(now), &up) else { return };
            let (Verdict::Forward(count) | Verdict::Replace(count)) = verdict else { break };
            assert!(count <= up.len());
            up.drain(..count);
            if up.is_empty() {
                break;
            }
        }
        loop {
            let verdict = session.handle_server(Moment(now), &down);
            let (Verdict::Forward(count) | Verdict::Replace(count)) = verdict else { break };
            assert!(count <= down.len());
            down.drain(..count);
            if down.is_empty() {
                break;
            }
        }
        session.to_client().clear();
        session.to_server().clear();
        let [head, rest @ ..] = data else { break };
        let count = usize::from(head & 127).min(rest.len());
        let (chunk, rest) = rest.split_at(count);
        data = rest;
        sequence = sequence.wrapping_add(1);
        let side = if head & 128 != 0 { &mut up } else { &mut down };
        if is_framed {
            side.extend_from_slice(&framed(sequence, chunk));
        } else {
            side.extend_from_slice(chunk);
        }
    }
    session.close(Moment(now));
});
