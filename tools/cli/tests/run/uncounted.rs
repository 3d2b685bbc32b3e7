//! What a program does where nobody counts keeps no budget.

use std::fs;

use super::*;

const ONE: &str = "psql -qAtc 'SELECT 1'";
const BUDGET: [&str; 2] = ["--budget", "trips=1000"];

/// Exit code and standard error of a run with a budget that is wide enough.
fn judged(options: &[&str], script: &str) -> (Option<i32>, String) {
    let done = run(&[&BUDGET[..], options].concat(), script);
    (done.status.code(), text(&done.stderr))
}

#[test]
fn a_trace_that_another_program_cuts_or_removes_is_a_loss() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("run.trace");
    let path = trace.to_str().unwrap();
    let traced = |options: &[&str], script: &str| {
        let _ = fs::remove_file(&trace); // what is left of the last one is no trace, and is not replaced
        judged(&[&["--trace", path], options].concat(), script)
    };
    for (what, word) in [(": >", "cut its file short"), ("rm", "removed or moved its file")] {
        let script = format!("{ONE}; sleep 0.5; {what} {path}; {ONE}");
        let (code, said) = traced(&[], &script);
        assert_eq!(code, Some(91), "{said}");
        assert!(said.contains("the trace does not hold the whole run: another program"), "{said}");
        assert!(said.contains(word), "{said}");
        assert_eq!(traced(&["--allow-loss"], &script).0, Some(0));
        let _ = fs::remove_file(&trace);
        assert_eq!(run(&["--trace", path], &script).status.code(), Some(125));
    }
    // One that is long enough for the system to leave a hole.
    let many = "seq 2000 | sed 's/.*/SELECT & AS \"column_&\";/' | psql -qAt >/dev/null";
    let script = format!("{many}; sleep 0.5; truncate -s 40 {path}; {many}");
    let (code, said) = traced(&["--budget", "trips=9000"], &script);
    assert!(said.contains("cut its file short"), "{code:?} {said}");
    let (code, said) = traced(&[], ONE);
    assert!(code == Some(0) && !said.contains("another program"), "{said}");
}
