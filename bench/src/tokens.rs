//! What finding a tool costs an agent in tokens, over the tools of real servers.
//!
//! Starts the real daemon in front of servers from npm and PyPI, asks it as an agent does, and
//! counts what comes back. Beside that stands what the same agent would pay with every tool loaded.

mod agent;
mod counter;
mod install;
mod packages;
mod report;
mod task;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Parser;
use serde_json::{Map, Value, json};

use self::agent::Agent;
use self::counter::Counter;
use self::packages::PACKAGES;
use self::report::Report;
use self::task::Task;
use crate::daemon;

/// Counts what searches, descriptions and tool lists cost an agent
#[derive(Debug, Parser)]
#[command(name = "bench tokens")]
struct Options {
    /// Where the servers are installed; what is missing is fetched from npm and PyPI
    #[arg(default_value = ".test-tools/servers")]
    folder: PathBuf,
    /// The daemon to ask; without it, the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    daemon: Option<PathBuf>,
    /// Tasks to count, spread evenly over all tools
    #[arg(long, default_value_t = 150)]
    tasks: usize,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse_from(std::iter::once(&"tokens").chain(arguments));
    let program = daemon::program(options.daemon.as_deref())?;
    std::fs::create_dir_all(&options.folder)?;
    let folder = options.folder.canonicalize()?;
    install::install(&folder)?;
    let report = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(&program, &folder, options.tasks))?;
    report.write(&mut std::io::stdout().lock())
}

async fn measure(program: &Path, folder: &Path, tasks: usize) -> Result<Report> {
    let node = install::node();
    let servers: Map<String, Value> = PACKAGES
        .iter()
        .map(|package| (package.server.to_owned(), package.config(folder, &node)))
        .collect();
    let home = tempfile::tempdir()?;
    let config = json!({"mcpServers": servers});
    let process = daemon::start(program, &config, home.path()).await?;
    let report = ask(process.address, home.path(), tasks).await;
    process.stop().await?;
    report
}

async fn ask(address: std::net::SocketAddr, home: &Path, tasks: usize) -> Result<Report> {
    let mut agent = Agent::connect(address, home).await?;
    let silent = daemon::wait_for_servers(&mut agent.session, home).await?;
    let counter = Counter::new()?;
    let tools = agent.all_tools().await?;
    let mut report = Report::new(&counter, silent, &agent.own_tools().await?, &tools);
    for task in Task::spread(&tools, tasks) {
        report.add(task.carry_out(&mut agent, &counter).await?);
    }
    Ok(report)
}
