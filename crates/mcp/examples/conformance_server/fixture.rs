//! The service: which method is answered where.

use std::sync::Arc;

use mcp::modern::ParameterHeaders;
use mcp::server::{Connection, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, RawValue, Request, codes};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::{prompts, resources, tools};

/// The smallest PNG there is: one pixel.
pub(crate) const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[derive(Debug)]
pub(crate) struct Fixture;

pub(crate) type Answer = Result<Value, ErrorObject>;

impl Service for Fixture {
    async fn initialize(&self, _connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult {
            capabilities: raw(&json!({
                "tools": {"listChanged": true},
                "prompts": {"listChanged": true},
                "resources": {"listChanged": true, "subscribe": true},
                "completions": {},
                "logging": {},
            }))?,
            server_info: raw(&json!({"name": "conformance-server", "version": "1.0.0"}))?,
            instructions: Some("A fixture of the conformance suite.".to_owned()),
        })
    }

    async fn request(
        &self,
        request: Request,
        context: RequestContext,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let params: Value = match &request.params {
            Some(params) => serde_json::from_str(params.get())
                .map_err(|error| ErrorObject::invalid_params(error.to_string()))?,
            None => json!({}),
        };
        let answer = match request.method.as_str() {
            "tools/list" => tools::list(),
            "tools/call" => tools::call(&params, &context).await?,
            "prompts/list" => prompts::list(),
            "prompts/get" => prompts::get(&params, &context).await?,
            "resources/list" => resources::list(),
            "resources/templates/list" => resources::templates(),
            "resources/read" => resources::read(&params)?,
            "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => json!({}),
            "completion/complete" => {
                json!({"completion": {"values": ["test", "testing"], "total": 2, "hasMore": false}})
            }
            method => return Err(ErrorObject::method_not_found(method)),
        };
        raw(&answer)
    }

    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        let schema = to_raw_value(&tools::input_schema(tool)).ok()?;
        ParameterHeaders::of_schema(&schema).ok().map(Arc::new)
    }
}

/// Asks the client, under a name that it sees.
pub(crate) async fn ask(
    context: &RequestContext,
    name: &str,
    method: &str,
    params: &Value,
) -> Answer {
    let answer = context
        .outbound
        .request_as(name, method, Some(raw(params)?))
        .await;
    match answer {
        Ok(answer) => serde_json::from_str(answer.get())
            .map_err(|error| ErrorObject::internal(error.to_string())),
        Err(mcp::server::OutboundError::Refused(error)) => Err(error),
        Err(mcp::server::OutboundError::Gone(gone)) => {
            Err(ErrorObject::new(codes::CONNECTION_CLOSED, gone.to_string()))
        }
    }
}

/// Asks for what a form with these properties holds.
pub(crate) async fn elicit(
    context: &RequestContext,
    name: &str,
    message: &str,
    properties: &Value,
    required: &[&str],
) -> Answer {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let params = json!({"message": message, "requestedSchema": schema});
    ask(context, name, "elicitation/create", &params).await
}

pub(crate) fn raw(value: &Value) -> Result<Box<RawValue>, ErrorObject> {
    to_raw_value(value).map_err(|error| ErrorObject::internal(error.to_string()))
}
