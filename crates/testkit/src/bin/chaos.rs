//! `chaos FAULT [--record FILE] [--http]`: an MCP server that misbehaves in the way named.
//!
//! Over stdio unless `--http`; then its address is the one line it prints.

use std::io::Write;
use std::path::PathBuf;

use clap::Parser;
use testkit::{Fault, HttpUpstream, Wire};

#[derive(Debug, Parser)]
struct Arguments {
    fault: Fault,
    /// Where to write down what arrives.
    #[arg(long, default_value = "/dev/null")]
    record: PathBuf,
    /// Listens on a free port instead of reading stdin.
    #[arg(long)]
    http: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    // The grandchild is this program again, called as the scripted upstream calls itself.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "--wait")
    {
        return testkit::wait_for_ever(false).await;
    }
    let Arguments {
        fault,
        record,
        http,
    } = Arguments::parse();
    if http {
        let script = fault.script().wire(Wire::EventStream);
        let upstream = HttpUpstream::recorded(&record, script).await;
        writeln!(std::io::stdout(), "{}", upstream.url())?;
        return std::future::pending().await;
    }
    let code = testkit::serve_script(fault.script(), &record).await?;
    end(code)
}

/// Ends at once: the runtime would otherwise wait for the thread that blocks on stdin.
#[expect(clippy::exit, reason = "the fault says when and how the process ends")]
fn end(code: i32) -> ! {
    std::process::exit(code)
}
