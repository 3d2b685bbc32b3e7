//! The time that a step is charged: its wall time, less what other processes have taken of the machine meanwhile.
//!
//! With wall time alone, a busy machine would fail a step. With processor time alone, a test could sleep for an hour.
//! On a machine with nothing else to do, the charge is the wall time. On a busy one it is less, and never less than
//! the step's own processor time divided by the processors.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{Pid, SysconfVar, sysconf};

/// The start of a step.
pub(crate) struct Meter {
    started: Instant,
    machine: Duration,
    own: Duration,
}

/// What a step has taken.
#[derive(Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) wall: Duration,
    /// Processor time of the step's processes, those that are still running included.
    pub(crate) own: Duration,
    /// What its budget is compared with.
    pub(crate) charged: Duration,
}

impl Meter {
    pub(crate) fn start() -> Result<Self> {
        Ok(Self { started: Instant::now(), machine: machine()?.busy, own: own()? })
    }

    pub(crate) fn taken(&self) -> Result<Taken> {
        let wall = self.started.elapsed();
        let machine = machine()?;
        let own = own()?.saturating_sub(self.own);
        let busy = machine.busy.saturating_sub(self.machine);
        Ok(Taken { wall, own, charged: charge(wall, own, busy, machine.processors) })
    }
}

/// `busy` is the processor time that all processes have taken together, `own` that of the step.
fn charge(wall: Duration, own: Duration, busy: Duration, processors: u32) -> Duration {
    let others = busy.saturating_sub(own) / processors;
    wall.saturating_sub(others).max(own / processors)
}

struct Machine {
    busy: Duration,
    processors: u32,
}

/// Processor time since the machine started. What a hypervisor has taken counts as busy.
fn machine() -> Result<Machine> {
    let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    let all = text.lines().next().context("/proc/stat is empty")?;
    let fields: Vec<u64> = all.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; what guests take is part of the first two.
    let ticks = [0, 1, 2, 5, 6, 7].iter().filter_map(|&field| fields.get(field)).sum();
    let is_processor = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    let processors = text.lines().filter(is_processor).count().max(1);
    Ok(Machine { busy: from_ticks(ticks)?, processors: u32::try_from(processors)? })
}

/// Processor time of all descendants: those that were waited for, and those that run.
fn own() -> Result<Duration> {
    let ticks = descendants()?.iter().map(|process| process.ticks).sum();
    Ok(of_the_ended()? + from_ticks(ticks)?)
}

/// Processor time of the descendants that were waited for.
pub(crate) fn of_the_ended() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let ended = (usage.user_time() + usage.system_time()).num_microseconds();
    Ok(Duration::from_micros(u64::try_from(ended)?))
}

fn from_ticks(ticks: u64) -> Result<Duration> {
    let per_second = sysconf(SysconfVar::CLK_TCK)?.context("the kernel does not say how long a tick is")?;
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// A running process that this one has started, or that was started by such a process.
pub(crate) struct Descendant {
    pub(crate) pid: Pid,
    /// Processor time, with that of the processes it has waited for.
    ticks: u64,
}

pub(crate) fn descendants() -> Result<Vec<Descendant>> {
    let mut children: HashMap<i32, Vec<Descendant>> = HashMap::new();
    for entry in fs::read_dir("/proc").context("cannot read /proc")?.flatten() {
        // A process may end meanwhile.
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        if let Some((parent, process)) = parse_stat(&stat) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found: Vec<Descendant> = Vec::new();
    let mut parents = vec![std::process::id().try_into()?];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid.as_raw());
            found.push(process);
        }
    }
    Ok(found)
}

/// The parent and the process of a line of /proc/PID/stat.
fn parse_stat(stat: &str) -> Option<(i32, Descendant)> {
    // The name is in brackets, and may hold any character.
    let (head, rest) = stat.rsplit_once(')')?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((parent, Descendant { pid: Pid::from_raw(pid), ticks }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_calm_machine_charges_wall_time() {
        assert_eq!(charge(MINUTE * 10, MINUTE * 12, MINUTE * 12, 2), MINUTE * 10);
        // A step that only waits is charged for it, too.
        assert_eq!(charge(MINUTE * 10, Duration::ZERO, Duration::ZERO, 2), MINUTE * 10);
    }

    #[test]
    fn what_others_take_of_a_busy_machine_is_not_charged() {
        // Nine of ten parts are taken by others: 100 minutes for what takes 10 alone.
        assert_eq!(charge(MINUTE * 100, MINUTE * 20, MINUTE * 200, 2), MINUTE * 10);
    }

    #[test]
    fn a_step_is_charged_its_own_processor_time_at_least() {
        // The machine's counter may lag.
        assert_eq!(charge(MINUTE * 10, MINUTE * 20, MINUTE * 50, 2), MINUTE * 10);
    }

    #[test]
    fn a_name_with_brackets_and_spaces_is_no_field() {
        let stat = "17 (a) b) S 4 17 17 0 -1 4194304 1 2 3 4 100 20 3 1 20 0 1 0 99";
        let (parent, process) = parse_stat(stat).expect("it is a line of stat");
        assert_eq!((parent, process.pid, process.ticks), (4, Pid::from_raw(17), 124));
    }

    #[test]
    fn a_child_that_runs_is_found_and_counted() {
        let _turn = crate::CHILDREN.lock();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let pid = Pid::from_raw(child.id().try_into().expect("it is a pid"));
        let found = descendants().expect("there is /proc");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(found.iter().any(|process| process.pid == pid));
    }
}
