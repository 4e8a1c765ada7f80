//! `conformance-upstream --transport http|stdio|sse --era both|legacy|modern [--port PORT]`: an MCP
//! server with everything that the protocol's conformance suite asks for.
//!
//! Over HTTP it prints its URL as a line of JSON once it listens.

use std::io::Write;

use clap::{Parser, ValueEnum};
use testkit::conformance::{Eras, Fixture, serve_stdio};

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, value_enum, default_value = "http")]
    transport: Transport,
    /// The eras of the protocol that it speaks: both, legacy or modern.
    #[arg(long, default_value = "both")]
    era: Eras,
    /// Where it listens; a free port by default.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Transport {
    Http,
    Stdio,
    /// The transport of 2024-11-05, with an address for the stream and one for messages.
    Sse,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let eras = arguments.era;
    let fixture = match arguments.transport {
        Transport::Stdio => return serve_stdio(eras).await,
        Transport::Http => Fixture::http(arguments.port, eras).await?,
        Transport::Sse => Fixture::sse(arguments.port, eras).await?,
    };
    writeln!(
        std::io::stdout(),
        "{}",
        serde_json::json!({"url": fixture.url()})
    )?;
    fixture.run().await
}
