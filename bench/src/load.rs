//! Calls of several clients on several paths, taken in turns so that whatever else the machine
//! does falls on all paths alike.

mod call;
mod cpu;
mod driver;
mod statistics;
mod stdio;

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;

pub(crate) use self::call::Call;
pub(crate) use self::cpu::wait_until_quiet;
use self::cpu::{CpuTime, CpuUse};
pub(crate) use self::driver::{Driver, Endpoint};
pub(crate) use self::statistics::Spread;
use self::statistics::percentile;
pub(crate) use self::stdio::StdioServer;

/// A path under measurement.
#[derive(Debug)]
pub(crate) struct Target {
    driver: Driver,
    /// The process whose CPU time counts; none where the upstream is called directly.
    hop: Option<u32>,
    rounds: Vec<Round>,
}

/// What was seen in one turn of a target.
#[derive(Debug)]
struct Round {
    latencies: Vec<Duration>,
    elapsed: Duration,
    cpu: Option<CpuUse>,
}

/// What a number of calls cost. Times are in µs.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Figures {
    pub(crate) calls: usize,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) calls_per_second: f64,
    /// The hop's CPU time per call.
    pub(crate) cpu: Option<f64>,
    pub(crate) user: Option<f64>,
    pub(crate) system: Option<f64>,
}

/// The figures of one target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Measured {
    /// Of the calls of all rounds together.
    pub(crate) all: Figures,
    pub(crate) rounds: Vec<Figures>,
}

/// Gives every target `rounds` turns of `calls` calls each. Each round starts with another target.
pub(crate) async fn take_turns(
    mut targets: Vec<Target>,
    rounds: usize,
    calls: usize,
) -> Result<Vec<Measured>> {
    let count = targets.len();
    for round in 0..rounds {
        for turn in 0..count {
            if let Some(target) = targets.get_mut((round + turn) % count) {
                target.turn(calls).await?;
            }
        }
    }
    Ok(targets.into_iter().map(Target::into_measured).collect())
}

// === impl Target ===

impl Target {
    /// Makes `warm_up` calls that do not count: code and caches are warm after them.
    pub(crate) async fn new(mut driver: Driver, hop: Option<u32>, warm_up: usize) -> Result<Self> {
        driver.run(warm_up).await?;
        Ok(Self {
            driver,
            hop,
            rounds: Vec::new(),
        })
    }

    async fn turn(&mut self, calls: usize) -> Result<()> {
        let before = self.hop.map(CpuTime::of).transpose()?;
        let load = self.driver.run(calls).await?;
        let cpu = match (self.hop, before) {
            (Some(hop), Some(before)) => Some(CpuTime::when_quiet(hop).await?.since(&before)),
            _ => None,
        };
        self.rounds.push(Round {
            latencies: load.latencies,
            elapsed: load.elapsed,
            cpu,
        });
        Ok(())
    }

    fn into_measured(self) -> Measured {
        let rounds = self
            .rounds
            .iter()
            .map(|round| Figures::of([round]))
            .collect();
        Measured {
            all: Figures::of(&self.rounds),
            rounds,
        }
    }
}

// === impl Figures ===

impl Figures {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of calls are far below 2^52"
    )]
    fn of<'a>(rounds: impl IntoIterator<Item = &'a Round>) -> Self {
        let mut latencies = Vec::new();
        let mut elapsed = Duration::ZERO;
        let mut used: Option<CpuUse> = None;
        for round in rounds {
            latencies.extend_from_slice(&round.latencies);
            elapsed += round.elapsed;
            if let Some(cpu) = round.cpu {
                *used.get_or_insert_default() += cpu;
            }
        }
        latencies.sort_unstable();
        let calls = latencies.len() as f64;
        let cpu = used.map(|used| microseconds(used.total) / calls);
        let split = cpu.zip(used.and_then(|used| used.user_share()));
        Self {
            calls: latencies.len(),
            p50: microseconds(percentile(&latencies, 50)),
            p99: microseconds(percentile(&latencies, 99)),
            calls_per_second: calls / elapsed.as_secs_f64(),
            cpu,
            user: split.map(|(cpu, share)| cpu * share),
            system: split.map(|(cpu, share)| cpu * (1.0 - share)),
        }
    }
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
