//! What this process uses, as the system counts it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Ticks of `/proc/self/stat`; the same on every Linux that Rust runs on.
const TICK: Duration = Duration::from_millis(10);

/// The thread of a log that writes, as the system shows it.
const WRITER: &str = "(activity-writer)";

/// The memory that is this process's own, in kB; pages of files that are mapped do not count.
pub(super) fn used() -> Result<u64> {
    status("RssAnon:")
}

fn status(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    let number = value.and_then(|value| value.split_whitespace().next());
    Ok(number.context("a member of the status")?.parse()?)
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
    // The name in parentheses may hold anything; the numbers follow the last one.
    let (_, numbers) = stat.rsplit_once(')').context("a name")?;
    let ticks = numbers
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(str::parse::<u32>)
        .sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}
