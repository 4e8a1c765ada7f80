//! `bench compare --idle`: the memory of a daemon that has nothing to do.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::daemon;
use crate::proc::{kilobytes, stat_fields};
use crate::process::Process;

const SERVERS: usize = 10;
const TOOLS: usize = 50;

/// Memory has settled when it stayed the same, up to [`SAME_KB`], for [`SETTLED`] looks in a row.
/// That is longer than the 10 s that the runtime keeps idle threads.
const PAUSE: Duration = Duration::from_secs(1);
const SETTLED: usize = 12;
const SAME_KB: u64 = 64;
const PATIENCE: Duration = Duration::from_mins(2);

/// Proportional set sizes in kB: a page that several processes share counts in part for each.
#[derive(Debug, Serialize)]
pub(super) struct Idle {
    daemon: u64,
    helpers: Vec<u64>,
    total: u64,
}

pub(super) async fn measure(program: &Path) -> Result<Idle> {
    let own = std::env::current_exe()?;
    let home = tempfile::tempdir()?;
    let server = json!({"command": own, "args": ["echo-stdio", TOOLS.to_string()]});
    let servers: Map<String, Value> = (0..SERVERS)
        .map(|number| (format!("server-{number}"), server.clone()))
        .collect();
    let config = json!({"mcpServers": servers});
    let daemon = daemon::start(program, &config, home.path()).await?;
    daemon::ready(&daemon, home.path()).await?;
    let idle = settled(&daemon, &own).await;
    daemon.stop().await?;
    idle
}

async fn settled(daemon: &Process, servers: &Path) -> Result<Idle> {
    let deadline = Instant::now() + PATIENCE;
    let mut last = Idle::now(daemon.id, servers)?;
    let mut unchanged = 0;
    while unchanged < SETTLED {
        ensure!(Instant::now() < deadline, "memory did not settle: {last:?}");
        sleep(PAUSE).await;
        let now = Idle::now(daemon.id, servers)?;
        let same = now.total.abs_diff(last.total) <= SAME_KB;
        unchanged = if same { unchanged + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

// === impl Idle ===

impl Idle {
    /// Of the daemon and all processes below it that do not run `servers`.
    fn now(daemon: u32, servers: &Path) -> Result<Self> {
        let is_server = |process: &u32| {
            let program = fs::read_link(format!("/proc/{process}/exe"));
            program.is_ok_and(|program| program == servers)
        };
        let own = pss(daemon)?;
        let helpers = descendants(daemon)?
            .into_iter()
            .filter(|process| !is_server(process))
            .map(pss)
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            daemon: own,
            total: own + helpers.iter().sum::<u64>(),
            helpers,
        })
    }

    pub(super) fn print(&self) -> Result<()> {
        writeln!(
            std::io::stdout(),
            "idle memory, {SERVERS} stdio upstreams with {TOOLS} tools each, PSS in kB\n\
             daemon    {:>8}\n\
             helpers   {:>8}   {} processes\n\
             together  {:>8}",
            self.daemon,
            self.total - self.daemon,
            self.helpers.len(),
            self.total
        )?;
        Ok(())
    }
}

/// The processes that a process started, directly or through others.
fn descendants(process: u32) -> Result<Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(child) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        // A process may end between two lines of this.
        if let Ok(stat) = fs::read_to_string(entry.path().join("stat")) {
            children.entry(parent(&stat)?).or_default().push(child);
        }
    }
    let mut found = Vec::new();
    let mut unseen = vec![process];
    while let Some(next) = unseen.pop() {
        let below = children.remove(&next).unwrap_or_default();
        unseen.extend(&below);
        found.extend(below);
    }
    Ok(found)
}

fn parent(stat: &str) -> Result<u32> {
    let parent = stat_fields(stat)?.nth(1).context("stat is short")?;
    Ok(parent.parse()?)
}

fn pss(process: u32) -> Result<u64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
    kilobytes(&rollup, "Pss:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_descends_from_its_parent() {
        let own = std::process::id();
        assert!(pss(own).unwrap() > 0);
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let parent = parent(&stat).unwrap();
        assert!(descendants(parent).unwrap().contains(&own));
    }
}
