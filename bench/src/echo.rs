//! The upstream of the measurements: an MCP server that answers at once, over pipes or over HTTP.
//!
//! It speaks just enough of the protocol to be taken for a server, so that what it costs in time
//! is as little as it can be.

use std::borrow::Cow;
use std::io::{BufRead, Write};
use std::sync::LazyLock;

use anyhow::{Context, Result};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http;

/// The one tool, declared read-only so that the read lane is open to it.
pub(crate) const TOOL: &str = "echo";

const INITIALIZED: &str = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}"#;
const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Answers at once","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

/// What every call is answered with, about 1 kB.
pub(crate) static RESULT: LazyLock<String> = LazyLock::new(|| {
    let text = "An answer as servers give it, a line of text at a time.\\n".repeat(17);
    format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#)
});

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

/// Serves stdin and stdout until stdin ends.
pub(crate) fn run_stdio() -> Result<()> {
    let mut input = std::io::stdin().lock();
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if let Some(mut answer) = answer(&line)? {
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
    let serving = http::serve(async |body: Bytes| Ok(answer(&body)?.map(Bytes::from)));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(serving)
}

/// The answer to a message; none to a notification.
fn answer(message: &[u8]) -> Result<Option<Vec<u8>>> {
    let envelope: Envelope<'_> = serde_json::from_slice(message).context("not a message")?;
    let Some(id) = envelope.id else {
        return Ok(None);
    };
    let result = match envelope.method.as_deref() {
        Some("tools/call") => RESULT.as_str(),
        Some("tools/list") => TOOLS,
        Some("initialize") => INITIALIZED,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_answered_and_notifications_are_not() {
        let call = br#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{}}"#;
        let answered = answer(call).unwrap().unwrap();
        let answered: serde_json::Value = serde_json::from_slice(&answered).unwrap();
        assert_eq!(answered["id"], "x");
        assert_eq!(answered["result"]["content"][0]["type"], "text");
        assert!((900..1_100).contains(&RESULT.len()), "{}", RESULT.len());
        let told = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(answer(told).unwrap().is_none());
    }
}
