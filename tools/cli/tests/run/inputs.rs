//! What a command reads is there afterwards, and says what it means.

use std::fs;
use std::path::Path;

use super::*;

const TWO: &str = "psql -qAt -c 'SELECT 1' -c 'SELECT 2'";

fn refused(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{said}");
    said
}

#[test]
fn no_output_is_written_over_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (trace, base, link) = (at("run.trace"), at("base.trace"), at("link.trace"));
    json(&["--trace", &trace], TWO);
    fs::copy(&trace, &base).unwrap();
    fs::hard_link(&trace, &link).unwrap();
    let whole = fs::read(&trace).unwrap();
    let same_by_dots = format!("{}/./run.trace", directory.path().display());
    for arguments in [
        &["report", "-o", &trace, &trace][..],
        &["report", "-o", &link, &trace],
        &["report", "-o", &same_by_dots, &trace],
        &["report", "--html", &trace, &trace],
        &["report", "--compare", &base, "--html", &base, &trace],
        &["report", "--compare", &base, "-o", &at("new"), "--html", &at("new"), &trace],
        &["export", "-o", &trace, &trace],
        &["forecast", "--html", &trace, &trace],
    ] {
        let said = refused(onetrip().args(arguments));
        assert!(said.contains("would be overwritten; name another file"), "{arguments:?}: {said}");
        assert_eq!((fs::read(&trace).unwrap(), fs::read(&base).unwrap()), (whole.clone(), whole.clone()));
        assert!(!Path::new(&at("new")).exists());
    }
    let (new, ran) = (at("x"), at("ran"));
    let snapshot = format!("--snapshot={new}");
    for options in [
        &["--trace", &new, "-o", &new][..],
        &[&snapshot, "--update", "-o", &new],
        &["--trace", &base, "--compare", &base],
        &["--learned", &new, "--html", &new],
    ] {
        let mut command = psql(onetrip(), SERVER.0);
        let said = refused(command.arg("run").args(options).args(["--", "touch", &ran]));
        assert!(said.contains("would be overwritten"), "{options:?}: {said}");
        assert!(!Path::new(&ran).exists() && !Path::new(&new).exists(), "{options:?}");
        assert_eq!(fs::read(&base).unwrap(), whole);
    }
    // Nobody keeps what is written there.
    let done = onetrip().args(["report", "-o", "/dev/null", "--html", "/dev/null", &trace]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
}

#[test]
fn a_blank_statement_is_no_mute() {
    let directory = tempfile::tempdir().unwrap();
    let mutes = directory.path().join("mutes.toml");
    for blank in ["", " "] {
        fs::write(&mutes, format!("[[mute]]\nstatement = \"{blank}\"\n")).unwrap();
        let done = run(&["--mute", mutes.to_str().unwrap(), "--fail-on", "OT001"], &psql_script(LOOP));
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(125), "{said}");
        assert!(said.contains("would mute everything"), "{said}");
    }
}

#[test]
fn a_snapshot_holds_connections_unless_somebody_left_them_out() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("trips.lock");
    let snapshot = format!("--snapshot={}", lock.display());
    let code = |options: &[&str], script: &str| run(options, script).status.code();
    let split = "psql -qAtc 'SELECT 1'; psql -qAtc 'SELECT 2'";
    assert_eq!(code(&[&snapshot, "--update"], TWO), Some(0));
    assert_eq!(code(&[&snapshot], TWO), Some(0));
    let done = run(&[&snapshot], split);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(90), "{said}");
    assert!(said.contains("2 connections, 1 in the snapshot"), "{said}");
    let held = fs::read_to_string(&lock).unwrap();
    fs::write(&lock, held.replace("connections = 1\n", "")).unwrap();
    assert_eq!(code(&[&snapshot], split), Some(0));
    assert_eq!(
        code(&[&snapshot, "--update"], "psql -qAt -c 'SELECT 1' -c 'SELECT 2' -c 'SELECT 3'"),
        Some(0)
    );
    let held = fs::read_to_string(&lock).unwrap();
    assert!(held.contains("work-trips = 3") && !held.contains("connections"), "{held}");
}

#[test]
fn a_run_whose_program_failed_is_nothing_to_compare_with() {
    let directory = tempfile::tempdir().unwrap();
    let base = directory.path().join("base.json");
    let base = base.to_str().unwrap();
    assert_eq!(run(&["--format", "json", "-o", base], &format!("{TWO}; exit 7")).status.code(), Some(7));
    let done = run(&["--compare", base, "--max-increase", "5%"], TWO);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(91), "{said}");
    assert!(said.contains("cannot be compared with: its program failed"), "{said}");
}
