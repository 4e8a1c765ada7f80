//! `bench compare`: what mcpproxy costs a call, beside the same calls straight to the upstream,
//! through the floor, and through other proxies.
//!
//! The paths take turns, so that whatever else the machine does falls on all of them alike.
//! Neither the clients nor the upstream are counted as CPU time.

mod case;
mod idle;
mod paths;
mod row;
mod table;
mod wanted;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use serde::Serialize;
use serde_json::json;

use self::case::{Case, Choice, Cores};
use self::paths::{Paths, Peer};
use self::row::Row;
use crate::affinity::PinnedToOneCpu;
use crate::daemon;
use crate::load::take_turns;

/// Compares the daemon with a minimal proxy and with calling the upstream directly
#[derive(Debug, Parser)]
#[command(name = "bench compare")]
struct Options {
    #[command(flatten)]
    choice: Choice,
    /// Turns that the calls of a path are spread over; ratios are taken round by round
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Calls per path with results of 1k; a fifth of them with 100k, a hundredth with 5m
    #[arg(long, default_value_t = 10_500, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
    /// An MCP endpoint on the loopback address to compare with, and a call to it. `{upstream}`,
    /// `{size}` and `{lane}` in TOOL and ARGS stand for `pipe` or `web`, `1k` and `read` and so on
    #[arg(long = "peer", value_name = "URL,TOOL,ARGS")]
    peers: Vec<Peer>,
    /// Measures only the memory of an idle daemon with 10 stdio upstreams of 50 tools each
    #[arg(long)]
    idle: bool,
    /// The daemon to measure; without it, the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    daemon: Option<PathBuf>,
    /// Writes all figures to a file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Gives up after this many seconds
    #[arg(long, default_value_t = 1_800)]
    limit: u64,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse_from(std::iter::once(&"compare").chain(arguments));
    if cfg!(debug_assertions) {
        let warning = "warning: built without --release, so the floor is slower than it should be";
        writeln!(std::io::stderr(), "{warning}")?;
    }
    let limit = Duration::from_secs(options.limit);
    // One thread, so that pinning it pins the clients and all it starts.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async { tokio::time::timeout(limit, compare(&options)).await })
        .context("not finished in time; everything that was started is ended")?
}

async fn compare(options: &Options) -> Result<()> {
    let program = daemon::program(options.daemon.as_deref())?;
    if options.idle {
        let idle = idle::measure(&program).await?;
        idle.print()?;
        return write_json(options, &idle);
    }
    let mut rows = measure_all(options, Cores::All, &program).await?;
    {
        let _pinned = PinnedToOneCpu::new()?;
        rows.extend(measure_all(options, Cores::One, &program).await?);
    }
    let outcomes = wanted::outcomes(&rows);
    wanted::print(&outcomes)?;
    write_json(options, &json!({"wanted": outcomes, "rows": rows}))
}

fn write_json(options: &Options, figures: &impl Serialize) -> Result<()> {
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(figures)?)?;
    }
    Ok(())
}

async fn measure_all(options: &Options, cores: Cores, program: &Path) -> Result<Vec<Row>> {
    let cases = options.choice.cases(cores);
    let mut rows = Vec::new();
    if cases.is_empty() {
        return Ok(rows);
    }
    let paths = Paths::start(program, &options.peers).await?;
    for case in cases {
        let of_case = measure(options, &paths, case)
            .await
            .with_context(|| case.to_string())?;
        table::print(&of_case)?;
        rows.extend(of_case);
    }
    paths.stop().await?;
    Ok(rows)
}

async fn measure(options: &Options, paths: &Paths, case: Case) -> Result<Vec<Row>> {
    let (names, targets): (Vec<_>, Vec<_>) = paths.targets(case).await?.into_iter().unzip();
    let rounds = usize::from(options.rounds);
    let calls = usize::try_from(options.calls)?.div_ceil(rounds * case.size.weight());
    let measured = take_turns(targets, rounds, calls).await?;
    Ok(row::rows(case, names.into_iter().zip(measured).collect()))
}
