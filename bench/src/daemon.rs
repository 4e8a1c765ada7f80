//! The real daemon as the other end of a measurement.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::process::Process;

/// Where a daemon that [`start`] started keeps its data, under its home.
pub(crate) const DATA: &str = "data";

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

/// Starts `program` in front of these upstreams, on a free port.
pub(crate) async fn start(program: &Path, servers: &Value, home: &Path) -> Result<Process> {
    let config = home.join("config.json");
    std::fs::write(&config, json!({"mcpServers": servers}).to_string())?;
    let (config, data) = (config.to_string_lossy(), home.join(DATA));
    let arguments = [
        "serve",
        "--config",
        &config,
        "--data-dir",
        &data.to_string_lossy(),
        "--listen",
        "127.0.0.1:0",
    ];
    Process::start(program, &arguments, home).await
}
