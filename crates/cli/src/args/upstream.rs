//! `mcpproxy upstream …`: clap types and nothing else.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamCommand {
    /// List the servers: how they are, what they offer, and what to do about those that fail
    #[command(visible_alias = "ls")]
    List,
    /// Show tools that wait for approval, and how they differ from what was pinned
    Diff(ToolSelection),
    /// Approve tools as they are now, and end their quarantine
    Approve(ToolSelection),
    /// Keep tools from being called until they are approved
    Quarantine(ToolSelection),
}

/// Tools of one server.
#[derive(Debug, Args)]
pub(crate) struct ToolSelection {
    /// The name of the server
    pub server: String,
    /// The names of tools; all of the server's if none is given
    #[arg(value_name = "TOOL")]
    pub tools: Vec<String>,
}
