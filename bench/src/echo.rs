//! The upstream of the measurements: an MCP server that answers at once, over pipes or over HTTP.
//!
//! It speaks just enough of the protocol to be taken for a server, so that what it costs in time
//! is as little as it can be.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http;
use crate::tool::{Lane, Tool};

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;

/// A server and what it announces.
struct Echo {
    /// The result of `tools/list`.
    listing: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

/// Serves stdin and stdout until stdin ends, with at least `tools` tools.
pub(crate) fn run_stdio(tools: usize) -> Result<()> {
    let echo = Echo::new(tools);
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut answer) = echo.answer(&line)? {
            answer.push(b'\n');
            output.write_all(&answer)?;
            output.flush()?;
        }
        line.clear();
    }
    Ok(())
}

/// Serves a free port of the loopback address, which is printed, until stdin ends.
pub(crate) fn run_http() -> Result<()> {
    let echo = Echo::new(0);
    let serving = http::serve(move |body: Bytes| {
        let answer = echo.answer(&body);
        async move { Ok(answer?.map(Bytes::from)) }
    });
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serving)
}

impl Echo {
    fn new(tools: usize) -> Self {
        let mut listing = String::from(r#"{"tools":["#);
        for (number, tool) in Tool::all().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let (name, read) = (tool.name(), tool.lane == Lane::Read);
            let _ = write!(
                listing,
                r#"{comma}{{"name":"{name}","description":"Answers at once","inputSchema":{{"type":"object"}},"annotations":{{"readOnlyHint":{read},"destructiveHint":false}}}}"#
            );
        }
        for number in Tool::all().count()..tools {
            let _ = write!(
                listing,
                r#",{{"name":"tool_{number}","description":"Looks up item {number} of the collection and returns its fields","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where to look"}},"limit":{{"type":"integer","minimum":1}}}},"required":["path"]}},"annotations":{{"readOnlyHint":true}}}}"#
            );
        }
        listing.push_str("]}");
        Self { listing }
    }

    /// The answer to a message; none to a notification.
    fn answer(&self, message: &[u8]) -> Result<Option<Vec<u8>>> {
        let envelope: Envelope<'_> = serde_json::from_slice(message).context("not a message")?;
        let Some(id) = envelope.id else {
            return Ok(None);
        };
        let result = match &*envelope.method {
            "tools/call" => {
                let params = envelope.params.context("no params")?;
                Tool::named(&params.name).context("no such tool")?.result()
            }
            "tools/list" => &self.listing,
            "initialize" => INITIALIZED,
            _ => "{}",
        };
        let mut out = Vec::with_capacity(result.len() + 64);
        out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        out.extend_from_slice(id.get().as_bytes());
        out.extend_from_slice(b",\"result\":");
        out.extend_from_slice(result.as_bytes());
        out.push(b'}');
        Ok(Some(out))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn result(echo: &Echo, message: &str) -> Value {
        let answer = echo.answer(message.as_bytes()).unwrap().unwrap();
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["id"], "x");
        answer["result"].take()
    }

    #[test]
    fn calls_are_answered_and_notifications_are_not() {
        let echo = Echo::new(50);
        let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"read_1k","arguments":{}}}"#;
        assert_eq!(result(&echo, call)["content"][0]["type"], "text");
        let list = r#"{"jsonrpc":"2.0","id":"x","method":"tools/list"}"#;
        assert_eq!(result(&echo, list)["tools"].as_array().unwrap().len(), 50);
        let told = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(echo.answer(told).unwrap().is_none());
    }
}
