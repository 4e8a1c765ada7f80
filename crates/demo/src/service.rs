//! The demo as an MCP service: `tools/list` and `tools/call`.

use std::sync::{Arc, Mutex, PoisonError};

use mcp::server::{Connection, InitializeResult, Outbound, RequestContext, Service};
use mcp::{ErrorObject, Notification, ProgressToken, RawValue, Request};
use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::progress::{Progress, Step};
use crate::store::Store;
use crate::tools::{TABLE, Tool};

const INSTRUCTIONS: &str = "Notes in a file on this machine, to try things out with. Start with \
    search_notes or list_notes. restore_note undoes delete_note; nothing undoes the purge tools.";

/// How similar an unknown name must be to a known one to be taken for a slip.
const SIMILAR: f64 = 0.8;

/// Progress that waits to be sent; a slow client slows the tool down.
const STEPS_WAITING: usize = 8;

#[derive(Debug)]
pub(crate) struct DemoService {
    store: Arc<Mutex<Store>>,
}

#[derive(Debug, Default, Deserialize)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CallParams {
    name: String,
    arguments: Option<serde_json::Map<String, Value>>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

#[derive(Debug, Deserialize)]
struct Meta {
    #[serde(rename = "progressToken")]
    progress_token: Option<ProgressToken>,
}

impl DemoService {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            store: Arc::new(Mutex::new(store)),
        }
    }

    async fn call(
        &self,
        params: CallParams,
        context: RequestContext,
    ) -> Result<Value, ErrorObject> {
        let tool = find(&params.name)?;
        let (sender, steps) = mpsc::channel(STEPS_WAITING);
        let token = params.meta.and_then(|meta| meta.progress_token);
        let listener = token.is_some().then_some(sender);
        let progress = Progress::new(listener, context.cancelled);
        let store = Arc::clone(&self.store);
        let arguments = Value::Object(params.arguments.unwrap_or_default());
        let work = tokio::task::spawn_blocking(move || {
            // A tool that panicked has left no half-done work behind: its transaction is gone.
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            tool.run(arguments, &mut store, &progress)
        });
        if let Some(token) = token {
            forward(&token, steps, &context.outbound).await;
        }
        work.await
            .map_err(|_| ErrorObject::internal("the tool ended unexpectedly"))
    }
}

impl Service for DemoService {
    async fn initialize(&self, _: &Connection) -> Result<InitializeResult, ErrorObject> {
        Ok(InitializeResult {
            capabilities: raw(&json!({ "tools": {} }))?,
            server_info: raw(&json!({
                "name": "mcpproxy-demo",
                "title": "Demo notes",
                "version": env!("CARGO_PKG_VERSION"),
            }))?,
            instructions: Some(INSTRUCTIONS.to_owned()),
        })
    }

    async fn request(
        &self,
        request: Request,
        context: RequestContext,
    ) -> Result<Box<RawValue>, ErrorObject> {
        match request.method.as_str() {
            "tools/list" => {
                let params = match &request.params {
                    Some(params) => parse(params)?,
                    None => ListParams::default(),
                };
                raw(&list(&params)?)
            }
            "tools/call" => {
                let params = request
                    .params
                    .ok_or_else(|| ErrorObject::invalid_params("tools/call needs params"))?;
                raw(&self.call(parse(&params)?, context).await?)
            }
            other => Err(ErrorObject::method_not_found(other)),
        }
    }
}

fn list(params: &ListParams) -> Result<Value, ErrorObject> {
    // The whole list fits on one page, so no cursor was ever given out.
    if let Some(cursor) = &params.cursor {
        return Err(ErrorObject::invalid_params(format!(
            "Unknown cursor: {cursor}"
        )));
    }
    let tools: Vec<_> = TABLE.iter().map(Tool::definition).collect();
    Ok(json!({ "tools": tools }))
}

fn find(name: &str) -> Result<&'static Tool, ErrorObject> {
    if let Some(tool) = TABLE.iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let suggestion = TABLE
        .iter()
        .map(|tool| (strsim::jaro_winkler(name, tool.name), tool.name))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, name)| format!("; did you mean {name}?"))
        .unwrap_or_default();
    Err(ErrorObject::invalid_params(format!(
        "Unknown tool: {name}{suggestion}"
    )))
}

/// Sends progress to the client until the tool is done or the client is gone.
async fn forward(token: &ProgressToken, mut steps: mpsc::Receiver<Step>, client: &Outbound) {
    while let Some(Step { done, total }) = steps.recv().await {
        let params = json!({
            "progressToken": token,
            "progress": done,
            "total": total,
            "message": format!("{done} of {total} notes"),
        });
        let notification = Notification::new("notifications/progress", to_raw_value(&params).ok());
        if client.notify(notification).await.is_err() {
            return;
        }
    }
}

fn parse<T: for<'de> Deserialize<'de>>(params: &RawValue) -> Result<T, ErrorObject> {
    serde_json::from_str(params.get())
        .map_err(|error| ErrorObject::invalid_params(format!("Invalid params: {error}")))
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, ErrorObject> {
    to_raw_value(value).map_err(|error| ErrorObject::internal(error.to_string()))
}
