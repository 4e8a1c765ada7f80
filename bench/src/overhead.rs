//! What mcpproxy costs per call: the CPU time of the daemon's own process, and the delay a client
//! feels, beside the same calls through the floor and straight to the upstream.
//!
//! Everything runs in one go on the loopback address, in turns, so that whatever else the machine
//! does falls on all rows alike. Neither the client nor the upstream is counted as CPU time.

mod cpu;
mod driver;
mod messages;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;

use self::cpu::CpuTime;
use self::driver::{Driver, Load};
use self::messages::Messages;
use self::table::Row;
use crate::daemon;
use crate::floor::{PIPE, WEB};
use crate::process::Process;

/// Turns that the calls of a row are spread over; the middle one counts as its CPU time.
const ROUNDS: usize = 5;

/// Calls before the first that counts: connections are opened, code and caches are warm.
const WARM_UP: usize = 500;

/// Measures the daemon's CPU time per call and the delay it adds.
#[derive(Debug, Parser)]
#[command(name = "bench overhead")]
struct Options {
    /// Calls per row
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    calls: u32,
    /// Connections that call at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// The daemon to measure; without it, the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    daemon: Option<PathBuf>,
    /// Gives up after so many seconds
    #[arg(long, default_value_t = 300)]
    limit: u64,
}

/// A row under way: who is called, and what was seen so far.
struct Target<'a> {
    upstream: &'static str,
    path: &'static str,
    /// Whose CPU time counts; nobody's where the upstream is called directly.
    hop: Option<&'a Process>,
    driver: Driver,
    load: Load,
    cpu_per_call: Vec<Duration>,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse_from(std::iter::once(&"overhead").chain(arguments));
    let limit = Duration::from_secs(options.limit);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async { tokio::time::timeout(limit, measure(&options)).await })
        .context("not finished in time; everything that was started is ended")?
}

async fn measure(options: &Options) -> Result<()> {
    let own = std::env::current_exe()?;
    let program = daemon::program(options.daemon.as_deref())?;
    let home = tempfile::tempdir()?;
    let echo = Process::start(&own, &["echo-http"], home.path()).await?;
    let floor = Process::start(&own, &["floor", &echo.url()], home.path()).await?;
    let servers = json!({
        PIPE: {"command": own, "args": ["echo-stdio"]},
        WEB: {"url": echo.url()}
    });
    let daemon = daemon::start(&program, &servers, home.path()).await?;
    let measured = measure_all(options, &echo, &floor, &daemon).await;
    for process in [daemon, floor, echo] {
        process.stop().await?;
    }
    table::print(options.calls, options.concurrency, &measured?)
}

async fn measure_all(
    options: &Options,
    echo: &Process,
    floor: &Process,
    daemon: &Process,
) -> Result<Vec<Row>> {
    let rows = [
        ("stdio", "floor", Some(floor), floor, Messages::floor(PIPE)),
        (
            "stdio",
            "mcpproxy",
            Some(daemon),
            daemon,
            Messages::daemon(PIPE),
        ),
        ("HTTP", "direct", None, echo, Messages::upstream()),
        ("HTTP", "floor", Some(floor), floor, Messages::floor(WEB)),
        (
            "HTTP",
            "mcpproxy",
            Some(daemon),
            daemon,
            Messages::daemon(WEB),
        ),
    ];
    let mut targets = Vec::new();
    for (upstream, path, hop, called, messages) in rows {
        let connections = usize::from(options.concurrency);
        let mut driver = Driver::connect(called.address, messages, connections).await?;
        driver.run(WARM_UP).await?;
        targets.push(Target {
            upstream,
            path,
            hop,
            driver,
            load: Load::default(),
            cpu_per_call: Vec::new(),
        });
    }
    let calls = options.calls as usize / ROUNDS;
    for _ in 0..ROUNDS {
        for target in &mut targets {
            target.turn(calls).await?;
        }
    }
    Ok(targets.into_iter().map(Target::into_row).collect())
}

// === impl Target ===

impl Target<'_> {
    async fn turn(&mut self, calls: usize) -> Result<()> {
        let before = self.hop.map(|hop| CpuTime::of(hop.id)).transpose()?;
        let load = self.driver.run(calls).await?;
        let after = self.hop.map(|hop| CpuTime::of(hop.id)).transpose()?;
        if let (Some(before), Some(after)) = (before, after) {
            let made = u32::try_from(load.latencies.len())?;
            self.cpu_per_call.push(after.since(&before) / made);
        }
        self.load.add(load);
        Ok(())
    }

    fn into_row(self) -> Row {
        Row::new(self.upstream, self.path, self.cpu_per_call, self.load)
    }
}
