//! The clients of a measurement: connections that are kept open, each with one call at a time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures_util::future::try_join_all;
use hyper::StatusCode;
use serde::Deserialize;

use super::call::Call;
use super::stdio::StdioServer;
use crate::session::{Session, message_in};

/// Where the clients of a path connect to.
#[derive(Debug, Clone)]
pub(crate) enum Endpoint {
    Http { address: SocketAddr, path: String },
    Stdio(Arc<StdioServer>),
}

#[derive(Debug)]
pub(crate) struct Driver {
    clients: Vec<Client>,
}

/// What was seen of a number of calls.
#[derive(Debug)]
pub(crate) struct Load {
    pub(super) latencies: Vec<Duration>,
    pub(super) elapsed: Duration,
}

#[derive(Debug)]
struct Client {
    connection: Connection,
    call: Call,
    last_id: usize,
}

#[derive(Debug)]
enum Connection {
    Http(Session),
    Stdio(Arc<StdioServer>),
}

// === impl Driver ===

impl Driver {
    pub(crate) async fn connect(endpoint: &Endpoint, call: &Call, clients: usize) -> Result<Self> {
        let connecting = (0..clients).map(|_| Client::connect(endpoint, call.clone()));
        Ok(Self {
            clients: try_join_all(connecting).await?,
        })
    }

    /// Makes at least `calls` calls, the same number by each client.
    pub(crate) async fn run(&mut self, calls: usize) -> Result<Load> {
        let each = calls.div_ceil(self.clients.len());
        let started = Instant::now();
        let running = self.clients.iter_mut().map(|client| client.calls(each));
        let latencies = try_join_all(running).await?.concat();
        Ok(Load {
            latencies,
            elapsed: started.elapsed(),
        })
    }
}

// === impl Client ===

impl Client {
    async fn connect(endpoint: &Endpoint, call: Call) -> Result<Self> {
        let connection = match endpoint {
            Endpoint::Http { address, path } => {
                Connection::Http(Session::open(*address, path).await?)
            }
            Endpoint::Stdio(server) => Connection::Stdio(Arc::clone(server)),
        };
        Ok(Self {
            connection,
            call,
            last_id: 0,
        })
    }

    async fn calls(&mut self, calls: usize) -> Result<Vec<Duration>> {
        let mut latencies = Vec::with_capacity(calls);
        for _ in 0..calls {
            self.last_id += 1;
            let message = self.call.message(self.last_id);
            let started = Instant::now();
            let body = self.connection.post(message).await?;
            latencies.push(started.elapsed());
            // A refusal would be quick, and a result that was changed on the way is none.
            ensure!(
                answers(message_in(&body), self.last_id, self.call.expected),
                "not the answer to the call: {:.500}",
                String::from_utf8_lossy(&body)
            );
        }
        Ok(latencies)
    }
}

impl Connection {
    async fn post(&mut self, message: String) -> Result<Bytes> {
        match self {
            Self::Stdio(server) => server.post(message).await,
            Self::Http(session) => {
                let (status, body) = session.post(message.into()).await?;
                let said = || format!("{status}: {:.500}", String::from_utf8_lossy(&body));
                ensure!(status == StatusCode::OK, said());
                Ok(body)
            }
        }
    }
}

/// Whether a message answers the call `id`, with the expected result if there is one.
///
/// Our own paths end a message with the result, so that one of 5 MB is compared and not parsed:
/// the clients must not take the time of what is measured.
fn answers(message: &[u8], id: usize, expected: Option<&str>) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        id: usize,
        result: PeerResult,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct PeerResult {
        #[serde(default)]
        is_error: bool,
    }
    if let Some(expected) = expected {
        let head = message
            .strip_suffix(b"}")
            .and_then(|rest| rest.strip_suffix(expected.as_bytes()));
        return head == Some(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).as_bytes());
    }
    serde_json::from_slice(message)
        .is_ok_and(|answer: Answer| answer.id == id && !answer.result.is_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wanted_answer_counts() {
        let ours = |id, message: &str| answers(message.as_bytes(), id, Some(r#"{"a":1}"#));
        assert!(ours(7, r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#));
        assert!(!ours(8, r#"{"jsonrpc":"2.0","id":7,"result":{"a":1}}"#));
        assert!(!ours(7, r#"{"jsonrpc":"2.0","id":7,"result":{"a":2}}"#));
        let peer = |message: &str| answers(message.as_bytes(), 7, None);
        assert!(peer(r#"{"result":{"content":[]},"id":7}"#));
        assert!(!peer(r#"{"result":{"content":[],"isError":true},"id":7}"#));
        assert!(!peer(r#"{"error":{"code":1,"message":"no"},"id":7}"#));
    }
}
