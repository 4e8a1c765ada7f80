//! What this process uses, as the system counts it.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::proc::{kilobytes, user_and_system};

/// The thread of a log that writes, as the system shows it.
const WRITER: &str = "(activity-writer)";

/// The memory that is this process's own, in kB; pages of files that are mapped do not count.
pub(super) fn used() -> Result<u64> {
    kilobytes(&fs::read_to_string("/proc/self/status")?, "RssAnon:")
}

/// The CPU time of all threads so far, and that of the log's own among them.
pub(super) fn cpu_time() -> Result<(Duration, Duration)> {
    let mut own = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task")? {
        let stat = fs::read_to_string(task?.path().join("stat"))?;
        if stat.contains(WRITER) {
            own += cpu_time_in(&stat)?;
        }
    }
    let all = cpu_time_in(&fs::read_to_string("/proc/self/stat")?)?;
    Ok((all, own))
}

fn cpu_time_in(stat: &str) -> Result<Duration> {
    let (user, system) = user_and_system(stat)?;
    Ok(user + system)
}
