//! The paths that are compared, and the processes they lead through.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use hyper::Uri;
use serde_json::json;
use tempfile::TempDir;

use super::case::{Case, Upstream};
use crate::daemon;
use crate::floor::{PIPE, WEB};
use crate::load::{Call, Driver, Endpoint, StdioServer, Target};
use crate::process::Process;

/// Calls before the first that counts, of the smallest size.
const WARM_UP: usize = 500;

pub(super) const DIRECT: &str = "direct";
pub(super) const FLOOR: &str = "floor";
const FLOOR_ONE: &str = "floor-1";
pub(super) const MCPPROXY: &str = "mcpproxy";

/// An MCP endpoint that runs already, and a call to it. In the tool's name and the arguments,
/// `{upstream}`, `{size}` and `{lane}` stand for those of the case.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    address: SocketAddr,
    path: String,
    tool: String,
    arguments: String,
}

/// All processes of a comparison. They run on the CPUs of the thread that started them.
pub(super) struct Paths {
    home: TempDir,
    echo_stdio: Arc<StdioServer>,
    echo_http: Process,
    floor: Process,
    floor_one: Process,
    daemon: Process,
    peers: Vec<Peer>,
}

// === impl Peer ===

impl FromStr for Peer {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.splitn(3, ',');
        let mut next = || parts.next().context("a peer is URL,TOOL,ARGS");
        let url: Uri = next()?.parse()?;
        let authority = url.authority().context("the URL has no address")?;
        Ok(Self {
            address: authority.as_str().parse().context("not IP:PORT")?,
            path: url.path().to_owned(),
            tool: next()?.to_owned(),
            arguments: next()?.to_owned(),
        })
    }
}

impl Peer {
    fn call(&self, case: Case) -> Result<Call> {
        let fill_in = |text: &str| {
            text.replace("{upstream}", server(case.upstream))
                .replace("{size}", case.size.name())
                .replace("{lane}", case.lane.name())
        };
        let arguments = serde_json::from_str(&fill_in(&self.arguments));
        let arguments = arguments.context("the arguments of a peer are not JSON")?;
        Ok(Call::peer(&fill_in(&self.tool), &arguments))
    }
}

// === impl Paths ===

impl Paths {
    pub(super) async fn start(program: &Path, peers: &[Peer]) -> Result<Self> {
        let own = std::env::current_exe()?;
        let home = tempfile::tempdir()?;
        let echo_http = Process::start(&own, &["echo-http"], home.path()).await?;
        let url = echo_http.url();
        let floor = Process::start(&own, &["floor", &url], home.path()).await?;
        let floor_one = Process::start(&own, &["floor-1", &url], home.path()).await?;
        let config = daemon::config(&json!({
            PIPE: {"command": own, "args": ["echo-stdio"]},
            WEB: {"url": url}
        }));
        let daemon = daemon::start(program, &config, home.path()).await?;
        daemon::ready(&daemon, home.path()).await?;
        Ok(Self {
            home,
            echo_stdio: Arc::new(StdioServer::start()?),
            echo_http,
            floor,
            floor_one,
            daemon,
            peers: peers.to_vec(),
        })
    }

    /// A target for each path, by its name.
    pub(super) async fn targets(&self, case: Case) -> Result<Vec<(String, Target)>> {
        let (server, tool) = (server(case.upstream), case.tool());
        let direct = match case.upstream {
            Upstream::Stdio => Endpoint::Stdio(Arc::clone(&self.echo_stdio)),
            Upstream::Http => self.echo_http.endpoint(),
        };
        let mut paths = vec![(DIRECT.to_owned(), None, direct, Call::upstream(tool))];
        let hops = [
            (FLOOR, &self.floor, Call::floor(server, tool)),
            (FLOOR_ONE, &self.floor_one, Call::floor(server, tool)),
            (MCPPROXY, &self.daemon, Call::daemon(server, tool)),
        ];
        for (name, hop, call) in hops {
            paths.push((name.to_owned(), Some(hop.id), hop.endpoint(), call));
        }
        for peer in &self.peers {
            let endpoint = Endpoint::Http {
                address: peer.address,
                path: peer.path.clone(),
            };
            paths.push((peer.address.to_string(), None, endpoint, peer.call(case)?));
        }
        let mut targets = Vec::new();
        for (name, hop, endpoint, call) in paths {
            let driver = Driver::connect(&endpoint, &call, case.clients).await?;
            let target = Target::new(driver, hop, WARM_UP / case.size.weight()).await;
            targets.push((name.clone(), target.context(name)?));
        }
        Ok(targets)
    }

    pub(super) async fn stop(self) -> Result<()> {
        for process in [self.daemon, self.floor_one, self.floor, self.echo_http] {
            process.stop().await?;
        }
        self.home.close()?;
        Ok(())
    }
}

/// The name of an upstream behind a hop.
fn server(upstream: Upstream) -> &'static str {
    match upstream {
        Upstream::Stdio => PIPE,
        Upstream::Http => WEB,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_peer_may_contain_commas() {
        let peer: Peer = r#"http://127.0.0.1:8/mcp/x,read_{size},{"a":1,"b":2}"#
            .parse()
            .unwrap();
        assert_eq!(peer.path, "/mcp/x");
        assert_eq!(peer.tool, "read_{size}");
        assert_eq!(peer.arguments, r#"{"a":1,"b":2}"#);
        assert!("http://127.0.0.1:8/mcp,tool".parse::<Peer>().is_err());
    }
}
