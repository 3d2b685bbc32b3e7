//! Whether the processor has time to spare.

use std::fs::File;
use std::io::Read;

use rustix::thread::{CpuSet, sched_getaffinity};

/// What the system says of its cores.
pub(super) struct Cores {
    /// Memory of it.
    text: String,
}

impl Default for Cores {
    fn default() -> Self {
        Self { text: String::with_capacity(64 << 10) } // enough for hundreds of cores
    }
}

impl Cores {
    /// How long this process's cores have been idle, in the system's ticks of 10 ms; `None` where it does not say.
    pub(super) fn idle_ticks(&mut self) -> Option<u64> {
        self.text.clear();
        File::open("/proc/stat").ok()?.read_to_string(&mut self.text).ok()?;
        sum(&self.text, &sched_getaffinity(None).ok()?)
    }
}

fn sum(stat: &str, cores: &CpuSet) -> Option<u64> {
    let mut total = None;
    for line in stat.lines() {
        let Some((number, times)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let Ok(number) = number.parse() else { continue }; // the sum of all
        if number < CpuSet::MAX_CPU && cores.is_set(number) {
            // user, nice, system, idle
            let idle: u64 = times.split(' ').nth(3)?.parse().ok()?;
            total = Some(total.unwrap_or(0) + idle);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cores_of_this_process_count() {
        let stat = "cpu  9 9 9 60 9\ncpu0 1 2 3 10 5\ncpu1 1 2 3 20 5\ncpu2 1 2 3 30 5\nintr 7 7 7 7\n";
        let mut cores = CpuSet::new();
        assert_eq!(sum(stat, &cores), None);
        cores.set(0);
        cores.set(2);
        assert_eq!(sum(stat, &cores), Some(40));
        assert_eq!(sum("cpu0 1", &cores), None);
    }
}
