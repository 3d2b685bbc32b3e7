//! OT012.

use onetrip_ledger::{Code, Evidence};

use crate::traffic::{MILLISECOND, Traffic, found};

const PAGE: [&str; 3] = [
    "SELECT name FROM authors WHERE id = $1",
    "SELECT title FROM books WHERE author_id = $1 ORDER BY id",
    "SELECT max(price) FROM books WHERE author_id = $1",
];

/// Pages of these many authors, each of three reads.
fn pages(count: u64, mut before_each: impl FnMut(&mut Traffic, usize)) -> Traffic {
    let mut traffic = Traffic::new();
    for author in (0..count).map(|number| 140 - 7 * number) {
        for (position, query) in PAGE.into_iter().enumerate() {
            before_each(&mut traffic, position);
            traffic.run(query, &[author]);
        }
    }
    traffic
}

#[test]
fn three_independent_reads_need_one_trip() {
    let findings = pages(4, |_, _| {}).findings();
    assert_eq!(found(&findings), [(Code::Sequence, 8)]);
    assert_eq!(findings[0].evidence, Evidence::Groups { groups: 4, statements: 12 });
}

#[test]
fn a_gap_that_a_busy_machine_made_long_does_not_part_a_group() {
    for busy in 0..12 {
        let mut number = 0;
        let traffic = pages(4, |traffic, _| {
            traffic.think = if number == busy { 40 } else { 0 } * MILLISECOND + MILLISECOND / 10;
            number += 1;
        });
        assert_eq!(traffic.found(), [(Code::Sequence, 8)], "before read {busy}");
    }
    // The first page is slow, as a program is that has yet to be loaded.
    let mut number = 0;
    let first = pages(4, |traffic, _| {
        traffic.think = if number < 3 { 5 } else { 0 } * MILLISECOND + MILLISECOND / 10;
        number += 1;
    });
    assert_eq!(first.found(), [(Code::Sequence, 8)]);
    // Where the program always takes so long there, what follows is another piece of work.
    let parted = pages(4, |traffic, position| {
        traffic.think = if position == 1 { 40 } else { 0 } * MILLISECOND + MILLISECOND / 10;
    });
    assert_eq!(parted.found(), []);
}

#[test]
fn trips_that_only_prepare_do_not_part_a_group() {
    let mut prepared = Vec::new();
    let traffic = pages(4, |traffic, position| {
        if !prepared.contains(&position) {
            prepared.push(position);
            traffic.prepare(PAGE[position]);
        }
    });
    assert_eq!(traffic.found(), [(Code::Sequence, 8)]);
}

#[test]
fn reads_that_are_sent_together_are_no_finding() {
    assert_eq!(pages(4, |traffic, position| traffic.shares = position > 0).found(), []);
}

#[test]
fn a_read_that_needs_an_answer_of_the_group_is_not_independent() {
    let mut traffic = Traffic::new();
    for number in 0..4 {
        traffic.value("SELECT id FROM authors WHERE name = $1", &[300 - number], 40 + number);
        traffic.value("SELECT id FROM books WHERE author_id = $1", &[40 + number], 80 + number);
        traffic.run("SELECT * FROM reviews WHERE book_id = $1", &[80 + number]);
    }
    assert_eq!(traffic.found(), []);
}

#[test]
fn pages_that_something_parts_are_no_groups() {
    let written = pages(4, |traffic, position| {
        if position == 2 {
            traffic.run("INSERT INTO visits (page) VALUES (1) ON CONFLICT DO NOTHING", &[]);
        }
    });
    assert_eq!(written.avoidable(Code::Sequence), 0, "a write in between");
    let slow = pages(4, |traffic, _| traffic.think = 10 * MILLISECOND);
    assert_eq!(slow.found(), [], "the program thinks in between");
    let told_apart = pages(4, |traffic, _| traffic.request += 1);
    assert_eq!(told_apart.found(), [], "other requests");
}

#[test]
fn two_groups_are_not_worth_a_word() {
    assert_eq!(pages(2, |_, _| {}).found(), []);
}

