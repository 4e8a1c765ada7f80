//! `mcpproxy doctor`: clap types and nothing else.

use clap::{Args, Subcommand};

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  mcpproxy doctor
  mcpproxy doctor -o json
  mcpproxy doctor permissions
";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DoctorCommand {
    /// Show what each client would do with each lane, read from its own files
    Permissions,
}
