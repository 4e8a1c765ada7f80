//! A client that can be asked: it answers every question with its own name, and keeps what it heard.

use std::path::Path;
use std::sync::{Arc, Mutex};

use mcp::client::{Client, Era, Events, Hello, HttpEndpoint, Origin, RequestError, RequestOptions};
use mcp::{ErrorObject, Notification, RawValue, Request};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use testkit::{TestDaemon, upstream_program};

#[derive(Debug, Clone)]
pub(crate) struct Person {
    name: &'static str,
    asked: Arc<Mutex<Vec<Value>>>,
    heard: Arc<Mutex<Vec<Notification>>>,
}

/// A person in front of an endpoint.
pub(crate) struct Visitor {
    pub(crate) person: Person,
    client: Client,
}

/// The config of a stdio upstream with everything that the protocol has, in one era.
pub(crate) fn fixture_over_stdio(era: &str) -> Value {
    let binary = Path::new(env!("CARGO_BIN_EXE_mcpproxy"));
    let program = upstream_program(binary).with_file_name("conformance-upstream");
    json!({"command": program, "args": ["--transport", "stdio", "--era", era]})
}

/// Can be asked everything there is to ask.
pub(crate) fn everything() -> Value {
    json!({"sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}}})
}

impl Person {
    pub(crate) fn called(name: &'static str) -> Self {
        Self {
            name,
            asked: Arc::default(),
            heard: Arc::default(),
        }
    }

    /// Comes to an endpoint with these capabilities.
    pub(crate) async fn visits(
        self,
        daemon: &TestDaemon,
        path: &str,
        era: Era,
        capabilities: &Value,
    ) -> Visitor {
        let mut hello = Hello::new(self.name, "1");
        hello.era = Some(era);
        hello.capabilities = to_raw_value(capabilities).unwrap();
        let url = daemon.url(path).parse().unwrap();
        let endpoint = HttpEndpoint::new(url);
        let client = Client::connect_http(endpoint, hello, self.clone())
            .await
            .unwrap();
        Visitor {
            person: self,
            client,
        }
    }

    /// The params of the questions so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn has_heard(&self, method: &str) -> bool {
        let heard = self.heard.lock().unwrap();
        heard.iter().any(|heard| heard.method == method)
    }
}

impl Events for Person {
    fn notification(&self, notification: Notification, _: Origin) {
        self.heard.lock().unwrap().push(notification);
    }

    async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        let params = request.params.as_deref().map_or("{}", RawValue::get);
        let params: Value = serde_json::from_str(params).unwrap();
        self.asked.lock().unwrap().push(params);
        let answer = match request.method.as_str() {
            "elicitation/create" => {
                let content = json!({"username": self.name, "email": "a@example.com"});
                json!({"action": "accept", "content": content})
            }
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "none",
                "content": {"type": "text", "text": self.name},
            }),
            "roots/list" => json!({"roots": [{"uri": "file:///here", "name": self.name}]}),
            method => return Err(ErrorObject::method_not_found(method)),
        };
        Ok(to_raw_value(&answer).unwrap())
    }
}

impl Visitor {
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &Value,
    ) -> Result<Value, RequestError> {
        let params = to_raw_value(params).unwrap();
        let options = RequestOptions::default();
        let result = self.client.request(method, Some(params), options).await?;
        Ok(serde_json::from_str(result.get()).unwrap())
    }

    /// The text of what a tool answers.
    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        let result = self.request("tools/call", &params).await.unwrap();
        assert_ne!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}
