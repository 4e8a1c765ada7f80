//! The CPU time of another process.

use std::collections::HashMap;
use std::fs;
use std::ops::AddAssign;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::proc::{TICK, user_and_system};

/// A process that uses less than [`QUIET`] in a [`PAUSE`] has no work left of the calls before.
const PAUSE: Duration = Duration::from_millis(20);
const QUIET: Duration = Duration::from_micros(500);
const PATIENCE: Duration = Duration::from_secs(3);

/// The CPU time that a process has used so far.
#[derive(Debug)]
pub(super) struct CpuTime {
    /// To the nanosecond. By thread, because a thread that ends takes its count along, which must
    /// not lessen what the others used meanwhile.
    by_thread: HashMap<u32, Duration>,
    user: Duration,
    system: Duration,
}

/// The CPU time that a process used in a while.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuUse {
    pub(crate) total: Duration,
    /// Counted in ticks of 10 ms, hence only good for the share of the total.
    user: Duration,
    system: Duration,
}

/// Waits until a process has no work left of the calls before, such as records to be stored.
pub(crate) async fn wait_until_quiet(process: u32) -> Result<()> {
    CpuTime::when_quiet(process).await.map(drop)
}

// === impl CpuTime ===

impl CpuTime {
    pub(super) fn of(process: u32) -> Result<Self> {
        let directory = PathBuf::from(format!("/proc/{process}"));
        let mut by_thread = HashMap::new();
        for entry in fs::read_dir(directory.join("task")).context("the process is gone")? {
            let entry = entry?;
            let thread = entry.file_name().to_string_lossy().parse()?;
            // The thread may have ended since the directory was read.
            if let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) {
                by_thread.insert(thread, on_cpu(&text)?);
            }
        }
        let (user, system) = user_and_system(&fs::read_to_string(directory.join("stat"))?)?;
        Ok(Self {
            by_thread,
            user,
            system,
        })
    }

    /// See [`wait_until_quiet`].
    pub(super) async fn when_quiet(process: u32) -> Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        let mut before = Self::of(process)?;
        loop {
            sleep(PAUSE).await;
            let now = Self::of(process)?;
            if now.since(&before).total < QUIET || Instant::now() > deadline {
                return Ok(now);
            }
            before = now;
        }
    }

    pub(super) fn since(&self, earlier: &Self) -> CpuUse {
        let used = |(thread, now): (&u32, &Duration)| {
            let before = earlier.by_thread.get(thread).copied().unwrap_or_default();
            now.saturating_sub(before)
        };
        CpuUse {
            total: self.by_thread.iter().map(used).sum(),
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

// === impl CpuUse ===

impl CpuUse {
    /// The share that was spent outside the kernel, if enough was used to tell.
    pub(crate) fn user_share(&self) -> Option<f64> {
        let ticks = self.user + self.system;
        (ticks >= 10 * TICK).then(|| self.user.div_duration_f64(ticks))
    }
}

impl AddAssign for CpuUse {
    fn add_assign(&mut self, other: Self) {
        self.total += other.total;
        self.user += other.user;
        self.system += other.system;
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
        CpuTime {
            by_thread,
            user: Duration::ZERO,
            system: Duration::ZERO,
        }
    }

    #[test]
    fn threads_that_came_count_and_those_that_went_take_nothing_away() {
        let before = time(&[(1, 100), (2, 5_000)]);
        let after = time(&[(1, 150), (3, 7)]);
        assert_eq!(after.since(&before).total, Duration::from_nanos(57));
    }

    #[test]
    fn this_process_has_used_some() {
        let now = CpuTime::of(std::process::id()).unwrap();
        assert!(now.since(&time(&[])).total > Duration::ZERO);
        assert_eq!(on_cpu("12 3 4\n").unwrap(), Duration::from_nanos(12));
    }
}
