//! The service: which method is answered where.

use std::sync::Arc;

use mcp::modern::ParameterHeaders;
use mcp::server::{Connection, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, RawValue, Request};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::answers::raw;
use super::skills::SKILLS;
use super::tasks::{TASKS, Tasks};
use super::{calls, prompts, resources, schemas, skills, tools};

/// A server with everything that the suite asks for. It is written as a legacy server would be:
/// what it asks its client and what it tells it reaches modern clients by the transport's doing.
#[derive(Debug, Default)]
pub(super) struct ConformanceServer {
    tasks: Tasks,
}

impl Service for ConformanceServer {
    async fn initialize(&self, connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        let mut capabilities = json!({
            "tools": {"listChanged": true},
            "prompts": {"listChanged": true},
            "resources": {"listChanged": true, "subscribe": true},
            "completions": {},
            "logging": {},
        });
        if connection.protocol.is_modern() {
            capabilities["extensions"] = json!({TASKS: {}, SKILLS: {"directoryRead": true}});
        }
        Ok(InitializeResult {
            capabilities: raw(&capabilities)?,
            server_info: raw(&json!({"name": "conformance-upstream", "version": "1.0.0"}))?,
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
            "tools/call" if tools::makes_task(&params) => {
                self.tasks.call(&params, &context).await?
            }
            "tools/call" => calls::call(&params, &context).await?,
            "tasks/get" => self.tasks.get(&params, &context)?,
            "tasks/update" => self.tasks.update(&params, &context)?,
            "tasks/cancel" => self.tasks.cancel(&params, &context)?,
            "prompts/list" => prompts::list(),
            "prompts/get" => prompts::get(&params, &context).await?,
            "resources/list" => resources::list(),
            "resources/templates/list" => resources::templates(),
            "resources/read" => resources::read(&params)?,
            "resources/directory/read" => skills::directory(&params)?,
            "skills/list" => skills::list(),
            "skills/get" => skills::get(&params)?,
            "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => json!({}),
            "completion/complete" => {
                json!({"completion": {"values": ["test", "testing"], "total": 2, "hasMore": false}})
            }
            method => return Err(ErrorObject::method_not_found(method)),
        };
        raw(&answer)
    }

    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        let schema = to_raw_value(&schemas::input(tool)).ok()?;
        ParameterHeaders::of_schema(&schema).ok().map(Arc::new)
    }
}
