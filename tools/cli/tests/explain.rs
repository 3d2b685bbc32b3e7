//! `onetrip explain`: a list, pages, and an error for what is no code.

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
        text(&output.stdout).lines().filter(|line| line.starts_with("# ")).take(2).collect();
    assert_eq!(titles, ["# OT012: independent statements in sequence", "# OT001: N+1 loop"]);
    assert!(text(&output.stdout).contains("## Fix by driver\n"));
}

#[test]
fn what_is_no_code_is_a_usage_error_that_names_the_codes() {
    let output = explain(&["OT001", "OT099"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("\"OT099\" is not a finding's code; the codes are OT001 to OT016"));
}
