//! The real daemon as the other end of a measurement.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::process::Process;
use crate::session::{MCP, Session};

/// Where a daemon that [`start`] started keeps its data, under its home.
pub(crate) const DATA: &str = "data";

/// How long all servers together may take to start.
const PATIENCE: Duration = Duration::from_mins(4);
const PAUSE: Duration = Duration::from_millis(100);

/// The program to measure: the one that is named, else the one built beside this.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf> {
    let program = match named {
        Some(named) => named.to_owned(),
        None => std::env::current_exe()?.with_file_name("mcpproxy"),
    };
    if !program.is_file() {
        bail!(
            "{} is not there; build it with `cargo build --release -p cli`, or name it with --daemon",
            program.display()
        );
    }
    Ok(program)
}

/// A config for measuring calls: results are not cut, and no limit refuses a thousand clients.
pub(crate) fn config(servers: &Value) -> Value {
    json!({
        "mcpServers": servers,
        "tool_response_limit": 0,
        "limits": {
            "connections": 4_096,
            "sessions": 4_096,
            "queued_calls": 4_096,
            "unread_bytes": 1_u32 << 30
        }
    })
}

/// Starts `program` with this config, on a free port.
pub(crate) async fn start(program: &Path, config: &Value, home: &Path) -> Result<Process> {
    start_under(&[], program, config, home).await
}

/// Starts `program` as the last argument of another command, or by itself if that is empty.
pub(crate) async fn start_under(
    command: &[&str],
    program: &Path,
    config: &Value,
    home: &Path,
) -> Result<Process> {
    let file = home.join("config.json");
    std::fs::write(&file, config.to_string())?;
    let (program, file) = (program.to_string_lossy(), file.to_string_lossy());
    let data = home.join(DATA);
    let data = data.to_string_lossy();
    let own = [
        &*program,
        "serve",
        "--config",
        &file,
        "--data-dir",
        &data,
        "--listen",
        "127.0.0.1:0",
    ];
    let whole = [command, own.as_slice()].concat();
    let (first, arguments) = whole.split_first().context("no command")?;
    Process::start(Path::new(first), arguments, home).await
}

/// Waits until every server listed its tools or failed; returns those that failed, and why.
pub(crate) async fn wait_for_servers(session: &mut Session, home: &Path) -> Result<Vec<String>> {
    let key = std::fs::read_to_string(home.join(DATA).join("api_key"));
    let key = key.context("the daemon has no key")?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let servers = session.api("/servers", &key).await?;
        let servers = servers["servers"]
            .as_array()
            .context("no list of servers")?;
        let waiting = servers.iter().any(|server| server["state"] == "connecting");
        if !waiting || Instant::now() > deadline {
            let silent = servers.iter().filter(|server| server["state"] != "ready");
            return Ok(silent
                .map(|server| format!("{}: {}", server["name"], server["last_error"]))
                .collect());
        }
        sleep(PAUSE).await;
    }
}

/// Waits until every server is ready.
pub(crate) async fn ready(daemon: &Process, home: &Path) -> Result<()> {
    let mut session = Session::open(daemon.address, MCP).await?;
    let failed = wait_for_servers(&mut session, home).await?;
    ensure!(failed.is_empty(), "not ready: {}", failed.join(", "));
    Ok(())
}
