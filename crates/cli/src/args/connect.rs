//! `mcpproxy connect` and `mcpproxy upstream import`: clap types and nothing else.

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::completion;

pub(crate) const CONNECT_EXAMPLES: &str = "\
Examples:
  mcpproxy connect
  mcpproxy connect claude-code --approve read
  mcpproxy connect claude-code --approve read --move
  mcpproxy connect cursor --dry-run
  mcpproxy connect claude-desktop --yes
  mcpproxy connect claude-code --undo
";

pub(crate) const IMPORT_EXAMPLES: &str = "\
Examples:
  mcpproxy upstream import --dry-run
  mcpproxy upstream import --from cursor --from codex
  mcpproxy upstream import --server github --yes
  mcpproxy upstream import --move
";

#[derive(Debug, Args)]
pub(crate) struct ConnectArgs {
    /// The client, as claude-code or cursor; without one, all are listed
    #[arg(add = ArgValueCompleter::new(completion::clients))]
    pub client: Option<String>,
    /// Let the client start `mcpproxy stdio` instead of using the daemon's address
    #[arg(long, conflicts_with = "undo")]
    pub stdio: bool,
    /// Also write the client's own permission rules: `read` lets it read without asking
    #[arg(long, value_name = "LANE", conflicts_with = "undo")]
    pub approve: Option<ApproveLane>,
    /// Decide about tools without hints: `infer` puts them on the lanes that the auditor sees for them
    #[arg(long, value_name = "RULE", requires = "approve")]
    pub unannotated: Option<UnannotatedRule>,
    /// Also move the client's own servers into mcpproxy; `--undo` puts them back
    #[arg(long, requires = "client", conflicts_with = "undo")]
    pub r#move: bool,
    /// Take out what was put in, and put back what was moved
    #[arg(long, requires = "client")]
    pub undo: bool,
    #[command(flatten)]
    pub consent: Consent,
}

/// How a change to files is agreed to.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Consent {
    /// Show what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short, conflicts_with = "dry_run")]
    pub yes: bool,
}

/// The lane that a client may use without asking. There is only one that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveLane {
    Read,
}

/// What to think of tools on which their servers put no hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnannotatedRule {
    /// The auditor's tier counts as if the server had declared it
    Infer,
    /// Any lane may call them
    Trust,
}

impl UnannotatedRule {
    /// The value in the config file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Infer => "infer",
            Self::Trust => "trust",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Only from this client; may be given more than once
    #[arg(long, value_name = "CLIENT", add = ArgValueCompleter::new(completion::clients))]
    pub from: Vec<String>,
    /// Only the server of this name; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub server: Vec<String>,
    /// Also take them out of the clients' own files, and connect these clients; `connect --undo` puts them back
    #[arg(long)]
    pub r#move: bool,
    #[command(flatten)]
    pub consent: Consent,
}
