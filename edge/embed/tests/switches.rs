//! Sessions that are busy at once share a thread: the kernel switches threads once for several statements.

mod support;

use std::fs;

use rustix::thread::{CpuSet, sched_setaffinity};
use support::{Client, Fixture};

const CONNECTIONS: usize = 8;
const ROUNDS: usize = 300;

/// On one core all requests of a round are there before the server sees the first. So is it with any number of cores
/// where the server has more to do than it can, but then the counts are not the same each time.
#[test]
fn eight_busy_connections_cost_less_than_a_switch_for_two_statements() {
    let mut core = CpuSet::new();
    core.set(rustix::thread::sched_getcpu());
    sched_setaffinity(None, &core).unwrap();
    let fixture = Fixture::new();
    let mut clients: Vec<Client> = (0..CONNECTIONS).map(|_| fixture.client()).collect();
    for client in &mut clients {
        client.parse("s", "VALUES (1)", &[]).sync();
    }
    let before = voluntary_switches();
    for _ in 0..ROUNDS {
        for client in &mut clients {
            client.bind("", "s", &[], 0).execute("", 0).bare(b'S').send();
        }
        for client in &mut clients {
            assert_eq!(support::tags(&client.until_ready()), "2DCZ");
        }
    }
    let switches = voluntary_switches() - before;
    let statements = CONNECTIONS * ROUNDS;
    assert!(switches * 2 < statements as u64, "{switches} switches, {statements} statements");
    let stats = fixture.server.stop().unwrap();
    assert_eq!(stats.hand_overs, 0, "{stats:?}");
    // On a machine that others share, a leader may not get its core for a while.
    assert!(stats.take_overs * 20 < statements as u64, "{stats:?}");
}

/// How often threads that serve sessions gave up their core by themselves. The lookout is left out: its switches depend on
/// how long this takes.
fn voluntary_switches() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    // A thread may end before its file is read.
    tasks
        .filter_map(|task| fs::read_to_string(task.join("status")).ok())
        .filter(|status| status.starts_with("Name:\tonetrip-session\n"))
        .map(|status| count(&status))
        .sum()
}

fn count(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    line.trim().parse().unwrap()
}
