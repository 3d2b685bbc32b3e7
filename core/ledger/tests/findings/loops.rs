//! OT001.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{CHILD, Traffic, found};

#[test]
fn a_loop_over_an_earlier_result_is_proven_with_its_rows() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..10).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in &ids {
        traffic.run(CHILD, &[*id]);
    }
    let findings = traffic.findings();
    assert_eq!(found(&findings), [(Code::Loop, 9)]);
    assert_eq!(findings[0].evidence, Evidence::Walk { sources: vec![(1, "id".into())], rows: (1, 10) });
    assert_eq!(findings[0].statements[1], "SELECT id, flag FROM authors");
}

#[test]
fn a_loop_that_skips_rows_is_still_a_loop() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..30).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in ids.iter().step_by(3) {
        traffic.run(CHILD, &[*id]);
    }
    assert_eq!(traffic.found(), [(Code::Loop, 9)]);
}

#[test]
fn an_unvarying_parameter_beside_the_key_does_not_hide_a_loop() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    for id in [7, 9, 12, 15] {
        traffic.run("SELECT * FROM books WHERE author_id = $1 AND shop = $2", &[id, 4711]);
    }
    assert_eq!(traffic.found(), [(Code::Loop, 3)]);
}

#[test]
fn all_parameters_that_vary_must_come_from_the_same_row() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    for (id, other) in [(7, 12), (9, 15), (12, 7), (15, 9)] {
        traffic.run("SELECT * FROM books WHERE author_id = $1 AND editor_id = $2", &[id, other]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn ids_in_no_order_are_no_proof() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..100).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    let mut id = 17;
    for _ in 0..60 {
        id = (id * 31 + 7) % 100;
        traffic.run(CHILD, &[id + 1]);
    }
    // No loop over the list; but many values, one query each.
    assert_eq!(traffic.found(), [(Code::OnePerValue, 19)]);
}

#[test]
fn two_rows_are_no_proof() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9]);
    traffic.run(CHILD, &[7]);
    traffic.run(CHILD, &[9]);
    assert_eq!(traffic.found(), []);
}

#[test]
fn runs_that_shared_a_trip_are_no_loop() {
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &[7, 9, 12, 15]);
    traffic.shares = true;
    for id in [7, 9, 12, 15] {
        traffic.run(CHILD, &[id]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn nested_loops_are_two_findings() {
    let mut traffic = Traffic::new();
    let authors: Vec<u64> = (0..5).map(|n| 100 + 7 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &authors);
    for author in &authors {
        let books: Vec<u64> = (0..4).map(|n| author * 1000 + 3 * n).collect();
        traffic.list_of(CHILD, &[*author], &books);
        for book in books {
            traffic.run("SELECT * FROM reviews WHERE book_id = $1", &[book]);
        }
    }
    let mut codes = traffic.found();
    codes.sort();
    assert_eq!(codes, [(Code::Loop, 4), (Code::Loop, 15)]);
}
