//! When a process was started, to tell it apart from a later one with the same pid.

/// The start time of a process in clock ticks since boot. `None` if there is no such process.
#[cfg(target_os = "linux")]
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    /// Position of the start time after the state, which is field 3 of 22.
    const AFTER_STATE: usize = 18;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    fields.nth(AFTER_STATE)?.parse().ok()
}

/// Other systems have no interface for it that is safe to call; pids are not compared there.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_time(_pid: u32) -> Option<u64> {
    None
}
