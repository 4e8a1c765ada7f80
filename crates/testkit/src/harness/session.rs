//! An MCP client that keeps every byte: what was sent is what the test wrote, and what came back
//! can be compared with what the upstream sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::sse;

const SESSION_ID: &str = "mcp-session-id";
const VERSION: &str = "2025-11-25";

/// An initialized session on an MCP endpoint.
#[derive(Debug)]
pub struct Session {
    http: reqwest::Client,
    url: String,
    id: String,
    next_request: AtomicU64,
}

/// Everything that came back for a POST.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: header::HeaderMap,
    pub body: String,
}

/// The answer to a request: the text of its `result`, or its `error`.
#[derive(Debug)]
pub struct Answer {
    pub result: Result<String, Value>,
    /// The notifications that came before it.
    pub notifications: Vec<Value>,
}

/// A call that was not carried out, as clients receive it.
#[derive(Debug, PartialEq, Deserialize)]
pub struct Refusal {
    pub code: String,
    pub message: String,
    pub details: Value,
}

#[derive(Deserialize)]
struct Envelope {
    id: Option<Value>,
    method: Option<String>,
    /// Told apart from none at all when it is null.
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<Value>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// A client for plain HTTP. It never follows a proxy of the environment.
pub fn http_client() -> reqwest::Client {
    // An error means another test of this process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_mins(2))
        .build()
        .expect("an HTTP client")
}

impl Session {
    /// Performs the handshake.
    pub async fn open(url: &str) -> Self {
        let mut session = Self {
            http: http_client(),
            url: url.to_owned(),
            id: String::new(),
            next_request: AtomicU64::new(1),
        };
        let params = json!({
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "testkit", "version": "1"},
        });
        let request = session.envelope("initialize", &params.to_string());
        let reply = session.post(&request.1).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        let id = reply.headers.get(SESSION_ID).expect("a session id");
        id.to_str()
            .expect("a session id is text")
            .clone_into(&mut session.id);
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let reply = session.post(initialized).await;
        assert_eq!(reply.status, 202, "{}", reply.body);
        session
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Ends the session, and with it what the daemon keeps for it.
    pub async fn close(self) {
        let request = self.http.delete(&self.url).header(SESSION_ID, &self.id);
        let response = request.send().await.expect("the endpoint answers");
        assert!(response.status().is_success(), "{}", response.status());
    }

    /// Posts `body` as it is.
    pub async fn post(&self, body: &str) -> Reply {
        let mut request = self
            .http
            .post(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", VERSION)
            .body(body.to_owned());
        if !self.id.is_empty() {
            request = request.header(SESSION_ID, &self.id);
        }
        let response = request.send().await.expect("the endpoint answers");
        Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            body: response.text().await.expect("a whole body"),
        }
    }

    /// Sends a request whose `params` are the text given.
    pub async fn request(&self, method: &str, params: &str) -> Answer {
        let (id, request) = self.envelope(method, params);
        self.post(&request).await.answer_to(id)
    }

    /// Calls one of mcpproxy's own tools; the answer is the text of the result.
    pub async fn call(&self, tool: &str, arguments: &Value) -> String {
        self.call_raw(tool, &arguments.to_string()).await
    }

    /// Like [`Session::call`], with arguments that need not be JSON that serde would write.
    pub async fn call_raw(&self, tool: &str, arguments: &str) -> String {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        let answer = self.request("tools/call", &params).await;
        answer
            .result
            .unwrap_or_else(|error| panic!("{tool} answered {error}"))
    }

    /// Calls a tool and expects a refusal.
    pub async fn refusal(&self, tool: &str, arguments: &Value) -> Refusal {
        Refusal::of(&self.call(tool, arguments).await)
    }

    /// What `retrieve_tools` answers.
    pub async fn retrieve(&self, arguments: &Value) -> Value {
        let result: Value = serde_json::from_str(&self.call("retrieve_tools", arguments).await)
            .expect("a result is JSON");
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }

    /// The names `retrieve_tools` finds, best first.
    pub async fn names(&self, arguments: &Value) -> Vec<String> {
        let found = self.retrieve(arguments).await;
        let tools = found["tools"].as_array().expect("an array of tools");
        let names = tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }

    fn envelope(&self, method: &str, params: &str) -> (u64, String) {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        (id, request)
    }
}

impl Reply {
    /// Takes the answer to the request `id` out of the body, which is JSON or an event stream.
    pub fn answer_to(&self, id: u64) -> Answer {
        let messages = if self.is_event_stream() {
            sse::data(&self.body)
        } else {
            vec![self.body.clone()]
        };
        let mut notifications = Vec::new();
        for text in messages {
            let message: Envelope = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{error} in {} {text}", self.status));
            if message.method.is_some() {
                notifications.push(serde_json::from_str(&text).expect("read before"));
            } else if message.id == Some(id.into()) {
                let result = match (message.result, message.error) {
                    (Some(result), None) => Ok(result.get().to_owned()),
                    (None, Some(error)) => Err(error),
                    _ => panic!("neither result nor error: {text}"),
                };
                return Answer {
                    result,
                    notifications,
                };
            }
        }
        panic!("no answer to {id} in {} {}", self.status, self.body)
    }

    pub fn is_event_stream(&self) -> bool {
        let content_type = self.headers.get(header::CONTENT_TYPE);
        content_type.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
    }
}

impl Refusal {
    /// Reads a refusal out of the text of a result, and checks that it has its fixed shape.
    pub fn of(result: &str) -> Self {
        let value: Value = serde_json::from_str(result).expect("a result is JSON");
        assert_eq!(value["isError"], true, "not refused: {result}");
        let refusal: Self = serde_json::from_value(value["structuredContent"].clone())
            .unwrap_or_else(|error| panic!("{error} in {result}"));
        assert_eq!(value["content"][0]["text"], refusal.message, "{result}");
        assert!(refusal.details.is_object(), "{result}");
        refusal
    }
}
