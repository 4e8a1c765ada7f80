//! Servers that hold a file, a profile or a port which only one process can have at a time.

use crate::server::{Sharing, Transport};
use crate::template::Template;

/// Names of their packages or programs, as they stand in a command line.
const SINGLE_PROCESS: [&str; 9] = [
    "@playwright/mcp",
    "chrome-devtools-mcp",
    "server-puppeteer",
    "server-memory",
    "server-sqlite",
    "mcp-sqlite",
    "server-duckdb",
    "server-motherduck",
    "blender-mcp",
];

impl Sharing {
    /// What suits a server that is added: all clients share one process of a server that is known to need that.
    pub fn suggested(transport: &Transport) -> Self {
        let Transport::Stdio { command, args, .. } = transport else {
            return Self::default();
        };
        let words = std::iter::once(command).chain(args).map(Template::written);
        let mut names = words.map(package_of);
        if names.any(|name| SINGLE_PROCESS.iter().any(|known| name.ends_with(known))) {
            Self::Shared
        } else {
            Self::default()
        }
    }
}

/// A word of a command line without the version of a package.
fn package_of(word: &str) -> &str {
    let version = word.rfind('@').filter(|&at| at > 0);
    version.map_or(word, |at| &word[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_holds_one_file_or_profile_is_known_by_its_command_line() {
        let suggested = |command, args: &[&'static str]| {
            Sharing::suggested(&Transport::program(command, args.iter().copied()))
        };
        for args in [
            ["-y", "@playwright/mcp@latest"],
            ["-y", "@modelcontextprotocol/server-memory"],
            ["-y", "chrome-devtools-mcp@0.9.0"],
        ] {
            assert_eq!(suggested("npx", &args), Sharing::Shared, "{args:?}");
        }
        assert_eq!(
            suggested("uvx", &["mcp-server-sqlite", "--db-path", "x"]),
            Sharing::Shared
        );
        assert_eq!(
            suggested("/opt/bin/mcp-server-memory", &[]),
            Sharing::Shared
        );
        assert_eq!(
            suggested("npx", &["@modelcontextprotocol/server-everything"]),
            Sharing::Auto
        );
        let address = Transport::http("http://127.0.0.1/server-memory").unwrap();
        assert_eq!(Sharing::suggested(&address), Sharing::Auto);
    }
}
