//! OT004.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{Traffic, found};

const LIST: &str = "SELECT * FROM entries";

/// One result, read in pieces of this many rows.
fn read_in(pieces: u32, size: u32) -> Traffic {
    let mut traffic = Traffic::new();
    traffic.begin();
    for piece in 0..pieces {
        traffic.pieces(LIST, size, piece == 0, piece + 1 == pieces, 1);
    }
    traffic.commit();
    traffic
}

#[test]
fn a_result_that_is_read_ten_rows_at_a_time_is_counted_against_a_thousand() {
    let findings = read_in(21, 10).findings();
    assert_eq!(found(&findings), [(Code::TinyFetch, 20)]);
    assert_eq!(findings[0].evidence, Evidence::Fetches { size: 10, rows: 210 });
    assert_eq!(read_in(200, 10).avoidable(Code::TinyFetch), 197, "2,000 rows are three pieces");
}

#[test]
fn large_pieces_and_few_are_no_finding() {
    assert_eq!(read_in(21, 500).found(), []);
    assert_eq!(read_in(2, 10).found(), []);
}

#[test]
fn pieces_that_share_a_trip_are_not_counted_as_trips() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for _ in 0..10 {
        traffic.pieces("FETCH 10 FROM walk", 10, true, false, 2);
    }
    traffic.commit();
    assert_eq!(traffic.found(), [], "two to a trip: which of them it is for cannot be told");
}

#[test]
fn rows_that_a_write_returns_in_pieces_are_no_writes_of_their_own() {
    let mut traffic = Traffic::new();
    traffic.begin();
    for piece in 0..20 {
        traffic.pieces("UPDATE entries SET seen = true RETURNING id", 10, piece == 0, piece == 19, 1);
    }
    traffic.commit();
    assert_eq!(traffic.found(), [(Code::TinyFetch, 19)]);
}
