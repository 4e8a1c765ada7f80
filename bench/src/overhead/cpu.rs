//! The CPU time of another process, to the nanosecond.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

/// What each thread of a process has used so far. By thread, because a thread that ends takes its
/// count along, which must not lessen what the others used meanwhile.
#[derive(Debug)]
pub(super) struct CpuTime {
    by_thread: HashMap<u32, Duration>,
}

impl CpuTime {
    pub(super) fn of(process: u32) -> Result<Self> {
        let directory = PathBuf::from(format!("/proc/{process}/task"));
        let mut by_thread = HashMap::new();
        for entry in fs::read_dir(&directory).context("the process is gone")? {
            let entry = entry?;
            let thread = entry.file_name().to_string_lossy().parse()?;
            // The thread may have ended since the directory was read.
            if let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) {
                by_thread.insert(thread, on_cpu(&text)?);
            }
        }
        Ok(Self { by_thread })
    }

    pub(super) fn since(&self, earlier: &Self) -> Duration {
        let used = |(thread, now): (&u32, &Duration)| {
            let before = earlier.by_thread.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        };
        self.by_thread.iter().map(used).sum()
    }
}

/// The first of the three numbers of `schedstat`: nanoseconds spent on a CPU.
fn on_cpu(schedstat: &str) -> Result<Duration> {
    let first = schedstat.split_whitespace().next();
    let nanoseconds = first.context("schedstat is empty")?.parse()?;
    Ok(Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(threads: &[(u32, u64)]) -> CpuTime {
        let by_thread = threads
            .iter()
            .map(|(thread, used)| (*thread, Duration::from_nanos(*used)))
            .collect();
        CpuTime { by_thread }
    }

    #[test]
    fn threads_that_came_count_and_those_that_went_take_nothing_away() {
        let before = time(&[(1, 100), (2, 5_000)]);
        let after = time(&[(1, 150), (3, 7)]);
        assert_eq!(after.since(&before), Duration::from_nanos(57));
    }

    #[test]
    fn this_process_has_used_some() {
        let time = CpuTime::of(std::process::id()).unwrap();
        assert!(time.since(&CpuTime::of(1).unwrap_or(self::time(&[]))) > Duration::ZERO);
        assert_eq!(on_cpu("12 3 4\n").unwrap(), Duration::from_nanos(12));
    }
}
