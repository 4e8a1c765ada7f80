//! The relay in front of a service of any capabilities, which `/mcp` of the daemon does not have.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::middleware::{self, Next};
use axum::response::Response as HttpResponse;
use futures_util::StreamExt;
use mcp::modern::{ParameterHeaders, meta};
use mcp::server::{Connection, HttpOptions, HttpServer, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, Notification, RawValue, Request};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use testkit::{DEADLINE, wait_until};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{Options, run};
use crate::exit::Failure;

/// What reached the service, over all its lives.
type Seen = Arc<Mutex<Vec<String>>>;

struct Scripted {
    seen: Seen,
}

/// The service behind a socket.
struct Server {
    runtime: Option<Runtime>,
}

/// A client on the other end of the relay's pipes.
struct Client {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    relay: JoinHandle<Result<(), Failure>>,
}

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn region() -> Value {
    json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})
}

impl Service for Scripted {
    async fn initialize(&self, connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        self.note(&format!("initialize {}", connection.client.name));
        Ok(InitializeResult {
            capabilities: raw(&json!({
                "tools": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
                "logging": {},
            })),
            server_info: raw(&json!({"name": "scripted", "version": "1"})),
            instructions: None,
        })
    }

    async fn request(
        &self,
        request: Request,
        context: RequestContext,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let params = request.params.as_deref().map_or("{}", RawValue::get);
        self.note(&format!("{} {params}", request.method));
        let call: Value = serde_json::from_str(params).unwrap();
        match (request.method.as_str(), call["name"].as_str()) {
            ("tools/list", _) => Ok(raw(&json!({
                "tools": [{"name": "echo", "inputSchema": region()}],
            }))),
            ("tools/call", Some("ask")) => {
                let question = raw(&json!({"message": "name?", "requestedSchema": {}}));
                let asked =
                    context
                        .outbound
                        .request_as("name", "elicitation/create", Some(question));
                Ok(asked.await.unwrap())
            }
            ("tools/call", Some("slow")) => {
                for step in 1..=3 {
                    let params = json!({"progressToken": "t", "progress": step});
                    let told = Notification::new("notifications/progress", Some(raw(&params)));
                    context.outbound.notify(told).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
                Ok(raw(&json!({"content": []})))
            }
            // What arrived, as it was written.
            ("tools/call", _) => {
                Ok(RawValue::from_string(format!("{{\"params\": {params}}}")).unwrap())
            }
            _ => Ok(raw(&json!({}))),
        }
    }

    fn parameter_headers(&self, _: &str) -> Option<Arc<ParameterHeaders>> {
        ParameterHeaders::of_schema(&raw(&region()))
            .ok()
            .map(Arc::new)
    }
}

impl Scripted {
    fn note(&self, what: &str) {
        self.seen.lock().unwrap().push(what.to_owned());
    }
}

impl Server {
    fn start(socket: &Path, seen: &Seen) -> Self {
        Self::with(socket, seen, |router| router)
    }

    fn with(socket: &Path, seen: &Seen, change: impl FnOnce(Router) -> Router) -> Self {
        let runtime = Runtime::new().unwrap();
        let service = Arc::new(Scripted {
            seen: Arc::clone(seen),
        });
        let server = HttpServer::new(service, HttpOptions::default());
        let router = change(Router::new().route("/mcp", server.route()));
        let _ = std::fs::remove_file(socket);
        let inside = runtime.enter();
        let listener = UnixListener::bind(socket).unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        drop(inside);
        Self {
            runtime: Some(runtime),
        }
    }
}

impl Server {
    /// Returns when every connection is closed.
    async fn stop(mut self) {
        let runtime = self.runtime.take().unwrap();
        let stopping = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DEADLINE));
        stopping.await.unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    fn start(socket: PathBuf) -> Self {
        let (input, reader) = tokio::io::duplex(1 << 20);
        let (writer, output) = tokio::io::duplex(1 << 20);
        let options = Options {
            starts_daemon: None,
            socket,
            request_bytes: 4 << 20,
            event_bytes: 32 << 20,
            reconnect: DEADLINE,
            idle: DEADLINE,
            grace: Duration::from_millis(200),
        };
        let relay = tokio::spawn(async move { run(&options, reader, writer).await });
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            relay,
        }
    }

    async fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        self.write(&message.to_string()).await;
    }

    async fn line(&mut self) -> String {
        let line = timeout(DEADLINE, self.output.next_line()).await;
        line.expect("a line in time").unwrap().expect("a line")
    }

    async fn next(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    /// Opens a legacy session.
    async fn greet(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "tester", "version": "1"}});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        assert_eq!(self.next().await["result"]["protocolVersion"], "2025-11-25");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
    }

    async fn end(mut self) {
        drop(self.input.take());
        let ended = timeout(DEADLINE, self.relay).await;
        ended.expect("the relay ends").unwrap().unwrap();
    }
}

