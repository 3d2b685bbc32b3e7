//! CPU time that a server has used, as the kernel books it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where a server's CPU time can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerCpu {
    /// It is the process of this number and its children.
    Of(u32),
    /// It runs in this process: what the clients' threads have not used is its.
    InThisProcess,
    /// It is not on this machine.
    Elsewhere,
}

/// What threads had used at a moment, by their numbers, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Used {
    threads: BTreeMap<u32, u64>,
}

impl ServerCpu {
    /// What has been used so far.
    pub(crate) fn used(self) -> Used {
        let mut used = Used::default();
        match self {
            Self::Of(process) => {
                used.add(process);
                children(process).into_iter().for_each(|child| used.add(child));
            }
            Self::InThisProcess => {
                let nanoseconds = u64::try_from(time_of(ClockId::ProcessCPUTime).as_nanos());
                used.threads.insert(0, nanoseconds.unwrap_or(u64::MAX));
            }
            Self::Elsewhere => {}
        }
        used
    }

    /// What the server has used since then, in nanoseconds; `clients` is what clients in this process have used.
    pub(crate) fn since(self, before: &Used, clients: Duration) -> Option<u64> {
        let clients = u64::try_from(clients.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Self::Of(_) => Some(self.used().since(before)),
            Self::InThisProcess => Some(self.used().since(before).saturating_sub(clients)),
            Self::Elsewhere => None,
        }
    }
}

impl Used {
    /// The first number of `schedstat` is the time on a processor, in nanoseconds.
    fn add(&mut self, process: u32) {
        for thread in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let used = text.split(' ').next().and_then(|number| number.parse::<u64>().ok());
            let number = thread.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            self.threads.extend(number.zip(used));
        }
    }

    /// A thread that was not there before has used all that it has used since.
    fn since(&self, before: &Self) -> u64 {
        let used = |(thread, now): (&u32, &u64)| {
            now.saturating_sub(before.threads.get(thread).copied().unwrap_or(0))
        };
        self.threads.iter().map(used).sum()
    }
}

/// The numbers of a process's children.
fn children(process: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// CPU time that this thread has used.
pub(crate) fn of_this_thread() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_s_cpu_time_is_its_own_and_its_children_s_from_when_it_was_first_looked_at() {
        let spin = "sh -c 'n=0; while [ $n -lt 300000 ]; do n=$((n + 1)); done' & wait";
        let mut parent = std::process::Command::new("sh").args(["-c", spin]).spawn().unwrap();
        let server = ServerCpu::Of(parent.id());
        let before = server.used();
        let began = std::time::Instant::now();
        let mut used = 0;
        while used < 5_000_000 && began.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(5));
            used = server.since(&before, Duration::ZERO).unwrap();
        }
        parent.wait().unwrap();
        assert!((5_000_000..10_000_000_000).contains(&used), "{used}");
        assert_eq!(ServerCpu::Elsewhere.since(&Used::default(), Duration::ZERO), None);
    }
}
