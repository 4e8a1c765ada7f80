//! `bench growth`: what a call costs as upstreams, tools, clients and records become many.
//!
//! The daemons of one series take turns. Each is compared with the first of its series.

use std::io::Write;
use std::path::{Path, PathBuf};

use activity::Activity;
use anyhow::{Context, Result};
use clap::Parser;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::activity::{fill, open};
use crate::daemon::{self, DATA};
use crate::load::{Call, Driver, Figures, Measured, Spread, Target, take_turns};
use crate::process::Process;
use crate::tool::{Lane, Size, Tool};

/// The name of the upstream that is called.
const CALLED: &str = "server-0";
const WARM_UP: usize = 300;
const CLIENTS: [usize; 2] = [1, 16];

/// Measures how the cost of a call grows with the size of an installation
#[derive(Debug, Parser)]
#[command(name = "bench growth")]
struct Options {
    /// Turns of each daemon
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Calls per row
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
    /// Leaves out sizes above this
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    most: usize,
    /// The daemon to measure; without it, the one that was built beside this program
    #[arg(long, value_name = "FILE")]
    daemon: Option<PathBuf>,
}

/// What grows.
#[derive(Debug, Clone, Copy)]
enum Series {
    Upstreams,
    Tools,
    Clients,
    Records,
}

/// A daemon with its data, and the size it has in its series.
struct Subject {
    size: usize,
    process: Process,
    _home: TempDir,
}

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse_from(std::iter::once(&"growth").chain(arguments));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(measure(&options))
}

async fn measure(options: &Options) -> Result<()> {
    let program = daemon::program(options.daemon.as_deref())?;
    writeln!(
        std::io::stdout(),
        "{:<10} {:>9} {:>8} {:>8} {:<22} {:>8} {:<22} {:>8}",
        "what grows",
        "size",
        "clients",
        "CPU, µs",
        "x the first",
        "p50, µs",
        "x the first",
        "calls/s"
    )?;
    for series in [
        Series::Upstreams,
        Series::Tools,
        Series::Clients,
        Series::Records,
    ] {
        series
            .measure(options, &program)
            .await
            .with_context(|| series.name())?;
    }
    Ok(())
}

// === impl Series ===

impl Series {
    fn name(self) -> &'static str {
        match self {
            Self::Upstreams => "upstreams",
            Self::Tools => "tools",
            Self::Clients => "clients",
            Self::Records => "records",
        }
    }

    fn sizes(self) -> &'static [usize] {
        match self {
            Self::Upstreams => &[1, 10, 50, 200],
            Self::Tools => &[10, 100, 1_000, 10_000],
            Self::Clients => &[1, 16, 128, 1_000],
            Self::Records => &[0, 100_000, 1_000_000],
        }
    }

    async fn measure(self, options: &Options, program: &Path) -> Result<()> {
        let sizes = self.sizes().iter().filter(|&&size| size <= options.most);
        let mut subjects = Vec::new();
        for &size in sizes {
            subjects.push(self.start(size, program).await?);
        }
        let loads: &[Option<usize>] = match self {
            Self::Clients => &[None],
            _ => &CLIENTS.map(Some),
        };
        for &clients in loads {
            let mut targets = Vec::new();
            for subject in &subjects {
                let clients = clients.unwrap_or(subject.size);
                targets.push(subject.target(clients).await?);
            }
            let rounds = usize::from(options.rounds);
            let calls = usize::try_from(options.calls)?.div_ceil(rounds);
            let measured = take_turns(targets, rounds, calls).await?;
            for (subject, row) in subjects.iter().zip(&measured) {
                let clients = clients.unwrap_or(subject.size);
                print(self, subject.size, clients, row, measured.first())?;
            }
        }
        for subject in subjects {
            subject.process.stop().await?;
        }
        Ok(())
    }

    async fn start(self, size: usize, program: &Path) -> Result<Subject> {
        let home = tempfile::tempdir()?;
        let (upstreams, tools) = match self {
            Self::Upstreams => (size, 0),
            Self::Tools => (1, size),
            Self::Clients => (1, 0),
            Self::Records => {
                fill_log(&home.path().join(DATA).join("activity"), size).await?;
                (1, 0)
            }
        };
        let own = std::env::current_exe()?;
        let server = json!({"command": own, "args": ["echo-stdio", tools.to_string()]});
        let servers: Map<String, Value> = (0..upstreams)
            .map(|number| (format!("server-{number}"), server.clone()))
            .collect();
        let mut config = daemon::config(&servers.into());
        // The records of the largest log are to stay.
        config["activity"] = json!({"max_records": 0, "max_size_mb": 0});
        let process = daemon::start(program, &config, home.path()).await?;
        daemon::ready(&process, home.path()).await?;
        Ok(Subject {
            size,
            process,
            _home: home,
        })
    }
}

async fn fill_log(directory: &Path, records: usize) -> Result<()> {
    if records == 0 {
        return Ok(());
    }
    let store = open(directory)?;
    fill::fill(&store, u64::try_from(records)?).await?;
    Activity::new(store, fill::settings()?).close().await?;
    Ok(())
}

// === impl Subject ===

impl Subject {
    async fn target(&self, clients: usize) -> Result<Target> {
        let (lane, size) = (Lane::Read, Size::Small);
        let call = Call::daemon(CALLED, Tool { lane, size });
        let driver = Driver::connect(&self.process.endpoint(), &call, clients).await?;
        Target::new(driver, Some(self.process.id), WARM_UP).await
    }
}

fn print(
    series: Series,
    size: usize,
    clients: usize,
    row: &Measured,
    first: Option<&Measured>,
) -> Result<()> {
    let ratio = |of: fn(&Figures) -> Option<f64>| {
        let rounds = row
            .rounds
            .iter()
            .zip(first.into_iter().flat_map(|first| &first.rounds));
        let spread = Spread::of(rounds.filter_map(|(row, first)| Some(of(row)? / of(first)?)));
        spread.map_or_else(|| "-".to_owned(), |spread| spread.to_string())
    };
    writeln!(
        std::io::stdout(),
        "{:<10} {size:>9} {clients:>8} {:>8.1} {:<22} {:>8.1} {:<22} {:>8.0}",
        series.name(),
        row.all.cpu.unwrap_or_default(),
        ratio(|figures| figures.cpu),
        row.all.p50,
        ratio(|figures| Some(figures.p50)),
        row.all.calls_per_second
    )?;
    Ok(())
}
