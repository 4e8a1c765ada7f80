//! Servers that do exactly what a test tells them, over pipes and over HTTP.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use mcp::client::{Client, Era, Events, Hello, HttpEndpoint, Origin, RequestOptions};
use mcp::{ErrorObject, Notification, RawValue, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

pub(crate) const LINE_LIMIT: usize = 64 * 1024;

/// Fails a test that hangs.
pub(crate) fn deadline<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let work = Box::pin(work);
    async {
        tokio::time::timeout(Duration::from_secs(20), work)
            .await
            .expect("the test did not finish in time")
    }
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .unwrap_or_else(|_| panic!("this did not come true: {what}"));
}

pub(crate) fn hello() -> Hello {
    Hello::new("tester", "1.0")
}

/// Says hello in the era given, or finds out.
pub(crate) fn hello_in(era: Option<Era>) -> Hello {
    let mut hello = hello();
    hello.era = era;
    hello
}

pub(crate) fn options() -> RequestOptions {
    RequestOptions::default()
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "scripted", "version": "0.1"},
    })
}

pub(crate) fn discover_result() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {"subscribe": true}},
        "instructions": "be brief",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "0.1"}},
    })
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

pub(crate) fn response(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

// === what the server sends on its own ===

#[derive(Debug)]
pub(crate) enum Heard {
    Notification(Notification, Origin),
    Request(Request, Origin),
    SessionReplaced,
}

/// Reports everything it hears; answers `slow` never and every other request with its own params.
pub(crate) struct Recorder(mpsc::Sender<Heard>);

pub(crate) fn recorder() -> (Recorder, mpsc::Receiver<Heard>) {
    let (sender, receiver) = mpsc::channel(1024);
    (Recorder(sender), receiver)
}

impl Events for Recorder {
    fn notification(&self, notification: Notification, origin: Origin) {
        let _ = self.0.try_send(Heard::Notification(notification, origin));
    }

    async fn request(
        &self,
        request: Request,
        origin: Origin,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let params = request.params.clone();
        let slow = request.method == "slow";
        let report = Heard::Request(request, origin);
        let _ = self.0.send(report).await;
        if slow {
            // Lives as long as the future does, so that a test can see it dropped.
            let _held = self.0.clone();
            std::future::pending::<()>().await;
        }
        Ok(params.unwrap_or_else(|| raw("{}")))
    }

    fn session_replaced(&self, _: &Arc<mcp::client::Handshake>) {
        let _ = self.0.try_send(Heard::SessionReplaced);
    }
}

// === a server behind pipes ===

pub(crate) struct Peer {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

/// Our two ends of the pipes and the server's.
pub(crate) fn pipes() -> (ReadHalf<DuplexStream>, WriteHalf<DuplexStream>, Peer) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let (their_reader, their_writer) = tokio::io::split(theirs);
    let peer = Peer {
        reader: BufReader::new(their_reader),
        writer: their_writer,
    };
    (reader, writer, peer)
}

/// A connected client and the server it talks to.
pub(crate) async fn connect(events: impl Events) -> (Client, Peer) {
    let (reader, writer, mut peer) = pipes();
    let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello(), events);
    let (client, ()) = tokio::join!(connecting, peer.accept());
    (client.unwrap(), peer)
}

/// A client and the modern server it talks to.
pub(crate) async fn connect_modern(events: impl Events) -> (Client, Peer) {
    let (reader, writer, mut peer) = pipes();
    let hello = hello_in(Some(Era::Modern));
    let connecting = Client::connect_lines(reader, writer, LINE_LIMIT, hello, events);
    let (client, ()) = tokio::join!(connecting, peer.accept_modern());
    (client.unwrap(), peer)
}

impl Peer {
    pub(crate) async fn accept_modern(&mut self) {
        let discover = self.read().await;
        assert_eq!(discover["method"], "server/discover");
        self.write(&response(&discover["id"], &discover_result()))
            .await;
    }

    pub(crate) async fn accept(&mut self) {
        let initialize = self.read().await;
        assert_eq!(initialize["method"], "initialize");
        self.write(&response(&initialize["id"], &initialize_result()))
            .await;
        assert_eq!(self.read().await["method"], "notifications/initialized");
    }

