//! `mcpproxy upstream …`: clap types and nothing else.

use clap::{ArgGroup, Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::number::number;
use crate::completion;

const ADD_EXAMPLES: &str = "\
Examples:
  mcpproxy upstream add notes -- npx -y some-notes-server --folder ~/notes
  mcpproxy upstream add github --env 'TOKEN=${env:GITHUB_TOKEN}' -- some-github-server
  mcpproxy upstream add sentry --url https://example.com/mcp --header 'Authorization=Bearer ${env:SENTRY_TOKEN}'
";

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamCommand {
    /// List the servers: how they are, what they offer, and what to do about those that fail
    #[command(visible_alias = "ls")]
    List,
    /// Take over the servers of other clients
    #[command(after_help = super::connect::IMPORT_EXAMPLES)]
    Import(super::connect::ImportArgs),
    /// Add a server, after a look at what it offers
    Add(AddArgs),
    /// Remove a server from the config
    #[command(visible_alias = "rm")]
    Remove(ServerChange),
    /// Switch a server on
    Enable(ServerChange),
    /// Switch a server off; it stays in the config
    Disable(ServerChange),
    /// Connect a server anew
    Restart(ServerChange),
    /// Show what a server writes to its stderr
    Logs {
        #[command(flatten)]
        server: ServerSelection,
        /// How many lines, 1 to 500
        #[arg(short = 'n', long, default_value_t = 100, value_parser = number::<u16>(1, Some(500)))]
        lines: u16,
        /// Go on as more is written, until Ctrl-C
        #[arg(short, long)]
        follow: bool,
    },
    /// Show tools that wait for approval, and how they differ from what was pinned
    Diff(ToolSelection),
    /// Approve tools as they are now, and end their quarantine
    Approve(ToolSelection),
    /// Keep tools from being called until they are approved
    Quarantine(ToolSelection),
}

/// One server of the config.
#[derive(Debug, Args)]
pub(crate) struct ServerSelection {
    /// The name of the server
    #[arg(add = ArgValueCompleter::new(completion::servers))]
    pub name: String,
}

/// What is done to one server takes effect in its own time.
#[derive(Debug, Args)]
pub(crate) struct ServerChange {
    #[command(flatten)]
    pub server: ServerSelection,
    /// Return at once instead of waiting up to 30 s for the outcome
    #[arg(long)]
    pub no_wait: bool,
}

/// Tools of one server.
#[derive(Debug, Args)]
pub(crate) struct ToolSelection {
    /// The name of the server
    #[arg(add = ArgValueCompleter::new(completion::servers))]
    pub server: String,
    /// The names of tools; all of the server's if none is given
    #[arg(value_name = "TOOL", add = ArgValueCompleter::new(completion::tools_of_server))]
    pub tools: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = ADD_EXAMPLES,
    group(ArgGroup::new("transport").args(["url", "command"]).required(true))
)]
pub(crate) struct AddArgs {
    /// What the server is to be called
    pub name: String,
    /// The address of a server that speaks HTTP
    #[arg(long)]
    pub url: Option<String>,
    /// A variable of the program's environment; `${env:NAME}` in the value stays a reference
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url", value_parser = pair)]
    pub env: Vec<(String, String)>,
    /// A header of every request; `${env:NAME}` in the value stays a reference
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "command", value_parser = pair)]
    pub header: Vec<(String, String)>,
    /// How long one call may take, as 30s or 2m
    #[arg(long)]
    pub timeout: Option<String>,
    /// The directory the program starts in
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub working_dir: Option<String>,
    /// The address speaks the transport of 2024-11-05
    #[arg(long, conflicts_with = "command")]
    pub sse: bool,
    /// Add it without connecting to it first
    #[arg(long)]
    pub no_check: bool,
    /// The program and its arguments
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// `NAME=VALUE`, or `NAME: VALUE` as headers are written.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(['=', ':'])
        .ok_or("write it as NAME=VALUE")?;
    if name.trim().is_empty() {
        return Err("the name is missing; write it as NAME=VALUE".to_owned());
    }
    Ok((name.trim().to_owned(), value.trim_start().to_owned()))
}
