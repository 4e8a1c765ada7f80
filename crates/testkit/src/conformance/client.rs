//! A client for the suite's scenarios: it uses everything that the server at a URL offers, in the
//! era that the server speaks.
//!
//! The scenarios for authorization are not for this client.

use mcp::client::{Client, Events, Hello, HttpEndpoint, Origin, RequestError, RequestOptions};
use mcp::{ErrorObject, Notification, RawValue, Request};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

/// Accepts every form with the defaults it names.
struct Defaults;

impl Events for Defaults {
    fn notification(&self, _: Notification, _: Origin) {}

    async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        if request.method != "elicitation/create" {
            return Err(ErrorObject::method_not_found(&request.method));
        }
        let params: Value = request
            .params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let mut content = Map::new();
        for (name, schema) in members(&params["requestedSchema"]["properties"]) {
            let default = schema.get("default").cloned();
            let confirmed = || (schema["type"] == "boolean").then_some(Value::Bool(true));
            if let Some(value) = default.or_else(confirmed) {
                content.insert(name.clone(), value);
            }
        }
        to_raw_value(&json!({"action": "accept", "content": content}))
            .map_err(|error| ErrorObject::internal(error.to_string()))
    }
}

/// Connects and uses everything. `context` is what the suite says about the scenario.
pub async fn use_everything(url: &str, context: &Value) -> anyhow::Result<()> {
    let mut hello = Hello::new("mcpproxy-conformance-client", env!("CARGO_PKG_VERSION"));
    hello.era = None;
    hello.capabilities = to_raw_value(&json!({"elicitation": {"form": {"applyDefaults": true}}}))?;
    let endpoint = HttpEndpoint::new(url.parse()?);
    let client = Client::connect_http(endpoint, hello, Defaults).await?;
    let outcome = use_client(&client, context).await;
    client.close().await;
    outcome
}

async fn use_client(client: &Client, context: &Value) -> anyhow::Result<()> {
    let handshake = client.handshake();
    let listed = request(client, "tools/list", json!({})).await?;
    let tools = listed["tools"].as_array().cloned().unwrap_or_default();
    for tool in &tools {
        let arguments = arguments(tool, &tools, context);
        let params = json!({"name": tool["name"], "arguments": arguments});
        request(client, "tools/call", params).await?;
    }
    if handshake.offers_resources() {
        let listed = request(client, "resources/list", json!({})).await?;
        for resource in listed["resources"].as_array().into_iter().flatten() {
            request(client, "resources/read", json!({"uri": resource["uri"]})).await?;
        }
    }
    if handshake.offers_prompts() {
        let listed = request(client, "prompts/list", json!({})).await?;
        for prompt in listed["prompts"].as_array().into_iter().flatten() {
            request(client, "prompts/get", json!({"name": prompt["name"]})).await?;
        }
    }
    Ok(())
}

/// A refusal is an answer too: not every server that lists a tool has it.
async fn request(client: &Client, method: &str, params: Value) -> anyhow::Result<Value> {
    let params = to_raw_value(&params)?;
    let answering = client.request(method, Some(params), RequestOptions::default());
    match answering.await {
        Ok(result) => Ok(serde_json::from_str(result.get())?),
        Err(RequestError::Rpc(_)) => Ok(Value::Null),
        Err(error) => Err(error.into()),
    }
}

/// The arguments that the scenario prescribes for a tool, or some that its schema allows.
fn arguments(tool: &Value, tools: &[Value], context: &Value) -> Value {
    let mut prescribed = context["toolCalls"].as_array().into_iter().flatten();
    if let Some(call) = prescribed.find(|call| call["name"] == tool["name"]) {
        return call["arguments"].clone();
    }
    let schema = &tool["inputSchema"];
    let arguments = members(&schema["properties"]).map(|(name, schema)| {
        let value = match (name.as_str(), schema["type"].as_str()) {
            // The echo of a scenario that looks whether schemas survive the trip.
            ("schema", _) => tools[0]["inputSchema"].clone(),
            (_, Some("integer" | "number")) => json!(1),
            (_, Some("boolean")) => json!(true),
            (_, Some("array")) => json!([]),
            (_, Some("object")) => json!({}),
            _ => json!("text"),
        };
        (name.clone(), value)
    });
    Value::Object(arguments.collect())
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
