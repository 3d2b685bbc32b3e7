//! The command on a kernel that lacks newer system calls: `scripts/old-kernel` has them refused.

mod common;

use std::process::{Command, Output};

use common::onetrip;

/// Far more than any of this takes; something that waits for ever is ended.
const SECONDS_MAX: &str = "100";
/// What Linux says of a system call that it does not have.
const ENOSYS: i32 = 38;

/// Runs what `command` would, on a kernel as of 2019.
fn on_an_old_kernel(command: &Command) -> Output {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/old-kernel");
    let mut old = Command::new("timeout");
    old.arg(SECONDS_MAX).arg(script).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => old.env(name, value),
            None => old.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        old.current_dir(directory);
    }
    old.output().unwrap()
}

#[test]
fn newer_calls_are_refused() {
    let mut python = Command::new("python3");
    // epoll_pwait2 came with Linux 5.11.
    python.args([
        "-c",
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(441), ctypes.get_errno())",
    ]);
    let output = on_an_old_kernel(&python);
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("-1 {ENOSYS}\n"), "{output:?}");
}

/// The embedded server, the gateway, the simulated link, a client and the report.
#[test]
fn the_demo_runs() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = onetrip();
    demo.args(["demo", "--employees", "20", "--rtt", "5ms"]);
    demo.current_dir(directory.path()).env("TMPDIR", directory.path());
    let output = on_an_old_kernel(&demo);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("OT001  N+1 loop   19 of 20 trips avoidable"), "{said}");
}
