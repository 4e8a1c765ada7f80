//! `faults [--only ID] [--attacks | --faults] [--soak SECONDS]`: tries every fault and every attack on
//! the real binary and prints one table. `scripts/faults` builds what it needs and runs it.

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let passed = testkit::faults::run(testkit::faults::Arguments::parse()).await?;
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
