//! Raw HTTP against a served script: what goes over the wire, without a client library's opinion.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request as HttpRequest;
use axum::middleware::{self, Next};
use mcp::server::{HttpOptions, HttpServer};
use mcp::sse::{Event, EventParser};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::script::{Principal, Script};

/// An endpoint at `/mcp` on a free port. It closes with the test's runtime.
pub(crate) struct Endpoint {
    pub(crate) script: Arc<Script>,
    pub(crate) server: HttpServer<Script>,
    pub(crate) url: String,
    client: reqwest::Client,
}

/// A session with the endpoint, opened by hand.
pub(crate) struct Session<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) id: String,
    version: &'static str,
}

pub(crate) struct EventReader {
    response: Response,
    parser: EventParser,
    /// Everything that arrived, comments included.
    seen: Vec<u8>,
}

/// Anything a test waits for happens well within this, or not at all.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), future)
        .await
        .expect("it did not happen in time")
}

// === impl Endpoint ===

impl Endpoint {
    pub(crate) async fn open() -> Self {
        Self::with(HttpOptions::default()).await
    }

    pub(crate) async fn with(options: HttpOptions) -> Self {
        // Building a client without a TLS provider panics, even for plain HTTP.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let script = Script::new();
        let options = HttpOptions {
            same_caller: |one, other| one.get::<Principal>() == other.get::<Principal>(),
            ..options
        };
        let server = HttpServer::new(Arc::clone(&script), options);
        let router = axum::Router::new()
            .route("/mcp", server.route())
            .layer(middleware::from_fn(remember_principal));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            script,
            server,
            url,
            client: reqwest::Client::new(),
        }
    }

    pub(crate) fn post(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body)
    }

    pub(crate) fn request(&self, method: reqwest::Method) -> RequestBuilder {
        self.client.request(method, &self.url)
    }

    pub(crate) async fn session(&self, version: &'static str) -> Session<'_> {
        let response = self.post(hello(version)).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let id = response.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let answer: Value = body(response).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        Session {
            endpoint: self,
            id,
            version,
        }
    }
}

async fn remember_principal(mut request: HttpRequest, next: Next) -> axum::response::Response {
    let principal = request.headers().get("x-principal").cloned();
    if let Some(principal) = principal {
        let name = principal.to_str().unwrap().to_owned();
        request.extensions_mut().insert(Principal(name));
    }
    next.run(request).await
}

// === impl Session ===

impl Session<'_> {
    pub(crate) fn post(&self, message: &Value) -> RequestBuilder {
        self.endpoint
            .post(message.to_string())
            .header("mcp-session-id", &self.id)
            .header("mcp-protocol-version", self.version)
    }

    pub(crate) async fn send(&self, message: &Value) -> Response {
        soon(self.post(message).send()).await.unwrap()
    }

    pub(crate) async fn call(&self, id: u64, tool: &str, arguments: &Value) -> Response {
        self.send(&call(id, tool, arguments)).await
    }

    pub(crate) fn get(&self) -> RequestBuilder {
        self.endpoint
            .request(reqwest::Method::GET)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &self.id)
    }

    pub(crate) async fn listen(&self) -> EventReader {
        EventReader::of(soon(self.get().send()).await.unwrap())
    }

    pub(crate) async fn resume(&self, event: &str) -> EventReader {
        let request = self.get().header("last-event-id", event);
        EventReader::of(soon(request.send()).await.unwrap())
    }

    pub(crate) async fn delete(&self) -> StatusCode {
        let request = self
            .endpoint
            .request(reqwest::Method::DELETE)
            .header("mcp-session-id", &self.id);
        soon(request.send()).await.unwrap().status()
    }
}

// === impl EventReader ===

impl EventReader {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            parser: EventParser::new(16 * 1024 * 1024),
            seen: Vec::new(),
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return Some(event.unwrap());
            }
            if !self.read().await {
                return None;
            }
        }
    }

    /// Reads on until `text`, which no event has to be, has arrived.
    pub(crate) async fn until_seen(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.seen).contains(text) {
            assert!(self.read().await, "the stream ended before {text:?}");
        }
    }

    /// `false` at the end of the stream.
    async fn read(&mut self) -> bool {
        let Some(chunk) = soon(self.response.chunk()).await.unwrap() else {
            return false;
        };
        self.seen.extend_from_slice(&chunk);
        self.parser.push(&chunk);
        true
    }

    pub(crate) async fn message(&mut self) -> Value {
        let event = self.next().await.expect("the stream ended");
        serde_json::from_slice(&event.data).unwrap()
    }

    /// The rest of the stream, without priming events.
    pub(crate) async fn messages(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(event) = self.next().await {
            if !event.data.is_empty() {
                messages.push(serde_json::from_slice(&event.data).unwrap());
            }
        }
        messages
    }
}

pub(crate) fn hello(version: &str) -> String {
    request(
        0,
        "initialize",
        &json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "wire", "version": "1"},
        }),
    )
    .to_string()
}

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    request(
        id,
        "tools/call",
        &json!({"name": tool, "arguments": arguments}),
    )
}

pub(crate) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub(crate) async fn body(response: Response) -> Value {
    let bytes = soon(response.bytes()).await.unwrap();
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
}