    pub(crate) async fn read(&mut self) -> Value {
        self.try_read().await.expect("the client closed its end")
    }

    pub(crate) async fn try_read(&mut self) -> Option<Value> {
        let line = self.read_line().await;
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        line
    }

    pub(crate) async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    pub(crate) async fn write_line(&mut self, line: &str) {
        self.write_text(line).await;
        self.write_text("\n").await;
    }

    /// Writes text that is not or not yet a line.
    pub(crate) async fn write_text(&mut self, text: &str) {
        self.writer.write_all(text.as_bytes()).await.unwrap();
    }
}

// === a server behind HTTP ===

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) http_method: Method,
    pub(crate) path: String,
    /// Whom the connection came from, which is different for each.
    pub(crate) connection: SocketAddr,
    pub(crate) headers: HeaderMap,
    /// The message; null where there is none.
    pub(crate) message: Value,
}

pub(crate) struct Server {
    pub(crate) url: url::Url,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Script = dyn Fn(&Seen) -> Response + Send + Sync;

struct Scripted {
    seen: Arc<Mutex<Vec<Seen>>>,
    script: Box<Script>,
}

impl Seen {
    pub(crate) fn is(&self, method: &str) -> bool {
        self.message["method"] == method
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub(crate) fn id(&self) -> &Value {
        &self.message["id"]
    }
}

impl Server {
    /// Starts a server that answers each request as the script says.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let state = Arc::new(Scripted {
            seen: Arc::clone(&seen),
            script: Box::new(script),
        });
        let router = axum::Router::new().fallback(play).with_state(state);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self {
            url: url.parse().unwrap(),
            seen,
        }
    }

    pub(crate) fn endpoint(&self) -> HttpEndpoint {
        HttpEndpoint::new(self.url.clone())
    }

    pub(crate) async fn connect(&self, events: impl Events) -> Client {
        Client::connect_http(self.endpoint(), hello(), events)
            .await
            .unwrap()
    }

    pub(crate) async fn connect_modern(&self, events: impl Events) -> Client {
        Client::connect_http(self.endpoint(), hello_in(Some(Era::Modern)), events)
            .await
            .unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, wanted: impl Fn(&Seen) -> bool) -> usize {
        self.seen().iter().filter(|seen| wanted(seen)).count()
    }
}

async fn play(
    State(scripted): State<Arc<Scripted>>,
    ConnectInfo(connection): ConnectInfo<SocketAddr>,
    http_method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let seen = Seen {
        http_method,
        path: uri.path().to_owned(),
        connection,
        headers,
        message: serde_json::from_slice(&body).unwrap_or(Value::Null),
    };
    scripted.seen.lock().unwrap().push(seen.clone());
    (scripted.script)(&seen)
}

/// What a server without a stream of its own answers to everything but calls.
pub(crate) fn basics(seen: &Seen, session: Option<&str>) -> Option<Response> {
    if seen.http_method == Method::GET {
        return Some(StatusCode::METHOD_NOT_ALLOWED.into_response());
    }
    if seen.http_method == Method::DELETE {
        return Some(StatusCode::OK.into_response());
    }
    if seen.is("initialize") {
        let mut answer = json_answer(&response(seen.id(), &initialize_result()));
        if let Some(session) = session {
            let session = session.parse().unwrap();
            answer.headers_mut().insert("mcp-session-id", session);
        }
        return Some(answer);
    }
    // Notifications, and answers to requests of the server.
    (seen.message["id"].is_null() || seen.message["method"].is_null())
        .then(|| StatusCode::ACCEPTED.into_response())
}

/// What a modern server answers to the question what it is.
pub(crate) fn discovered(seen: &Seen) -> Option<Response> {
    seen.is("server/discover")
        .then(|| json_answer(&response(seen.id(), &discover_result())))
}

pub(crate) fn with_status(status: u16, mut answer: Response) -> Response {
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

pub(crate) fn json_answer(message: &Value) -> Response {
    let headers = [("content-type", "application/json; charset=utf-8")];
    (headers, message.to_string()).into_response()
}

pub(crate) fn sse_answer(text: impl Into<Body>) -> Response {
    let headers = [("content-type", "text/event-stream")];
    (headers, text.into()).into_response()
}

pub(crate) fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}
