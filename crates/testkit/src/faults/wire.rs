//! Requests as bytes, and requests of both eras to any endpoint.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::proxy::{ANSWER, within};
use crate::{Session, TestDaemon, http_client};

/// What every modern request carries in its `params`.
pub(super) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A client of one era on one endpoint.
#[derive(Debug)]
pub(super) enum Agent {
    Legacy(Box<Session>),
    Modern(String),
}

/// What came back: the status, and the message that answers.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) message: Value,
}

impl Agent {
    /// A client of each era on each of the three kinds of endpoint; `up` is the upstream.
    pub(super) async fn everywhere(daemon: &TestDaemon) -> Vec<(String, Self)> {
        let mut agents = Vec::new();
        for path in ["/mcp", "/mcp/server/up", "/mcp/direct"] {
            let url = daemon.url(path);
            let legacy = Self::Legacy(Box::new(Session::open(&url).await));
            agents.push((format!("legacy {path}"), legacy));
            agents.push((format!("modern {path}"), Self::Modern(url)));
        }
        agents
    }

    /// Posts a whole message. `META` in it stands for what a modern request needs, and a legacy
    /// one gets an empty `_meta`.
    pub(super) async fn post(&self, method: &str, name: &str, body: &str) -> Reply {
        match self {
            Self::Legacy(session) => {
                let body = body.replace("META", r#""_meta":{}"#);
                let reply = within(ANSWER, method, session.post(&body)).await;
                Reply::of(reply.status, &reply.body)
            }
            Self::Modern(url) => {
                let body = body.replace("META", META);
                let request = http_client()
                    .post(url)
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .header("mcp-protocol-version", "2026-07-28")
                    .header("mcp-method", method)
                    .header("mcp-name", name)
                    .body(body);
                let answer = within(ANSWER, method, request.send()).await;
                let answer = answer.expect("the endpoint answers");
                let status = answer.status().as_u16();
                let body = within(ANSWER, method, answer.text()).await;
                Reply::of(status, &body.expect("a whole answer"))
            }
        }
    }

    /// Calls a tool as it is called on this endpoint.
    pub(super) async fn call(&self, name: &str, arguments: &Value) -> Reply {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":{},"arguments":{arguments},META}}}}"#,
            json!(name)
        );
        self.post("tools/call", name, &body).await
    }
}

impl Reply {
    fn of(status: u16, body: &str) -> Self {
        let events = body.split("\n\n").filter_map(|event| {
            let data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            let data = data.collect::<Vec<_>>().join("\n");
            serde_json::from_str::<Value>(&data).ok()
        });
        let message = serde_json::from_str(body).ok();
        let message = message.or_else(|| events.filter(|event| event.get("id").is_some()).last());
        Self {
            status,
            message: message.unwrap_or(Value::Null),
        }
    }

    /// Whether nothing was carried out: an error of the protocol or a refused call.
    pub(super) fn refused(&self) -> bool {
        self.status >= 400
            || self.message.get("error").is_some()
            || self.message["result"]["isError"] == true
    }
}

/// A head with the Host that belongs there.
pub(super) fn head(method: &str, path: &str, address: &str, more: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n{more}")
}

/// Sends bytes on a connection of their own and reads until the end or the deadline.
pub(super) async fn exchange(address: &str, request: &[u8], deadline: Duration) -> Vec<u8> {
    let mut answer = Vec::new();
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return answer;
    };
    if stream.write_all(request).await.is_err() {
        return answer;
    }
    // What has come by the deadline is the answer.
    let _ = tokio::time::timeout(deadline, stream.read_to_end(&mut answer)).await;
    answer
}

/// The status of the answer to a request without a body; 0 when there is none.
pub(super) async fn status(address: &str, head: &str) -> u16 {
    let request = format!("{head}Connection: close\r\n\r\n");
    let answer = exchange(address, request.as_bytes(), ANSWER).await;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|text| text.parse().ok());
    status.unwrap_or(0)
}

/// Opens `count` connections and sends each the same bytes.
pub(super) async fn connections(address: &str, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let connect = TcpStream::connect(address);
        let Ok(Ok(mut stream)) = tokio::time::timeout(ANSWER, connect).await else {
            break;
        };
        // An endpoint that refuses to read is part of what is tried.
        let write = stream.write_all(bytes);
        let _ = tokio::time::timeout(Duration::from_secs(1), write).await;
        streams.push(stream);
    }
    streams
}

/// A modern call of a tool of `up` as bytes, for connections that do not read the answer.
pub(super) fn modern_call(address: &str, path: &str, name: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}","arguments":{{}},{META}}}}}"#
    );
    let headers = format!(
        "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {name}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut request = head("POST", path, address, &headers).into_bytes();
    request.extend(body.into_bytes());
    request
}
