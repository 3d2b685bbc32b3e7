//! Signals pass through us to the program.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use onetrip_target::launch::{ChildExit, Program, Redirect};
use rustix::process::{Signal, kill_process};

/// The only test of its file: signals go to the whole process, and so to every program that it runs.
#[tokio::test]
async fn signals_reach_the_program_and_not_us() {
    // Away from any terminal, where Ctrl-C is a signal like the others. What is ignored at its start, a shell cannot trap:
    // INT where a shell started us in the background, HUP under nohup.
    let takes_interrupts = !ignores(Signal::INT) && rustix::process::setsid().is_ok();
    let takes_hangups = !ignores(Signal::HUP);
    let directory = tempfile::tempdir().unwrap();
    let marker = |name: &str| directory.path().join(name);
    let (ready, seen, interrupted) = (marker("ready"), marker("seen"), marker("interrupted"));
    let script = format!(
        "trap 'touch {seen}' HUP; trap 'touch {interrupted}' INT; trap 'exit 9' TERM; touch {ready}; while :; do sleep 0.02; done",
        seen = seen.display(),
        interrupted = interrupted.display(),
        ready = ready.display(),
    );
    let mut program =
        Program::spawn(&["sh", "-c", &script].map(OsString::from), &Redirect::default()).unwrap();
    assert!(program.id().is_some());
    let us = rustix::process::getpid();
    let send = async {
        appears(&ready).await;
        if takes_hangups {
            kill_process(us, Signal::HUP).unwrap();
            appears(&seen).await;
        }
        if takes_interrupts {
            kill_process(us, Signal::INT).unwrap();
            appears(&interrupted).await;
        }
        kill_process(us, Signal::TERM).unwrap();
    };
    let (exit, ()) = tokio::join!(program.wait(), send);
    assert_eq!(exit.unwrap(), ChildExit::Code(9));
    assert_eq!(program.id(), None);
}

fn ignores(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let mask = u64::from_str_radix(ignored.trim(), 16).unwrap();
    mask & 1 << (signal.as_raw() - 1) != 0
}

async fn appears(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "{} did not appear", path.display());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
