//! `conformance-client [--proxied] URL`: uses everything that the server at the URL offers, as the
//! protocol's conformance suite wants of a client.
//!
//! With `--proxied` it starts the daemon with that server as its only upstream, and uses the
//! server through the daemon's endpoint: the client under test is then mcpproxy.

use std::env;

use anyhow::Context;
use clap::Parser;
use serde_json::{Value, json};
use testkit::conformance::use_everything;
use testkit::{Home, TestDaemon};

#[derive(Debug, Parser)]
struct Arguments {
    /// Put mcpproxy, the program beside this one, between this client and the server.
    #[arg(long)]
    proxied: bool,
    url: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Arguments { proxied, url } = Arguments::parse();
    let context = scenario_context()?;
    if !proxied {
        return use_everything(&url, &context).await;
    }
    let home = Home::new(&env::current_exe()?.with_file_name("mcpproxy"));
    let daemon = TestDaemon::with_servers(home, json!({"suite": {"url": url}})).await;
    daemon.wait_for_server("suite").await;
    let used = use_everything(&daemon.url("/mcp/server/suite"), &context).await;
    daemon.stop().await;
    used
}

/// What the suite tells about some of its scenarios.
fn scenario_context() -> anyhow::Result<Value> {
    match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text).context("MCP_CONFORMANCE_CONTEXT is not JSON"),
        Err(_) => Ok(json!({})),
    }
}
