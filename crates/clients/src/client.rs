//! The clients we know, and the one adapter of each.

mod claude_code;
mod claude_desktop;
mod cline;
mod codex;
mod cursor;
mod gemini;
mod roo;
mod vs_code;
mod windsurf;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::adapter::Adapter;
use crate::places::Places;

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
    Gemini,
    Windsurf,
    Cline,
    Roo,
    Kilo,
}

/// A name that belongs to no client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no client {given:?}; known are {}", known())]
pub struct UnknownClient {
    pub given: String,
    /// The client whose name comes closest.
    pub near: Option<Client>,
}

impl Client {
    pub const ALL: [Self; 10] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Codex,
        Self::Gemini,
        Self::Windsurf,
        Self::Cline,
        Self::Roo,
        Self::Kilo,
    ];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Windsurf => "windsurf",
            Self::Cline => "cline",
            Self::Roo => "roo",
            Self::Kilo => "kilo",
        }
    }

    /// The name its makers use.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Cline => "Cline",
            Self::Roo => "Roo Code",
            Self::Kilo => "Kilo Code",
        }
    }

    /// The file in which `connect` puts our entry.
    pub fn main_file(self, places: &Places) -> PathBuf {
        self.adapter().main_file(places).path
    }

    pub(crate) fn adapter(self) -> &'static dyn Adapter {
        match self {
            Self::ClaudeCode => &claude_code::ClaudeCode,
            Self::ClaudeDesktop => &claude_desktop::ClaudeDesktop,
            Self::Cursor => &cursor::Cursor,
            Self::VsCode => &vs_code::VsCode,
            Self::Codex => &codex::Codex,
            Self::Gemini => &gemini::Gemini,
            Self::Windsurf => &windsurf::Windsurf,
            Self::Cline => &cline::Cline,
            Self::Roo => &roo::ROO,
            Self::Kilo => &roo::KILO,
        }
    }
}

impl FromStr for Client {
    type Err = UnknownClient;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let same = |client: &Self| spelling(client.as_str()) == spelling(text);
        Self::ALL
            .into_iter()
            .find(same)
            .ok_or_else(|| UnknownClient {
                given: text.to_owned(),
                near: nearest(text),
            })
    }
}

impl fmt::Display for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// `VS-Code`, `vs_code` and `vscode` are the same name.
fn spelling(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

fn nearest(text: &str) -> Option<Client> {
    let given = spelling(text);
    let names = Client::ALL
        .into_iter()
        .flat_map(|client| [client.as_str(), client.title()].map(|name| (client, spelling(name))));
    names
        .map(|(client, name)| (client, strsim::jaro_winkler(&given, &name)))
        .filter(|(_, similarity)| *similarity > 0.8)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(client, _)| client)
}

fn known() -> String {
    Client::ALL.map(Client::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_spelling() {
        for client in Client::ALL {
            assert_eq!(client.as_str().parse(), Ok(client));
        }
        for spelt in ["VS-Code", "vs_code", "vscode"] {
            assert_eq!(spelt.parse(), Ok(Client::VsCode));
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (given, near) in [
            ("curser", Some(Client::Cursor)),
            ("claude", Some(Client::ClaudeCode)),
            ("claud-desktop", Some(Client::ClaudeDesktop)),
            ("gemini-cli", Some(Client::Gemini)),
            ("emacs", None),
        ] {
            let error = given.parse::<Client>().unwrap_err();
            assert_eq!(error.near, near, "{given}");
            assert!(error.to_string().contains("windsurf"), "{error}");
        }
    }
}
