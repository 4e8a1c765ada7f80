//! The daemon as the system sees it: memory, file descriptors, processes.

use std::collections::BTreeMap;
use std::fs;

use crate::process;

/// What a process holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    pub(super) rss_mib: f64,
    pub(super) fds: usize,
}

/// A process in the table of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) parent: u32,
    pub(super) zombie: bool,
}

impl Usage {
    pub(super) fn of(pid: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        let fds = fs::read_dir(format!("/proc/{pid}/fd"));
        Self {
            rss_mib: kib.unwrap_or(0.0) / 1024.0,
            fds: fds.map_or(0, Iterator::count),
        }
    }
}

/// All processes by pid.
pub(super) fn processes() -> BTreeMap<u32, Process> {
    process::all()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name in parentheses may hold anything.
            let mut fields = stat.rsplit(')').next()?.split_whitespace();
            let zombie = fields.next()? == "Z";
            let parent = fields.next()?.parse().ok()?;
            Some((pid, Process { parent, zombie }))
        })
        .collect()
}

/// The processes that descend from `root`, which is not among them.
pub(super) fn descendants(root: u32) -> BTreeMap<u32, Process> {
    let all = processes();
    let descends = |pid: u32| {
        let mut current = pid;
        while let Some(process) = all.get(&current) {
            if process.parent == root {
                return true;
            }
            current = process.parent;
        }
        false
    };
    let found = all.iter().filter(|(pid, _)| descends(**pid));
    found
        .map(|(pid, process)| (*pid, process.clone()))
        .collect()
}
