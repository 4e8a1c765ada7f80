//! The daemon as an agent sees it, and what only a person may ask of it.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::daemon::DATA;
use crate::session::{MCP, Session};

/// Names that one `describe_tool` takes.
const DESCRIBED_AT_ONCE: usize = 50;

pub(super) struct Agent {
    pub(super) session: Session,
    key: String,
}

impl Agent {
    pub(super) async fn connect(address: SocketAddr, home: &Path) -> Result<Self> {
        let key = std::fs::read_to_string(home.join(DATA).join("api_key"));
        Ok(Self {
            session: Session::open(address, MCP).await?,
            key: key.context("the daemon has no key")?,
        })
    }

    /// The tools that mcpproxy shows, as they are announced.
    pub(super) async fn own_tools(&mut self) -> Result<Value> {
        let list = self.session.request("tools/list", &json!({})).await?;
        Ok(serde_json::from_str(list.get())?)
    }

    /// The definitions of all tools of all servers.
    pub(super) async fn all_tools(&mut self) -> Result<Vec<(String, Value)>> {
        let listed = self.session.api("/tools", &self.key).await?;
        let listed = listed["tools"].as_array().context("no list of tools")?;
        let names: Vec<_> = listed.iter().map(|tool| tool["name"].clone()).collect();
        let mut tools = Vec::new();
        for names in names.chunks(DESCRIBED_AT_ONCE) {
            let described = self.call("describe_tool", &json!({"names": names})).await?;
            let described: Value = serde_json::from_str(&described)?;
            for tool in described["tools"].as_array().into_iter().flatten() {
                let name = tool["name"].as_str().unwrap_or_default();
                tools.push((name.to_owned(), tool["definition"].clone()));
            }
        }
        Ok(tools)
    }

    /// The text that a model gets to read.
    pub(super) async fn call(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.session.request("tools/call", &params).await?;
        let result: Value = serde_json::from_str(result.get())?;
        match result["content"][0]["text"].as_str() {
            Some(text) if result["isError"] != true => Ok(text.to_owned()),
            _ => bail!("{tool} was refused: {result}"),
        }
    }
}
