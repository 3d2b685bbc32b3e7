//! How much of a result is in memory while it is ahead. The memory is that of a process, so this runs in one of its own.

use std::process::Command;
use std::time::Duration;

use super::harmless::reads_ahead;
use super::stage::{Hole, Path, Stage, administer, gateway_at, server};

/// Short rows; the estimate of a piece rests on them when the long ones come.
const SHORT: u32 = 8000;
/// Rows of 100 kB after them.
const LONG: u32 = 600;
/// What the process may grow by; all long rows are 60 MB.
const GROWTH_KIB_MAX: u64 = 20 * 1024;
/// Set in the process that is measured.
const MEASURED: &str = "ONETRIP_HOLES_MEASURED";

fn setup(short: u32, long: u32) -> String {
    format!(
        "CREATE TABLE growing (id int PRIMARY KEY, t text); ALTER TABLE growing ALTER t SET STORAGE EXTERNAL; \
         INSERT INTO growing SELECT g, 'x' FROM generate_series(1, {short}) AS g; \
         INSERT INTO growing SELECT {short} + g, repeat('y', 100000) FROM generate_series(1, {long}) AS g; \
         CREATE TABLE quick AS SELECT g AS id FROM generate_series(1, 200) AS g; ANALYZE growing, quick"
    )
}

/// Largest memory of this process so far, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux system");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The program stops after the short rows: the long ones are ahead.
fn grows_little() {
    let (server, distance) = (server("15"), Duration::from_millis(20));
    administer(server, "postgres", "CREATE DATABASE growing");
    administer(server, "growing", &setup(SHORT, LONG));
    let path = Path { server, port: server.at.port, database: "growing" };
    let gateway = gateway_at(server, server.at.port, distance);
    let stage = Stage::through(&gateway, &path, distance);
    let mut program = stage.session("program");
    reads_ahead(&mut program, "SELECT id FROM quick");
    let before = peak_kib();
    program.says_all(&["BEGIN", "DECLARE c CURSOR FOR SELECT id, t FROM growing"]);
    for _ in 0..SHORT / 500 {
        program.says("FETCH FORWARD 500 FROM c");
    }
    std::thread::sleep(Duration::from_secs(3));
    program.says_all(&["SELECT 1", "COMMIT"]);
    let growth = peak_kib() - before;
    drop(stage.take_seen());
    assert!(growth < GROWTH_KIB_MAX, "the process grew by {growth} KiB");
    gateway.stop();
}

#[test]
fn long_rows_that_are_ahead_do_not_fill_the_memory() {
    if std::env::var_os(MEASURED).is_some() {
        return grows_little();
    }
    let this = std::env::current_exe().expect("it runs");
    let name = "holes::memory::long_rows_that_are_ahead_do_not_fill_the_memory";
    let output = Command::new(this).args(["--exact", name, "--nocapture"]).env(MEASURED, "1").output();
    let output = output.expect("it runs again");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn long_rows_after_short_ones_come_as_they_are() {
    let program = |stage: &Stage| {
        let mut program = stage.session("program");
        reads_ahead(&mut program, "SELECT id FROM quick");
        program.says_all(&["BEGIN", "DECLARE c CURSOR FOR SELECT id, t FROM growing"]);
        for _ in 0..12 {
            program.says("FETCH FORWARD 100 FROM c");
        }
        program.says_all(&["SELECT 1", "FETCH FORWARD 1 FROM c", "COMMIT"]);
    };
    Hole { name: "long_rows", setup: &setup(1000, 60), programs: &[("to the end", &program)] }.assert_shut();
}
