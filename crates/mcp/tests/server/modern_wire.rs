//! Raw requests of the modern era, as a careful client sends them.

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::wire::{Endpoint, EventReader, body, request, soon};

pub(crate) const VERSION: &str = "2026-07-28";

pub(crate) fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    })
}

/// Everything a client may have.
pub(crate) fn able() -> Value {
    json!({"roots": {}, "sampling": {}, "elicitation": {}})
}

/// A request with `_meta` of its own unless the params have one.
pub(crate) fn modern(id: u64, method: &str, mut params: Value) -> Value {
    if params.get("_meta").is_none() {
        params["_meta"] = meta(&able());
    }
    request(id, method, &params)
}

pub(crate) fn tool(id: u64, name: &str, arguments: &Value) -> Value {
    modern(
        id,
        "tools/call",
        json!({"name": name, "arguments": arguments}),
    )
}

/// The call again, with what it asked for.
pub(crate) fn retry(message: &Value, id: u64, state: &Value, responses: &Value) -> Value {
    let mut message = message.clone();
    message["id"] = id.into();
    message["params"]["requestState"] = state.clone();
    message["params"]["inputResponses"] = responses.clone();
    message
}

impl Endpoint {
    /// The message with the headers that belong to it.
    pub(crate) fn modern_post(&self, message: &Value) -> RequestBuilder {
        let method = message["method"].as_str().unwrap();
        let mut request = self
            .post(message.to_string())
            .header("mcp-protocol-version", VERSION)
            .header("mcp-method", method);
        let name = match method {
            "tools/call" | "prompts/get" => &message["params"]["name"],
            "resources/read" => &message["params"]["uri"],
            _ => &Value::Null,
        };
        if let Some(name) = name.as_str() {
            request = request.header("mcp-name", name);
        }
        request
    }

    pub(crate) async fn modern(&self, message: &Value) -> Response {
        soon(self.modern_post(message).send()).await.unwrap()
    }

    /// The answer, whether it came as JSON or by events.
    pub(crate) async fn answer(&self, message: &Value) -> Value {
        let response = self.modern(message).await;
        if response.headers()["content-type"] == "application/json" {
            return body(response).await;
        }
        EventReader::of(response).messages().await.pop().unwrap()
    }
}
