//! A program as our child: its environment and its end.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use onetrip_target::launch::{ChildExit, LaunchError, Program, Redirect};

fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

async fn run(words: &[&str], redirect: &Redirect) -> ChildExit {
    Program::spawn(&command(words), redirect).unwrap().wait().await.unwrap()
}

fn failure(words: &[&str]) -> LaunchError {
    Program::spawn(&command(words), &Redirect::default()).unwrap_err()
}

#[tokio::test]
async fn the_exit_code_is_the_programs() {
    let plain = Redirect::default();
    assert_eq!(run(&["true"], &plain).await, ChildExit::Code(0));
    assert_eq!(run(&["sh", "-c", "exit 7"], &plain).await.code(), 7);
    let killed = run(&["sh", "-c", "kill -9 $$"], &plain).await;
    assert_eq!((killed, killed.code(), killed.is_success()), (ChildExit::Signal(9), 137, false));
}

#[tokio::test]
async fn the_program_sees_the_changed_environment() {
    let redirect = Redirect {
        set: vec![("ONETRIP_TEST_HOST".to_owned(), "127.0.0.1".into())],
        unset: vec!["PATH_THAT_IS_NOT_SET".to_owned(), "HOME".to_owned()],
        ..Redirect::default()
    };
    let script = r#"[ "$ONETRIP_TEST_HOST" = 127.0.0.1 ] && [ -z "${HOME+set}" ] && [ "$1" = "a b" ]"#;
    assert!(run(&["sh", "-c", script, "name", "a b"], &redirect).await.is_success());
    assert!(!run(&["sh", "-c", script], &Redirect::default()).await.is_success());
}

#[tokio::test]
async fn further_arguments_stand_before_the_words_that_are_no_options() {
    let redirect =
        Redirect { arguments: vec!["--x".into()], words_after_arguments: 2, ..Redirect::default() };
    let script = r#"[ "$*" = "a --x -- b" ]"#;
    assert!(run(&["sh", "-c", script, "name", "a", "--", "b"], &redirect).await.is_success());
}

/// By another process: children of other tests, which have our files until they run their programs, would keep this one busy.
fn write(text: &str, path: &Path) {
    let write = r#"printf %s "$1" >"$0""#;
    let status = std::process::Command::new("sh").arg("-c").arg(write).arg(path).arg(text).status();
    assert!(status.expect("sh runs").success());
}

#[tokio::test]
async fn a_program_that_cannot_be_run_has_the_exit_code_of_shells() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    let name = path.to_str().unwrap();
    let missing = failure(&[name]);
    assert_eq!((missing.exit_code(), missing.to_string().contains("not found")), (127, true));
    assert_eq!(failure(&["onetrip-no-such-program"]).exit_code(), 127);
    write("#!/bin/sh\nexit 0\n", &path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(failure(&[name]).exit_code(), 126);
    write("exit 0\n", &path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let unknown = failure(&[name]);
    assert_eq!((unknown.exit_code(), unknown.to_string().contains("#!")), (126, true), "{unknown}");
    assert_eq!(failure(&[name.rsplit_once('/').unwrap().0]).exit_code(), 126);
    assert_eq!(failure(&[]).exit_code(), 127);
}
