//! The servers whose tools are measured, by the names under which npm and PyPI have them. All of
//! them list their tools without an account.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A package with a server in it.
#[derive(Debug)]
pub(super) struct Package {
    /// What the server is called in the config.
    pub(super) server: &'static str,
    pub(super) registry: Registry,
    pub(super) name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// Some want keys before they list anything; any will do.
    keys: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registry {
    Npm,
    Pypi,
}

use Registry::{Npm, Pypi};

pub(super) const PACKAGES: [Package; 25] = [
    plain(
        "everything",
        Npm,
        "@modelcontextprotocol/server-everything",
        "mcp-server-everything",
    ),
    plain(
        "filesystem",
        Npm,
        "@modelcontextprotocol/server-filesystem",
        "mcp-server-filesystem",
    )
    .with_arguments(&["."]),
    plain(
        "memory",
        Npm,
        "@modelcontextprotocol/server-memory",
        "mcp-server-memory",
    ),
    plain(
        "thinking",
        Npm,
        "@modelcontextprotocol/server-sequential-thinking",
        "mcp-server-sequential-thinking",
    ),
    plain(
        "github",
        Npm,
        "@modelcontextprotocol/server-github",
        "mcp-server-github",
    ),
    plain(
        "slack",
        Npm,
        "@modelcontextprotocol/server-slack",
        "mcp-server-slack",
    )
    .with_keys(&[("SLACK_BOT_TOKEN", "xoxb-none"), ("SLACK_TEAM_ID", "none")]),
    plain(
        "notion",
        Npm,
        "@notionhq/notion-mcp-server",
        "notion-mcp-server",
    ),
    plain("playwright", Npm, "@playwright/mcp", "playwright-mcp"),
    plain("chrome", Npm, "chrome-devtools-mcp", "chrome-devtools-mcp"),
    plain("context7", Npm, "@upstash/context7-mcp", "context7-mcp"),
    plain("firecrawl", Npm, "firecrawl-mcp", "firecrawl-mcp")
        .with_keys(&[("FIRECRAWL_API_KEY", "none")]),
    plain("tavily", Npm, "tavily-mcp", "tavily-mcp").with_keys(&[("TAVILY_API_KEY", "none")]),
    plain("browser", Npm, "@browsermcp/mcp", "mcp-server-browsermcp"),
    plain("sentry", Npm, "@sentry/mcp-server", "sentry-mcp")
        .with_keys(&[("SENTRY_ACCESS_TOKEN", "none")]),
    plain(
        "airtable",
        Npm,
        "airtable-mcp-server",
        "airtable-mcp-server",
    )
    .with_keys(&[("AIRTABLE_API_KEY", "pat.none")]),
    plain("figma", Npm, "figma-developer-mcp", "figma-developer-mcp")
        .with_arguments(&["--stdio"])
        .with_keys(&[("FIGMA_API_KEY", "none")]),
    plain("charts", Npm, "@antv/mcp-server-chart", "mcp-server-chart"),
    plain(
        "gitnode",
        Npm,
        "@cyanheads/git-mcp-server",
        "git-mcp-server",
    ),
    plain("eslint", Npm, "@eslint/mcp", "mcp"),
    plain("git", Pypi, "mcp-server-git", "mcp-server-git"),
    plain("time", Pypi, "mcp-server-time", "mcp-server-time"),
    plain("fetch", Pypi, "mcp-server-fetch", "mcp-server-fetch"),
    plain(
        "duckduckgo",
        Pypi,
        "duckduckgo-mcp-server",
        "duckduckgo-mcp-server",
    ),
    plain("wikipedia", Pypi, "wikipedia-mcp", "wikipedia-mcp"),
    plain(
        "aws-docs",
        Pypi,
        "awslabs.aws-documentation-mcp-server",
        "awslabs.aws-documentation-mcp-server",
    ),
];

const fn plain(
    server: &'static str,
    registry: Registry,
    name: &'static str,
    program: &'static str,
) -> Package {
    Package {
        server,
        registry,
        name,
        program,
        arguments: &[],
        keys: &[],
    }
}

impl Package {
    const fn with_arguments(mut self, arguments: &'static [&'static str]) -> Self {
        self.arguments = arguments;
        self
    }

    const fn with_keys(mut self, keys: &'static [(&'static str, &'static str)]) -> Self {
        self.keys = keys;
        self
    }

    /// Where the package is installed, under the folder for all.
    pub(super) fn folder(&self, all: &Path) -> PathBuf {
        match self.registry {
            Npm => all.join("npm"),
            // One environment each: they want different versions of the same libraries.
            Pypi => all.join("pypi").join(self.name),
        }
    }

    pub(super) fn program(&self, all: &Path) -> PathBuf {
        let folder = self.folder(all);
        match self.registry {
            Npm => folder.join("node_modules/.bin").join(self.program),
            Pypi => folder.join("bin").join(self.program),
        }
    }

    /// The server's entry in the config.
    pub(super) fn config(&self, all: &Path, node: &Path) -> Value {
        let program = self.program(all);
        let (command, mut arguments) = match self.registry {
            Npm => (node, vec![json!(program)]),
            Pypi => (program.as_path(), Vec::new()),
        };
        arguments.extend(self.arguments.iter().map(|argument| json!(argument)));
        let env: serde_json::Map<_, _> = self
            .keys
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({"command": command, "args": arguments, "env": env})
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_server_has_a_name_of_its_own() {
        let names: HashSet<_> = PACKAGES.iter().map(|package| package.server).collect();
        assert_eq!(names.len(), PACKAGES.len());
        for name in names {
            assert!(name.parse::<policy::ServerName>().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_config_starts_the_program_of_the_package() {
        let all = Path::new("/all");
        let node = Path::new("/node");
        let figma = PACKAGES.iter().find(|package| package.server == "figma");
        assert_eq!(
            figma.unwrap().config(all, node),
            json!({
                "command": "/node",
                "args": ["/all/npm/node_modules/.bin/figma-developer-mcp", "--stdio"],
                "env": {"FIGMA_API_KEY": "none"}
            })
        );
        let time = PACKAGES.iter().find(|package| package.server == "time");
        let time = time.unwrap().config(all, node);
        assert_eq!(
            time["command"],
            "/all/pypi/mcp-server-time/bin/mcp-server-time"
        );
    }
}
