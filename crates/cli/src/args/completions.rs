//! `mcpproxy completions`: clap types and nothing else.

use clap::{Args, ValueEnum};

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  mcpproxy completions bash > ~/.local/share/bash-completion/completions/mcpproxy
  mcpproxy completions zsh > ~/.zfunc/_mcpproxy
  mcpproxy completions fish > ~/.config/fish/completions/mcpproxy.fish
";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: CompletionShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl CompletionShell {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Elvish => "elvish",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
            Self::Zsh => "zsh",
        }
    }
}
