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
fn parameters_that_came_in_a_trip_before_belong_to_the_run_behind_it() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (0..10).map(|n| 700 + 13 * n).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in &ids {
        traffic.bind(CHILD, &[*id]);
        traffic.execute(CHILD);
    }
    assert_eq!(traffic.found(), [(Code::Loop, 9)]);
    // Both may leave together, and the trip is that of the run.
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for id in &ids {
        traffic.bind(CHILD, &[*id]);
        traffic.shares = true;
        traffic.execute(CHILD);
        traffic.shares = false;
    }
    assert_eq!(traffic.found(), [(Code::Loop, 9)]);
    // Two that wait are not told apart, and another transaction knows neither.
    let mut traffic = Traffic::new();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for pair in ids.chunks(2) {
        traffic.bind(CHILD, &[pair[0]]);
        traffic.bind(CHILD, &[pair[1]]);
        traffic.execute(CHILD);
        traffic.execute(CHILD);
    }
    assert_eq!(traffic.avoidable(Code::Loop), 0);
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

#[test]
fn small_numbers_that_any_list_has_are_no_loop_over_it() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (1..=30).collect();
    traffic.list("SELECT id, views FROM posts", &ids);
    for _ in 0..5 {
        traffic.run("SELECT count(*) FROM audits", &[]);
    }
    for id in 1..=6 {
        traffic.run("SELECT balance FROM accounts WHERE id = $1", &[id]);
    }
    assert!(traffic.found().iter().all(|(code, _)| *code != Code::Loop));
}

#[test]
fn pages_through_a_table_walk_no_list() {
    for pages in [
        "SELECT name FROM tags ORDER BY id LIMIT $1",
        "SELECT name FROM tags ORDER BY id LIMIT 20 OFFSET $1",
        "SELECT id FROM posts WHERE id > $1 ORDER BY id LIMIT 20",
        "SELECT id FROM posts WHERE id BETWEEN $1 AND 900",
    ] {
        let mut traffic = Traffic::new();
        let ids: Vec<u64> = (1..=30).map(|n| 20 * n).collect();
        traffic.list("SELECT id, views FROM posts", &ids);
        for id in &ids[..8] {
            traffic.run(pages, &[*id]);
        }
        assert!(traffic.found().iter().all(|(code, _)| *code != Code::Loop), "{pages}");
    }
}

#[test]
fn where_no_name_tells_a_loop_begins_right_behind_its_list_and_leaves_no_row_out() {
    let reads = "SELECT weight FROM parcels WHERE number = $1";
    let walk = |apart: usize, step: usize| {
        let mut traffic = Traffic::new();
        let ids: Vec<u64> = (0..30).map(|n| 700 + 13 * n).collect();
        traffic.list("SELECT id, flag FROM authors", &ids);
        for _ in 0..apart {
            traffic.run("SELECT count(*) FROM audits", &[]);
        }
        for id in ids.iter().step_by(step).take(6) {
            traffic.run(reads, &[*id]);
        }
        traffic.found().iter().any(|(code, _)| *code == Code::Loop)
    };
    assert!(walk(0, 1));
    assert!(!walk(8, 1), "other work lies between");
    assert!(!walk(0, 2), "every second row");
}

#[test]
fn a_foreign_key_proves_a_loop_also_some_time_behind_its_list() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (1..=10).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for _ in 0..40 {
        traffic.run("SELECT count(*) FROM audits", &[]);
    }
    for id in &ids {
        traffic.run(CHILD, &[*id]);
    }
    assert_eq!(traffic.avoidable(Code::Loop), 9);
}

#[test]
fn a_list_of_long_ago_proves_no_loop() {
    let mut traffic = Traffic::new();
    let ids: Vec<u64> = (1..=10).collect();
    traffic.list("SELECT id, flag FROM authors", &ids);
    for _ in 0..200 {
        traffic.run("SELECT count(*) FROM audits", &[]);
    }
    for id in &ids {
        traffic.run(CHILD, &[*id]);
    }
    assert!(traffic.found().iter().all(|(code, _)| *code != Code::Loop));
}
