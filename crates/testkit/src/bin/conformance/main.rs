//! `conformance --node NODE --suite SUITE [--only TEXT]`: judges the fixture, and mcpproxy in front
//! of it, with the protocol's own conformance suite, and prints what came of it as a table.
//!
//! It fails when a scenario, scored or not, does not pass and the protocol gives no reason why it
//! could not. `scripts/conformance` installs what it needs and runs it.

mod comparison;
mod leg;
mod place;
mod prefix;
mod report;
mod suite;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use futures_util::{StreamExt, stream};

use crate::leg::LEGS;
use crate::suite::Suite;

/// Legs at the same time; the suite spends most of its time waiting.
const AT_ONCE: usize = 3;

#[derive(Debug, Parser)]
struct Arguments {
    /// Node, 22 or newer.
    #[arg(long)]
    node: PathBuf,
    /// The suite's script.
    #[arg(long)]
    suite: PathBuf,
    /// Only the legs and servers with this in their title.
    #[arg(long, default_value = "")]
    only: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let Arguments { node, suite, only } = Arguments::parse();
    let suite = Suite {
        node,
        script: suite,
    };
    let legs: Vec<_> = LEGS
        .iter()
        .filter(|leg| leg.title.contains(&only))
        .collect();
    let runs = stream::iter(legs.into_iter().map(|leg| leg.run(&suite)));
    let runs: Vec<_> = runs.buffered(AT_ONCE).collect().await;
    let results = runs.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let comparisons = comparison::run(&suite, &only).await?;
    anyhow::ensure!(
        !results.is_empty() || !comparisons.is_empty(),
        "no leg and no server has '{only}' in its title"
    );
    let mut out = std::io::stdout();
    writeln!(out, "{}", report::of(&results))?;
    writeln!(out, "{}", report::of_comparisons(&comparisons))?;
    let passed = results.iter().all(leg::LegResult::passed)
        && comparisons.iter().all(comparison::Comparison::holds);
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
