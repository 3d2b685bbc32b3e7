//! `onetrip explain`: a list, pages, terms, and an error for what is neither.

mod common;

use std::process::Output;

use common::onetrip;

fn explain(codes: &[&str]) -> Output {
    onetrip().arg("explain").args(codes).output().unwrap()
}

fn text(output: &[u8]) -> &str {
    std::str::from_utf8(output).unwrap()
}

#[test]
fn without_a_code_all_codes_are_listed_with_their_titles() {
    let output = explain(&[]);
    assert!(output.status.success());
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(
        (lines.len(), lines[0], lines[15]),
        (16, "OT001  N+1 loop", "OT016  ROLLBACK after reads only")
    );
}

#[test]
fn several_codes_print_several_pages_in_the_order_and_case_that_they_were_named_in() {
    let output = explain(&["ot012", "OT001"]);
    assert!(output.status.success());
    let titles: Vec<&str> =
        text(&output.stdout).lines().filter(|line| line.starts_with("# OT")).take(2).collect();
    assert_eq!(titles, ["# OT012: independent statements in sequence", "# OT001: N+1 loop"]);
    assert!(text(&output.stdout).contains("## Fix by driver\n"));
}

#[test]
fn what_is_no_code_and_no_word_of_a_page_is_an_error_that_says_what_to_do() {
    let output = explain(&["OT001", "OT099"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("no finding and no term is called \"OT099\""));
}

#[test]
fn a_word_finds_a_term_and_the_findings_that_are_about_it() {
    let said = |word: &str| {
        let output = explain(&[word]);
        assert!(output.status.success(), "{word}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    assert!(said("n+1").contains("# OT001: N+1 loop\n"));
    assert!(said("chatter").starts_with("# OT011: session chatter\n"), "one title has it");
    let trip = said("trip");
    assert!(trip.starts_with("trip, round trip: one turn of the conversation: "), "{trip}");
    assert!(trip.contains("\nOT014  nextval with a trip of its own\n"), "{trip}");
    assert!(said("nextval").contains("OT014"));
    assert!(said("select_related").starts_with("OT001  "), "only pages have it");
}

#[test]
fn several_words_are_one_phrase_if_something_is_called_so() {
    let phrase = explain(&["fetch", "size"]);
    assert!(text(&phrase.stdout).starts_with("# OT004: tiny fetch size\n"), "{}", text(&phrase.stdout));
    assert_eq!(text(&phrase.stdout).matches("# OT004").count(), 1);
    assert!(text(&explain(&["think", "time"]).stdout).starts_with("think time: "));
}

#[test]
fn a_word_of_the_glossarys_meanings_finds_its_terms_and_no_line_is_too_long() {
    let output = explain(&["scram"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(said.contains("connection: ") && said.contains("gap: "), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn on_a_terminal_pages_are_rendered() {
    let output = onetrip().args(["explain", "OT001"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let page = text(&output.stdout);
    assert!(page.starts_with("\u{1b}[1mOT001: N+1 loop\u{1b}[0m\n"), "{page:.200}");
    assert!(!page.contains("```") && !page.contains("## "), "marks are left");
    let plain =
        onetrip().args(["explain", "OT001"]).envs([("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]).output();
    assert!(text(&plain.unwrap().stdout).starts_with("# OT001"), "NO_COLOR wins");
}
