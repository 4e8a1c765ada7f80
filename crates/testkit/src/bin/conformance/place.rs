//! What is set up for a leg: the fixture, the daemon in front of it, and whatever the suite needs
//! to find its way.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::conformance::{Eras, Fixture};
use testkit::{Home, TestDaemon};

use crate::leg::{Subject, Transport};
use crate::prefix::Prefixing;

/// Where the suite is let loose; it is gone when dropped.
pub(crate) enum Place {
    Server {
        url: String,
        parts: Vec<Part>,
    },
    /// The command of a client, which gets the URL of a server as its last argument.
    Client {
        command: String,
    },
}

/// Something that runs for as long as the place is there.
pub(crate) enum Part {
    Fixture(#[expect(dead_code, reason = "kept to be dropped at the end")] Fixture),
    Daemon(Box<TestDaemon>),
    Prefixing(#[expect(dead_code, reason = "kept to be dropped at the end")] Prefixing),
}

/// An upstream of the daemon: the entry for it, and what has to be kept for it to run.
struct Upstream {
    config: Value,
    part: Option<Part>,
}

impl Place {
    pub(crate) async fn of(subject: Subject) -> anyhow::Result<Self> {
        match subject {
            Subject::Fixture => {
                let fixture = Fixture::http(0, Eras::Both).await?;
                let url = as_localhost(fixture.url());
                let parts = vec![Part::Fixture(fixture)];
                Ok(Self::Server { url, parts })
            }
            Subject::Server(transport, eras) => {
                let upstream = Upstream::of(transport, eras).await?;
                let servers = json!({"fixture": upstream.config});
                let daemon = daemon(servers, &["fixture"]).await?;
                let url = as_localhost(&daemon.url("/mcp/server/fixture"));
                let mut parts = vec![Part::Daemon(Box::new(daemon))];
                parts.extend(upstream.part);
                Ok(Self::Server { url, parts })
            }
            Subject::Direct => {
                let one = Upstream::of(Transport::Http, Eras::Both).await?;
                let two = Upstream::of(Transport::Stdio, Eras::Both).await?;
                let servers = json!({"one": one.config, "two": two.config});
                let daemon = daemon(servers, &["one", "two"]).await?;
                let prefixing = Prefixing::start(&daemon.url("/mcp/direct"), "one__").await?;
                let url = as_localhost(prefixing.url());
                let mut parts = vec![Part::Prefixing(prefixing), Part::Daemon(Box::new(daemon))];
                parts.extend(one.part);
                parts.extend(two.part);
                Ok(Self::Server { url, parts })
            }
            Subject::Client => client(""),
            Subject::ProxiedClient => client(" --proxied"),
        }
    }

    /// Whatever the suite saw means nothing if the daemon did not live through it.
    pub(crate) async fn check_alive(&self) -> anyhow::Result<()> {
        let Self::Server { parts, .. } = self else {
            return Ok(());
        };
        for part in parts {
            if let Part::Daemon(daemon) = part
                && !daemon.is_up().await
            {
                anyhow::bail!("the daemon is gone; it said:\n{}", daemon.log());
            }
        }
        Ok(())
    }
}

impl Upstream {
    async fn of(transport: Transport, eras: Eras) -> anyhow::Result<Self> {
        let fixture = match transport {
            Transport::Stdio => {
                let arguments = ["--transport", "stdio", "--era", eras.as_str()];
                let command = beside("conformance-upstream")?;
                let config = json!({"command": command, "args": arguments});
                return Ok(Self { config, part: None });
            }
            Transport::Http => Fixture::http(0, eras).await?,
            Transport::Sse => Fixture::sse(0, eras).await?,
        };
        Ok(Self {
            config: fixture.config(),
            part: Some(Part::Fixture(fixture)),
        })
    }
}

pub(crate) async fn daemon(servers: Value, names: &[&str]) -> anyhow::Result<TestDaemon> {
    let home = Home::new(&beside("mcpproxy")?);
    let daemon = TestDaemon::with_servers(home, servers).await;
    for name in names {
        daemon.wait_for_server(name).await;
    }
    Ok(daemon)
}

fn client(arguments: &str) -> anyhow::Result<Place> {
    let program = beside("conformance-client")?;
    let command = format!("{}{arguments}", program.display());
    Ok(Place::Client { command })
}

/// A program of the workspace: cargo puts them all into one folder.
fn beside(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(program);
    let missing = || format!("{} is missing: run cargo build --bins", path.display());
    anyhow::ensure!(path.exists(), missing());
    Ok(path)
}

/// The suite looks whether a server minds the name it is called by.
pub(crate) fn as_localhost(url: &str) -> String {
    url.replacen("127.0.0.1", "localhost", 1)
}