fn call(id: u64, name: &str, arguments: &Value) -> Value {
    modern(
        id,
        "tools/call",
        &json!({"name": name, "arguments": arguments}),
    )
}

fn modern(id: u64, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        meta::PROTOCOL_VERSION: "2026-07-28",
        meta::CLIENT_CAPABILITIES: {"elicitation": {}},
    });
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn place() -> (testkit::Home, PathBuf, Seen) {
    let home = testkit::Home::new(Path::new(""));
    let socket = home.path().join("s");
    (home, socket, Seen::default())
}

async fn until_seen(seen: &Seen, count: usize, what: &str) {
    wait_until(what, DEADLINE, async || {
        let seen = seen.lock().unwrap();
        seen.iter().filter(|it| it.starts_with(what)).count() >= count
    })
    .await;
}

#[tokio::test]
async fn arguments_that_a_listed_tool_wants_in_headers_are_mirrored() {
    let (_home, socket, seen) = place();
    let _server = Server::start(&socket, &seen);
    let mut client = Client::start(socket);
    let arguments = json!({"region": "ü"});
    // A relay that has not seen the list cannot know.
    client.send(&call(1, "echo", &arguments)).await;
    assert_eq!(client.next().await["error"]["code"], -32020);
    client.send(&modern(2, "tools/list", &json!({}))).await;
    assert_eq!(client.next().await["result"]["tools"][0]["name"], "echo");
    client.send(&call(3, "echo", &arguments)).await;
    let answer = client.next().await;
    assert_eq!(
        answer["result"]["params"]["arguments"], arguments,
        "{answer}"
    );
    client.end().await;
}

#[tokio::test]
async fn every_byte_of_a_payload_survives() {
    let (_home, socket, seen) = place();
    let _server = Server::start(&socket, &seen);
    let mut client = Client::start(socket);
    client.greet().await;
    let params =
        r#"{"name":"echo","x":[1.0, 1e2,12345678901234567890],"arguments":{ "é":"\u00e9"}}"#;
    client
        .write(&format!(
            r#"{{"jsonrpc":"2.0","method":"tools/call","extra":1,"params":{params},"id":1.0}}"#
        ))
        .await;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1.0,"result":{{"params": {params}}}}}"#);
    assert_eq!(client.line().await, expected);
    client.end().await;
}

#[tokio::test]
async fn what_the_client_set_is_set_again_in_a_server_that_was_started_again() {
    let (_home, socket, seen) = place();
    let server = Server::start(&socket, &seen);
    let mut client = Client::start(socket.clone());
    client.greet().await;
    let requests = [
        ("logging/setLevel", json!({"level": "debug"})),
        ("resources/subscribe", json!({"uri": "x:kept"})),
        ("resources/subscribe", json!({"uri": "x:dropped"})),
        ("resources/unsubscribe", json!({"uri": "x:dropped"})),
    ];
    for (method, params) in &requests {
        client
            .send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await;
        assert_eq!(client.next().await["result"], json!({}));
    }
    server.stop().await;
    seen.lock().unwrap().clear();
    let _server = Server::start(&socket, &seen);
    // Nobody asked: the relay notices by itself, and the client hears that lists may differ.
    for kind in ["tools", "resources"] {
        let method = format!("notifications/{kind}/list_changed");
        assert_eq!(
            client.next().await,
            json!({"jsonrpc": "2.0", "method": method})
        );
    }
    let expected = [
        "initialize tester",
        r#"logging/setLevel {"level":"debug"}"#,
        r#"resources/subscribe {"uri":"x:kept"}"#,
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    client
        .send(
            &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}}),
        )
        .await;
    assert_eq!(client.next().await["result"]["params"]["name"], "echo");
    client.end().await;
}

#[tokio::test]
async fn subscriptions_go_on_in_a_server_that_was_started_again() {
    let (_home, socket, seen) = place();
    let server = Server::start(&socket, &seen);
    let mut client = Client::start(socket.clone());
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    client
        .send(&modern(7, "subscriptions/listen", &wanted))
        .await;
    let acknowledged = client.next().await;
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    server.stop().await;
    let _server = Server::start(&socket, &seen);
    let hint = client.next().await;
    assert_eq!(hint["method"], "notifications/tools/list_changed");
    assert_eq!(hint["params"]["_meta"][meta::SUBSCRIPTION_ID], 7);
    // Nothing more was said, and the stream does not hold up the end.
    client.send(&modern(8, "tools/list", &json!({}))).await;
    assert_eq!(client.next().await["id"], 8);
    client.end().await;
}

