//! Processes as the system sees them, by pid.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// Whether a process runs the scripted upstream's program.
pub fn runs_upstream(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = program.file_name().unwrap_or_default();
    // One that was built anew meanwhile is marked as deleted.
    name.to_string_lossy().starts_with("scripted-upstream")
}

/// Whether a process was started with this folder as its home.
pub fn runs_in(pid: u32, home: &Path) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = [b"HOME=", home.as_os_str().as_bytes()].concat();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == wanted)
}

/// The process that watches over the children of `parent`.
pub fn watchdog_of(parent: u32) -> Option<u32> {
    let of_parent = format!("{parent} ");
    all().find(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.split_once(" (child-watchdog) ");
        // The state, a space and the parent. What ended but was not collected is not one.
        fields.is_some_and(|(_, fields)| {
            !fields.starts_with('Z')
                && fields
                    .get(2..)
                    .is_some_and(|rest| rest.starts_with(&of_parent))
        })
    })
}

/// The pids of all processes.
pub fn all() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
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
