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
fn what_could_not_be_judged_names_the_option_that_takes_it_as_it_is() {
    let (code, said) = judged(&[], "true");
    assert_eq!(code, Some(91), "{said}");
    assert!(said.contains("reached the gateway (--allow-no-connections takes it as it is)"), "{said}");
    assert!(!said.contains("--allow-..."), "{said}");
}

#[test]
fn a_session_that_outlives_the_program_is_said_and_keeps_no_budget() {
    // Every run waits for a statement of its own: the server may still run the last one's.
    let script = |seconds: u32| {
        format!(
            "setsid psql -qAtc 'SELECT pg_sleep({seconds})' </dev/null >/dev/null 2>&1 &
            until psql -qAtc \"SELECT 'up' FROM pg_stat_activity WHERE query LIKE '%sleep({seconds})%' \
            AND pid <> pg_backend_pid()\" | grep -q up; do sleep 0.1; done"
        )
    };
    let (code, said) = judged(&[], &script(601));
    assert_eq!(code, Some(91), "{said}");
    let reason = "1 connection was still open after the program had ended";
    assert!(said.contains(&format!("{reason} (--allow-background takes it as it is)")), "{said}");
    let (code, said) = judged(&["--allow-background"], &script(602));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(reason), "it is said all the same: {said}");
    let done = run(&[], &script(603));
    assert!(done.status.success() && text(&done.stderr).contains(reason), "{}", text(&done.stderr));
    let (code, said) = judged(&[], ONE);
    assert!(code == Some(0) && !said.contains("still open"), "{said}");
}

#[test]
fn a_connection_past_the_gateway_is_said_although_others_went_through_it() {
    let past = format!("psql -h 127.0.0.1 -p {} -qAtc 'SELECT pg_sleep(1.5)'", SERVER.0);
    let script = format!("{ONE}; {past}");
    let (code, said) = judged(&[], &script);
    assert_eq!(code, Some(91), "{said}");
    let reason =
        format!("the program was also connected to 127.0.0.1:{}, the database, past the gateway", SERVER.0);
    assert!(said.contains(&format!("{reason} (--allow-bypass takes it as it is)")), "{said}");
    assert!(said.contains("Add --redirect"), "{said}");
    let (code, said) = judged(&["--allow-bypass"], &script);
    assert!(code == Some(0) && said.contains(&reason), "{said}");
    let (_, said) = judged(&[], &format!("{past}; {ONE}"));
    assert!(said.contains(&reason), "also before the first that went through it: {said}");
    let (code, said) = judged(&["--redirect=preload"], &script);
    assert!(code == Some(0) && !said.contains("past the gateway"), "{said}");
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

/// `onetrip run` below a shell that has set limits of descriptors.
fn limited(limit: &str, options: &[&str], script: &str) -> Output {
    let mut command = psql(Command::new("sh"), SERVER.0);
    let limit = format!("ulimit {limit} && exec \"$@\"");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_onetrip"), "run"]).args(options);
    command
        .args(["--", "sh", "-c", script])
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

const MANY: &str = "for number in $(seq 25); do psql -qAtc 'SELECT pg_sleep(3)' >/dev/null 2>&1 & done; wait";

#[test]
fn onetrip_takes_the_descriptors_that_it_may_have_and_the_program_keeps_its_own_limit() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let options = ["--format", "json", "-o", report.to_str().unwrap()];
    let done = limited("-Sn 40", &options, &format!("ulimit -Sn; {MANY}"));
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout), "40\n");
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["connections"]["let_in"], 25, "{}", text(&done.stderr));
}

#[test]
fn sessions_that_onetrip_refused_keep_no_budget() {
    let done = limited("-n 40", &BUDGET, MANY);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(91), "{said}");
    assert!(said.contains("of the program's sessions, as it was out of file descriptors"), "{said}");
}

#[test]
fn nothing_stays_behind_for_a_process_that_needs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = psql(onetrip(), SERVER.0);
    command.env("TMPDIR", directory.path());
    command.args(["run", "--", "sh", "-c", "sleep 20 </dev/null >/dev/null 2>&1 & echo $!"]);
    let done = command.output().unwrap();
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    let _ = Command::new("kill").arg(text(&done.stdout).trim()).status();
    assert!(left.is_empty(), "{left:?}");
}
