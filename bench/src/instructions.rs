//! `bench instructions`: instructions that the daemon executes per call, counted by callgrind.
//!
//! Unlike times, these do not depend on what else the machine does.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::json;
use tokio::process::Command;

use crate::daemon;
use crate::floor::{PIPE, WEB};
use crate::load::{Call, Driver, wait_until_quiet};
use crate::process::Process;
use crate::tool::{Lane, Size, Tool};

const WARM_UP: usize = 300;

/// Counts the daemon's instructions per read call of one client, over stdio and over HTTP
#[derive(Debug, Parser)]
#[command(name = "bench instructions")]
struct Options {
    /// Calls per kind of upstream
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    calls: u32,
    /// The daemon to measure; without it, the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    daemon: Option<PathBuf>,
    /// Keeps the profiles in this directory, for `callgrind_annotate`
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse_from(std::iter::once(&"instructions").chain(arguments));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<()> {
    let program = daemon::program(options.daemon.as_deref())?;
    callgrind_control(&["--version"]).await.context(
        "valgrind is needed for this; install it, for example with `apt install valgrind`",
    )?;
    let home = tempfile::tempdir()?;
    let own = std::env::current_exe()?;
    let echo = Process::start(&own, &["echo-http"], home.path()).await?;
    let config = daemon::config(&json!({
        PIPE: {"command": own, "args": ["echo-stdio"]},
        WEB: {"url": echo.url()}
    }));
    let folder = options.keep.as_deref().unwrap_or(home.path());
    std::fs::create_dir_all(folder)?;
    let profile = std::path::absolute(folder)?.join("callgrind.out");
    let out = format!("--callgrind-out-file={}", profile.display());
    let valgrind = ["valgrind", "--tool=callgrind", &out];
    let daemon = daemon::start_under(&valgrind, &program, &config, home.path()).await?;
    daemon::ready(&daemon, home.path()).await?;
    // Callgrind numbers its dumps.
    for (server, kind, dump) in [(PIPE, "stdio", "1"), (WEB, "HTTP", "2")] {
        calls(&daemon, server, options.calls).await?;
        let count = total(&profile.with_added_extension(dump))? / u64::from(options.calls);
        writeln!(
            std::io::stdout(),
            "{kind:<6} {count:>9} instructions per call"
        )?;
    }
    daemon.stop().await?;
    echo.stop().await
}

/// Makes the calls and has callgrind write down what they cost.
async fn calls(daemon: &Process, server: &str, calls: u32) -> Result<()> {
    let (lane, size) = (Lane::Read, Size::Small);
    let call = Call::daemon(server, Tool { lane, size });
    let mut driver = Driver::connect(&daemon.endpoint(), &call, 1).await?;
    driver.run(WARM_UP).await?;
    wait_until_quiet(daemon.id).await?;
    let id = daemon.id.to_string();
    callgrind_control(&["--zero", &id]).await?;
    driver.run(usize::try_from(calls)?).await?;
    wait_until_quiet(daemon.id).await?;
    callgrind_control(&["--dump", &id]).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "waited for here, and part of no measurement"
)]
async fn callgrind_control(arguments: &[&str]) -> Result<()> {
    let output = Command::new("callgrind_control")
        .args(arguments)
        // It meets valgrind in this directory, and valgrind was started without the variable.
        .env_remove("TMPDIR")
        .output()
        .await
        .context("cannot run callgrind_control")?;
    ensure!(
        output.status.success(),
        "callgrind_control failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// The instructions that a profile counts.
fn total(profile: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(profile)
        .with_context(|| format!("callgrind did not write {}", profile.display()))?;
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(totals
        .context("the profile has no totals")?
        .trim()
        .parse()?)
}
