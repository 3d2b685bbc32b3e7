//! Bytes of both sides of a MySQL connection, as they are or in whole packets: a watched session never panics, says nothing of
//! its own, and writes records that read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Analyzer, Moment, Mutes, TraceError, ValueHasher};
use onetrip_session::{MysqlConfig, MysqlSession};
use onetrip_wire::mysql::packet;

const GREETING: &[u8] = b"\x0a10.11.6-MariaDB\0\x07\0\0\0challeng\0\xff\xff\x2d\x02\0\xff\xc1\x15\0\0\0\0\0\0\x1d\0\0\0challenge123\0mysql_native_password\0";
const LOGIN_REST: &[u8] = b"me\0\0mysql_native_password\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// The packet of a payload.
fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet(&mut bytes, sequence, |out| out.extend_from_slice(payload));
    bytes
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, mut data)) = data.split_first() else { return };
    let (starts_serving, keep_values, is_framed) = (mode & 1 != 0, mode & 2 != 0, mode & 4 != 0);
    let hasher = ValueHasher::new();
    let config = MysqlConfig {
        hasher,
        keep_values,
        hides_tls: false,
        common: Default::default(),
        texts: Default::default(),
    };
    let mut session = MysqlSession::new(config);
    session.connected(Moment(0));
    if starts_serving {
        // Multiple statements and results, with or without DEPRECATE_EOF and compression.
        let capabilities = 0x000f_8281u32 | u32::from(mode & 8 != 0) << 24 | u32::from(mode & 16 != 0) << 5;
        let login = [&capabilities.to_le_bytes()[..], &[0; 28], LOGIN_REST].concat();
        session.see_server(Moment(1), &framed(0, GREETING));
        session.see_client(Moment(2), &framed(1, &login));
        session.see_server(Moment(3), &framed(2, OK));
    }
    let (mut now, mut sequence) = (1000, 0u8);
    while let [head, rest @ ..] = data {
        let from_client = head & 128 != 0;
        let count = usize::from(head & 127).min(rest.len());
        let (chunk, rest) = rest.split_at(count);
        data = rest;
        now += 1 + u64::from(*head) * 100;
        sequence = if from_client { 0 } else { sequence.wrapping_add(1) };
        let packed;
        let bytes = if is_framed {
            packed = framed(sequence, chunk);
            &packed
        } else {
            chunk
        };
        match from_client {
            true => session.see_client(Moment(now), bytes),
            false => session.see_server(Moment(now), bytes),
        }
        assert!(session.to_client().is_empty(), "it only watches");
    }
    session.rest();
    session.close(Moment(now));
    let block = session.stream().take_block();
    decode_block::<TraceError>(&mut Records::default(), 1, &block, |_| Ok(()))
        .expect("own records read back");
    let mut analyzer = Analyzer::new();
    analyzer.block(1, &block).expect("own records read back");
    analyzer.finish(&Mutes::default());
});
