//! `mcpproxy upstream …`: clap types and nothing else.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamCommand {
    /// List the servers: how they are, what they offer, and what to do about those that fail
    #[command(visible_alias = "ls")]
    List,
    /// Take over the servers of other clients; their files are only read
    #[command(after_help = super::connect::IMPORT_EXAMPLES)]
    Import(super::connect::ImportArgs),
}
