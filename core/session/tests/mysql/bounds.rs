//! Whatever the bytes are, nothing panics, and what is kept is bounded.

use onetrip_heap::{ALLOCATIONS, LIVE};
use onetrip_wire::mysql::dialogue::Side;
use proptest::prelude::*;

use crate::stage::{
    BIGINT, CONNECT_ATTRS, END, OK, PLAIN, Stage, column, execute, login, of_statement, prepare, prepared,
    query, result, row, slices,
};

/// Bound of a session beside its records.
const SESSION_MAX: isize = 4 << 20;

fn conversation() -> Vec<(Side, Vec<u8>)> {
    let mut stage = Stage::serving();
    let rows: Vec<_> = (0..3).map(|number| row(&[&number.to_string()])).collect();
    stage.turn(&query("SELECT a FROM t WHERE b = 'x'"), &slices(&result(&[("a", BIGINT)], &rows, END)));
    stage.turn(
        &prepare("SELECT ?"),
        &slices(&[prepared(1, 1, 1), column("?", BIGINT), END.to_vec(), column("?", BIGINT), END.to_vec()]),
    );
    stage.turn(
        &execute(1, 0, &[5]),
        &slices(&result(&[("?", BIGINT)], &[b"\0\0\x05\0\0\0\0\0\0\0".to_vec()], END)),
    );
    stage.client(&[(0, &of_statement(0x19, 1))]);
    stage.client(&[(0, &query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"))]).server(&[(1, b"\xfbx")]);
    stage.client(&[(2, b"1,2"), (3, b"")]).server(&[(4, OK)]);
    stage.sent
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(pieces in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..12)) {
        for mut stage in [Stage::connected(), Stage::serving()] {
            for (is_client, bytes) in &pieces {
                stage.bytes(if *is_client { Side::Client } else { Side::Server }, bytes);
            }
            stage.books();
        }
    }

    #[test]
    fn a_damaged_conversation_is_booked_as_far_as_it_is_understood(at in 0..500usize, byte in any::<u8>(), cut in 1..40usize) {
        let mut stage = Stage::connected();
        let mut rest = at;
        for (side, mut bytes) in conversation() {
            if let Some(damaged) = bytes.get_mut(rest) {
                *damaged = byte;
            }
            rest = rest.wrapping_sub(bytes.len());
            bytes.chunks(cut).for_each(|piece| {
                stage.bytes(side, piece);
            });
        }
        stage.books();
    }
}

#[test]
fn the_whole_conversation_is_understood() {
    let mut stage = Stage::connected();
    for (side, bytes) in conversation() {
        stage.bytes(side, &bytes);
    }
    assert_eq!(stage.session.take_unseen(), None);
    let books = stage.books();
    assert_eq!((books.summary.trips.total, books.summary.unanswered, books.lost_bytes), (2 + 5, 0, 0));
}

#[test]
fn a_label_without_room_is_counted_and_no_other_scope_takes_its_statements() {
    let mut stage = Stage::greeted(PLAIN | CONNECT_ATTRS);
    let attributes = [("program_name", "shop")];
    stage.client(&[(1, &login(PLAIN | CONNECT_ATTRS, &attributes))]).server(&[(2, OK)]);
    for number in 0..20 {
        stage.turn(&query(&format!("DO `{number:07}{}`", "x".repeat(60_000))), &[OK]);
    }
    for number in 0..2_000 {
        stage.turn(&query(&format!("DO `{number:07}`")), &[OK]);
    }
    for text in ["DO 1 /* route='/late' */", "DO 1"] {
        for _ in 0..500 {
            stage.turn(&query(text), &[OK]);
        }
    }
    let summary = stage.books().summary;
    assert_eq!((summary.statements, summary.gaps.unscoped_statements), (3_020, 500));
    let scopes: Vec<_> =
        summary.scopes.iter().map(|scope| (scope.label.as_str(), scope.statements)).collect();
    assert_eq!(scopes, [("shop", 2_520), ("", 500)]);
}

#[test]
fn what_a_session_keeps_is_bounded_whatever_is_sent() {
    let before = LIVE.get();
    let mut stage = Stage::serving();
    let long = "x".repeat(60_000);
    let mut described = vec![prepared(0, 0, 1), column("?", BIGINT), END.to_vec()];
    for number in 0..3000u32 {
        described[0] = prepared(number, 0, 1);
        stage.turn(&prepare(&format!("DO ? + `{number:05}{}`", &long[..1000])), &slices(&described));
        stage.turn(&query(&format!("SELECT `{number:05}{long}`")), &[OK]);
        stage.turn(&execute(number, 0, &[1]), &[OK]);
        stage.sent.clear();
        drop(stage.session.stream().take_block());
    }
    stage.sent = Vec::new();
    assert!(LIVE.get() - before < SESSION_MAX, "{} KiB", (LIVE.get() - before) / 1024);
    stage.client(&[(0, &[&b"\x03SELECT '"[..], &vec![b'y'; 9 << 20]].concat())]);
    stage.sent = Vec::new();
    assert!(LIVE.get() - before < SESSION_MAX, "{} KiB", (LIVE.get() - before) / 1024);
}

#[test]
fn a_client_that_never_reads_its_answers_is_held_at_a_bound() {
    let before = LIVE.get();
    let mut stage = Stage::serving();
    for _ in 0..40_000 {
        if stage.session.is_full() {
            break;
        }
        stage.client(&[(0, b"\x0e")]);
        stage.sent.clear();
    }
    assert!(stage.session.is_full());
    stage.sent = Vec::new();
    assert!(LIVE.get() - before < SESSION_MAX, "{} KiB", (LIVE.get() - before) / 1024);
}

#[test]
fn a_unit_takes_nothing_from_the_heap_once_its_like_was_seen() {
    let mut stage = Stage::serving();
    let rows: Vec<_> = (0..3).map(|number| row(&[&number.to_string(), "a name"])).collect();
    let columns = [("id", BIGINT), ("name", 253)];
    let described = [prepared(1, 1, 1), column("?", BIGINT), END.to_vec(), column("?", BIGINT), END.to_vec()];
    stage.turn(&prepare("SELECT ? + 1"), &slices(&described));
    let run = execute(1, 0, &[5]);
    let text = query("SELECT id, name FROM `emp` WHERE dept = 'it' AND n > 5");
    let answers =
        [result(&columns, &rows, END), result(&[("?", BIGINT)], &[b"\0\0\x05\0\0\0\0\0\0\0".to_vec()], END)];
    let packets = |sequence: u8, payloads: &[&[u8]]| {
        let mut bytes = Vec::new();
        for (number, payload) in (sequence..).zip(payloads) {
            onetrip_wire::mysql::packet(&mut bytes, number, |out| out.extend_from_slice(payload));
        }
        bytes
    };
    let turns = [(packets(0, &[&text]), &answers[0]), (packets(0, &[&run]), &answers[1])]
        .map(|(command, answer)| (command, packets(1, &slices(answer))));
    let mut play = |times: usize| {
        for (command, answer) in turns.iter().cycle().take(times) {
            stage.now += 100_000;
            stage.see(Side::Client, command);
            stage.now += 100_000;
            stage.see(Side::Server, answer);
        }
    };
    play(100);
    let before = ALLOCATIONS.get();
    play(1000);
    let taken = ALLOCATIONS.get() - before;
    // The block of records grows by doubling.
    assert!(taken < 12, "{taken} for 1000 units");
}