#[tokio::test]
async fn a_question_is_an_answer_to_modern_clients_and_a_request_to_legacy_ones() {
    let (_home, socket, seen) = place();
    let _server = Server::start(&socket, &seen);
    let mut client = Client::start(socket.clone());
    client.send(&call(1, "ask", &json!({}))).await;
    let asked = client.next().await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut again = call(2, "ask", &json!({}));
    again["params"]["requestState"] = asked["result"]["requestState"].clone();
    let input = json!({"action": "accept", "content": {"name": "Ada"}});
    again["params"]["inputResponses"] = json!({"name": input});
    client.send(&again).await;
    let answer = client.next().await;
    assert_eq!(answer["result"]["content"], input["content"], "{answer}");
    client.end().await;

    let mut client = Client::start(socket);
    client.greet().await;
    let params = json!({"name": "ask"});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .await;
    let asked = client.next().await;
    assert_eq!(asked["method"], "elicitation/create");
    client
        .send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": input}))
        .await;
    assert_eq!(client.next().await["result"], input);
    client.end().await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_resumed() {
    let (_home, socket, seen) = place();
    let _server = Server::with(&socket, &seen, |router| {
        router.layer(middleware::from_fn(
            async |request: HttpRequest, next: Next| {
                let is_post = request.method() == "POST";
                let response = next.run(request).await;
                if is_post { cut(response) } else { response }
            },
        ))
    });
    let mut client = Client::start(socket);
    client.greet().await;
    let params = json!({"name": "slow", "_meta": {"progressToken": "t"}});
    client
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
        .await;
    for step in 1..=3 {
        assert_eq!(client.next().await["params"]["progress"], step);
    }
    assert_eq!(client.next().await["result"], json!({"content": []}));
    assert_eq!(
        seen.lock()
            .unwrap()
            .iter()
            .filter(|it| it.contains("slow"))
            .count(),
        1
    );
    client.end().await;
}

/// A stream of events ends after its second chunk; an answer without events is left alone.
fn cut(response: HttpResponse) -> HttpResponse {
    let kind = response.headers().get("content-type").cloned();
    if kind.is_none_or(|kind| kind != "text/event-stream") {
        return response;
    }
    let (parts, body) = response.into_parts();
    HttpResponse::from_parts(parts, Body::from_stream(body.into_data_stream().take(2)))
}

#[tokio::test]
async fn an_answer_without_an_id_gets_the_one_of_its_request() {
    let (_home, socket, seen) = place();
    let _server = Server::with(&socket, &seen, |router| {
        router.layer(middleware::from_fn(async |_: HttpRequest, _: Next| {
            let error = json!({"code": -32600, "message": "too large", "data": 1.5});
            let body = json!({"jsonrpc": "2.0", "id": null, "error": error, "x": 1});
            let mut response = HttpResponse::new(Body::from(body.to_string()));
            *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
            response
        }))
    });
    let mut client = Client::start(socket);
    client
        .send(&json!({"jsonrpc": "2.0", "id": "a", "method": "ping"}))
        .await;
    let answer = client.next().await;
    assert_eq!((&answer["id"], &answer["x"]), (&json!("a"), &json!(1)));
    assert_eq!(answer["error"]["data"], 1.5);
    client.end().await;
}

#[tokio::test]
async fn a_request_while_the_server_is_away_waits_and_runs_once() {
    let (_home, socket, seen) = place();
    let server = Server::start(&socket, &seen);
    let mut client = Client::start(socket.clone());
    client.greet().await;
    server.stop().await;
    seen.lock().unwrap().clear();
    // Sent to nobody, while nobody is there.
    client
        .send(
            &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}),
        )
        .await;
    let _server = Server::start(&socket, &seen);
    loop {
        let message = client.next().await;
        if message["id"] == 1 {
            assert_eq!(message["result"]["params"]["name"], "echo", "{message}");
            break;
        }
    }
    until_seen(&seen, 1, "tools/call").await;
    let calls = seen
        .lock()
        .unwrap()
        .iter()
        .filter(|it| it.starts_with("tools/call"))
        .count();
    assert_eq!(calls, 1);
    client.end().await;
}