/// Pages of three reads, the second of which has two parameters.
fn pages_with(authors: &[u64], beside: impl Fn(u64) -> u64) -> Traffic {
    let mut traffic = Traffic::new();
    for author in authors {
        traffic.run(PAGE[0], &[*author]);
        traffic
            .run("SELECT string_agg(title, $2) FROM books WHERE author_id = $1", &[*author, beside(*author)]);
        traffic.run(PAGE[2], &[*author]);
    }
    traffic
}

#[test]
fn a_constant_that_comes_up_within_the_first_group_is_no_answer_of_it() {
    let findings = pages_with(&[140, 133, 126, 119], |_| 9_000).findings();
    assert_eq!(found(&findings), [(Code::Sequence, 8)]);
    assert_eq!(findings[0].evidence, Evidence::Groups { groups: 4, statements: 12 });
}

#[test]
fn a_constant_and_a_gap_that_a_busy_machine_made_long_do_not_part_a_group() {
    let second = "SELECT string_agg(title, $2) FROM books WHERE author_id = $1";
    let pages = |thinks: &dyn Fn(usize) -> u64, beside: &dyn Fn(u64) -> u64| {
        let mut traffic = Traffic::new();
        for (number, author) in [140, 133, 126, 119].into_iter().enumerate() {
            let page: [(&str, &[u64]); 3] =
                [(PAGE[0], &[author]), (second, &[author, beside(author)]), (PAGE[2], &[author])];
            for (position, (query, values)) in page.into_iter().enumerate() {
                traffic.think = thinks(3 * number + position) + MILLISECOND / 10;
                traffic.run(query, values);
            }
        }
        traffic.found()
    };
    for busy in 0..12 {
        let thinks = |place: usize| if place == busy { 40 * MILLISECOND } else { 0 };
        assert_eq!(pages(&thinks, &|_| 9_000), [(Code::Sequence, 8)], "before read {busy}");
        assert_eq!(pages(&thinks, &|author| 9_000 + author), [], "a value of its own, before read {busy}");
    }
    let slow_first = |place: usize| if place < 3 { 5 * MILLISECOND } else { 0 };
    assert_eq!(pages(&slow_first, &|_| 9_000), [(Code::Sequence, 8)]);
    let always = |place: usize| if place % 3 == 1 { 40 * MILLISECOND } else { 0 };
    assert_eq!(pages(&always, &|_| 9_000), [], "the program always takes so long there");
}

#[test]
fn a_value_that_comes_up_within_each_group_may_be_made_of_an_answer() {
    assert_eq!(pages_with(&[140, 133, 126, 119], |author| 9_000 + author).found(), []);
}

#[test]
fn the_same_page_again_does_not_show_that_its_value_is_a_constant() {
    let traffic = pages_with(&[140, 140, 133, 133, 126, 126], |author| 9_000 + author);
    assert_eq!(
        traffic.found(),
        [(Code::Sequence, 6)],
        "the second page of each author had all values before"
    );
}

#[test]
fn reads_behind_a_doubt_are_a_group_of_their_own() {
    let mut traffic = Traffic::new();
    for author in [140, 133, 126] {
        traffic.run("SELECT place FROM authors WHERE id = $1", &[author]);
        traffic.run("SELECT * FROM shops WHERE zip = $1 AND owner = $2", &[7_000 + author, author]);
        traffic.run("SELECT * FROM streets WHERE zip = $1", &[7_000 + author]);
        traffic.run("SELECT * FROM taxes WHERE zip = $1", &[7_000 + author]);
    }
    assert_eq!(traffic.found(), [(Code::Sequence, 6)]);
}

#[test]
fn a_read_about_something_else_begins_a_group() {
    let mut traffic = Traffic::new();
    traffic.run(PAGE[2], &[151]);
    for author in [140, 133, 126] {
        PAGE.iter().for_each(|query| traffic.run(query, &[author]));
    }
    assert_eq!(traffic.found(), [(Code::Sequence, 6)], "the first read is in none of the three groups");
}
