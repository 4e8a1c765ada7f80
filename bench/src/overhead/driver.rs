//! The client of the measurement: connections that are kept open, each with one call at a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use super::messages::Messages;
use crate::echo::RESULT;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[derive(Debug)]
pub(super) struct Driver {
    connections: Vec<Connection>,
}

/// What was seen of a number of calls.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub(super) latencies: Vec<Duration>,
    pub(super) elapsed: Duration,
}

/// A connection with a session of its own.
#[derive(Debug)]
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    headers: HeaderMap,
    messages: Messages,
    last_id: usize,
}

#[derive(Deserialize)]
struct Answer<'a> {
    id: usize,
    #[serde(borrow)]
    result: &'a RawValue,
}

// === impl Driver ===

impl Driver {
    pub(super) async fn connect(
        address: SocketAddr,
        messages: Messages,
        connections: usize,
    ) -> Result<Self> {
        let connecting = (0..connections).map(|_| Connection::open(address, messages.clone()));
        Ok(Self {
            connections: try_join_all(connecting).await?,
        })
    }

    /// Makes `calls` calls, spread evenly over the connections.
    pub(super) async fn run(&mut self, calls: usize) -> Result<Load> {
        let each = calls.div_ceil(self.connections.len());
        let started = Instant::now();
        let running = self.connections.iter_mut().map(|it| it.calls(each));
        let latencies = try_join_all(running).await?.concat();
        Ok(Load {
            latencies,
            elapsed: started.elapsed(),
        })
    }
}

impl Load {
    pub(super) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.elapsed += other.elapsed;
    }
}

// === impl Connection ===

impl Connection {
    async fn open(address: SocketAddr, messages: Messages) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // When it breaks, the next call says so.
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        headers.insert(HOST, address.to_string().parse()?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accepted);
        let mut connection = Self {
            sender,
            headers,
            messages,
            last_id: 0,
        };
        connection.initialize().await?;
        Ok(connection)
    }

    async fn initialize(&mut self) -> Result<()> {
        let (status, headers, _) = self.post(INITIALIZE.into()).await?;
        ensure!(status == StatusCode::OK, "initialize: {status}");
        if let Some(session) = headers.get(SESSION_ID) {
            self.headers.insert(SESSION_ID, session.clone());
        }
        let (status, ..) = self.post(INITIALIZED.into()).await?;
        ensure!(status.is_success(), "initialized: {status}");
        Ok(())
    }

    async fn calls(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let mut latencies = Vec::with_capacity(calls);
        for _ in 0..calls {
            self.last_id += 1;
            let message = self.messages.call(self.last_id);
            let started = Instant::now();
            let (status, _, body) = self.post(message.into()).await?;
            latencies.push(started.elapsed());
            let said = || String::from_utf8_lossy(&body).into_owned();
            ensure!(status == StatusCode::OK, "{status}: {}", said());
            let answer: Answer<'_> = serde_json::from_slice(json_in(&body)).with_context(said)?;
            // A refusal would be quick, and a result that was changed on the way is none.
            ensure!(
                answer.id == self.last_id,
                "another call's answer: {}",
                said()
            );
            ensure!(answer.result.get() == *RESULT, "not the result: {}", said());
        }
        Ok(latencies)
    }

    async fn post(&mut self, body: Bytes) -> Result<(StatusCode, HeaderMap, Bytes)> {
        let mut request = Request::post("/mcp").body(Full::new(body))?;
        *request.headers_mut() = self.headers.clone();
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (parts, body) = response.into_parts();
        Ok((
            parts.status,
            parts.headers,
            body.collect().await?.to_bytes(),
        ))
    }
}

/// The message in a body. One that took long comes as the last of a few events.
fn json_in(body: &[u8]) -> &[u8] {
    body.split(|byte| *byte == b'\n')
        .filter_map(|line| line.strip_prefix(b"data: "))
        .next_back()
        .unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_in_either_kind_of_body() {
        assert_eq!(json_in(br#"{"id":1}"#), br#"{"id":1}"#);
        let events = b"id: 1-0\ndata: \n\nid: 1-1\ndata: {\"id\":1}\n\n";
        assert_eq!(json_in(events), br#"{"id":1}"#);
    }
}
