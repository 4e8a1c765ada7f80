//! Processes as the system sees them, by pid.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// Whether a process runs. One that ended but was not collected by its parent does not.
pub fn is_alive(pid: u32) -> bool {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    let Ok(stat) = std::fs::read_to_string(stat) else {
        return false;
    };
    // The name in parentheses may hold anything; the state follows the last one.
    let state = stat.rsplit(')').next().map(str::trim_start);
    !state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// SIGKILL.
pub fn kill(pid: u32) {
    send(pid, Signal::KILL);
}

/// SIGTERM.
pub fn terminate(pid: u32) {
    send(pid, Signal::TERM);
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // It may have ended already, which is as good.
    let _ = kill_process(pid.expect("a pid"), signal);
}
