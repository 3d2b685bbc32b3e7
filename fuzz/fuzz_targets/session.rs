//! Bytes of both sides, interleaved, with remedies and without: a session never panics, always gets on, keeps within its
//! input, changes nothing once it serves unless remedies do, and writes records that read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_ledger::trace::{Records, decode_block};
use onetrip_ledger::{Analyzer, Moment, Mutes, TraceError, ValueHasher};
use onetrip_session::{Opening, Remedies, Session, SessionConfig, Verdict};
use onetrip_wire::pg::{
    Authentication, PROTOCOL_3_0, TransactionStatus, encode_ready_for_query, encode_startup,
};

/// One direction's bytes that are not decided on.
#[derive(Default)]
struct Side {
    waiting: Vec<u8>,
    came: Vec<u8>,
    left: Vec<u8>,
}

/// Feeds what waits on a side; whether the session goes on.
fn drive(session: &mut Session, side: &mut Side, now: Moment, from_client: bool) -> bool {
    let mut idle_turns = 0;
    loop {
        let verdict = if from_client {
            session.handle_client(now, &side.waiting)
        } else {
            session.handle_server(now, &side.waiting)
        };
        let used = match verdict {
            Ok(Verdict::Wait | Verdict::Hold) => return true,
            Ok(Verdict::Forward(bytes)) => {
                side.left.extend_from_slice(&side.waiting[..bytes]);
                bytes
            }
            Ok(Verdict::Replace(bytes)) => bytes,
            Err(_) => return false,
        };
        idle_turns = if used == 0 { idle_turns + 1 } else { 0 };
        assert!(idle_turns < 3, "the session turns without getting on");
        side.waiting.drain(..used);
    }
}

fn let_in(session: &mut Session) {
    let mut packet = Vec::new();
    encode_startup(&mut packet, PROTOCOL_3_0, [(&b"user"[..], &b"ann"[..])]);
    assert!(matches!(session.handle_opening(Moment(0), &packet), Ok(Opening::Connect(_))));
    let mut reply = Vec::new();
    Authentication::Ok.encode(&mut reply);
    assert!(matches!(session.handle_server(Moment(0), &reply), Ok(Verdict::Forward(_))));
    reply.clear();
    encode_ready_for_query(&mut reply, TransactionStatus::Idle);
    assert!(matches!(session.handle_server(Moment(0), &reply), Ok(Verdict::Forward(_))));
}

fuzz_target!(|data: &[u8]| {
    let Some((&mode, mut data)) = data.split_first() else { return };
    let hasher = ValueHasher::new();
    let is_remedied = mode & 4 != 0;
    let remedies = if is_remedied { Remedies::exact() } else { Remedies::default() };
    let config = SessionConfig {
        hasher,
        cancel_key: *b"keys",
        keep_values: mode & 2 != 0,
        remedies,
        common: Default::default(),
        verify: None,
        overflow: Default::default(),
        question_burst: std::time::Duration::from_secs(60),
        lobs: Default::default(),
        isolation: None,
        texts: Default::default(),
        private: *b"not told",
    };
    let mut session = Session::new(config);
    let (mut up, mut down) = (Side::default(), Side::default());
    let starts_serving = mode & 1 != 0;
    if starts_serving {
        let_in(&mut session);
        session.path_measured(Moment(0), 13_000, 13_000);
    }
    let mut now = 1000;
    let mut goes_on = true;
    while let [head, rest @ ..] = data {
        let from_client = head & 128 != 0;
        if !from_client && !starts_serving && up.came.is_empty() {
            return; // nobody is connected to yet
        }
        let count = usize::from(head & 127).min(rest.len());
        let (chunk, rest) = rest.split_at(count);
        data = rest;
        now += 1 + u64::from(*head) * 100;
        let side = if from_client { &mut up } else { &mut down };
        side.waiting.extend_from_slice(chunk);
        side.came.extend_from_slice(chunk);
        goes_on = drive(&mut session, side, Moment(now), from_client);
        if !goes_on {
            break;
        }
    }
    if starts_serving && !is_remedied {
        for side in [&up, &down] {
            assert_eq!([&side.left[..], &side.waiting].concat(), side.came, "observing changes nothing");
        }
        assert!(goes_on <= session.to_client().is_empty());
    }
    session.close(Moment(now));
    let block = session.stream().take_block();
    decode_block::<TraceError>(&mut Records::default(), 1, &block, |_| Ok(()))
        .expect("own records read back");
    let mut analyzer = Analyzer::new();
    analyzer.block(1, &block).expect("own records read back");
    analyzer.finish(&Mutes::default());
});
