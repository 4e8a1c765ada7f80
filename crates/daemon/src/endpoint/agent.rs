//! What `/mcp` answers.

use std::borrow::Cow;
use std::sync::Arc;

use mcp::server::{Connection, InitializeResult, RequestContext, Service};
use mcp::{ErrorObject, Json, Notification, RawValue, Request};
use policy::{Code, IntentMode, Refusal, ToolVariant};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::all_servers::AllServers;
use super::clients::Clients;
use super::cut::Cut;
use super::definitions::{DESCRIBE_TOOL, READ_CACHE, RETRIEVE_TOOLS, tools_list};
use super::relay::{
    Answer, caller, progress_token, raw, refused, until_interrupted, with_progress,
};
use super::response_cache::ResponseCache;
use crate::engine::{CallRequest, Engine, SearchRequest};
use crate::http::Principal;
use crate::off_thread::off_thread;

const INSTRUCTIONS: &str = "Tools of all connected MCP servers, behind six tools. Find a tool with \
retrieve_tools, then run it with the variant that its call_with names. Their resources and prompts are \
here too; the names of prompts begin with the name of their server and two underscores.";

const MAX_DESCRIBED: usize = 50;

/// What agents are told that know mcpproxy from before the lanes.
const CALL_TOOL_IS_GONE: &str = "Tool 'call_tool' not found. Use call_tool_read, call_tool_write, or \
call_tool_destructive with matching intent.operation_type. See retrieve_tools for annotations and \
recommendations.";

/// The endpoint for agents: search, three lanes, and the resources and prompts of all upstreams.
#[derive(Debug)]
pub(crate) struct AgentEndpoint {
    engine: Arc<Engine>,
    cache: ResponseCache,
    pub(super) servers: AllServers,
}

/// The params of `tools/call`.
struct ToolCallParams<'a> {
    name: Cow<'a, str>,
    arguments: Option<Json<'a>>,
    meta: Option<Json<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribeArguments {
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadCacheArguments {
    key: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

// === impl AgentEndpoint ===

impl AgentEndpoint {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self {
            servers: AllServers::new(Arc::clone(&engine), Clients::sharing()),
            engine,
            cache: ResponseCache::default(),
        }
    }

    async fn answer(&self, request: Request, context: RequestContext) -> Answer {
        match self.servers.answer(&request, &context).await {
            Some(answer) => answer,
            None => Err(ErrorObject::method_not_found(&request.method)),
        }
    }

    async fn call_tool(&self, request: &Request, context: RequestContext) -> Answer {
        let params = request.params.as_deref().map(Json::from);
        let params = ToolCallParams::read(params.as_ref())?;
        if let Some(variant) = ToolVariant::from_name(&params.name) {
            return self.call_upstream(variant, &params, context).await;
        }
        let arguments = params.arguments.as_ref();
        match &*params.name {
            RETRIEVE_TOOLS => self.retrieve_tools(arguments).await,
            DESCRIBE_TOOL => self.describe_tool(arguments).await,
            READ_CACHE => self.read_cache(arguments, &context),
            "call_tool" => {
                let refusal = Refusal::new(Code::UnknownTool, CALL_TOOL_IS_GONE);
                let call = CallRequest::without_lane(arguments, refusal);
                match self.engine.call(&call, &caller(&context), None).await {
                    Ok(result) => Ok(result),
                    Err(refusal) => refused(&refusal),
                }
            }
            other => {
                let message = format!(
                    "Unknown tool: {other}. Tools of upstream servers are found with retrieve_tools \
                     and run with call_tool_read, call_tool_write or call_tool_destructive."
                );
                let refusal = Refusal::new(Code::UnknownTool, message);
                let call = CallRequest::unknown(other.to_owned(), arguments, refusal);
                let answer = self.engine.call(&call, &caller(&context), None).await;
                answer.map_err(|refusal| ErrorObject::invalid_params(refusal.message))
            }
        }
    }

    async fn call_upstream(
        &self,
        variant: ToolVariant,
        params: &ToolCallParams<'_>,
        context: RequestContext,
    ) -> Answer {
        let (arguments, meta) = (params.arguments.as_ref(), params.meta.as_ref());
        let call = CallRequest::parse(variant, arguments, meta);
        let caller = caller(&context);
        let token = meta.and_then(progress_token);
        let client = self.servers.clients.on_behalf(&context);
        let outcome = with_progress(token, &context, |progress| {
            self.engine
                .call_for(&call, &caller, progress, Some(&client))
        });
        match outcome.await? {
            Ok(result) => {
                if let CallRequest::Lane(call) = &call {
                    self.servers.learn_task(call.tool.server(), &result);
                }
                Ok(self.within_limit(result, &context))
            }
            Err(failed) => refused(&failed.refusal),
        }
    }

    /// Cuts the result if it is longer than agents are known to take, and keeps the whole.
    fn within_limit(&self, result: Box<RawValue>, context: &RequestContext) -> Box<RawValue> {
        let limit = self.engine.config().tool_response_limit;
        let cut = Cut::new(&result, limit).and_then(|mut cut| {
            let owner = owner(&context.connection);
            let key = self.cache.keep(&owner, cut.take_whole());
            cut.finish(key.as_deref())
        });
        cut.unwrap_or(result)
    }

    async fn retrieve_tools(&self, arguments: Option<&Json<'_>>) -> Answer {
        let request: SearchRequest = match parse(RETRIEVE_TOOLS, arguments) {
            Ok(request) => request,
            Err(refusal) => return refused(&refusal),
        };
        let current = self.engine.current().await;
        off_thread(move || match current.search(&request) {
            Ok(found) => structured(&found),
            Err(error) => refused(&error.into()),
        })
        .await
    }

    async fn describe_tool(&self, arguments: Option<&Json<'_>>) -> Answer {
        let DescribeArguments { names } = match parse(DESCRIBE_TOOL, arguments) {
            Ok(arguments) => arguments,
            Err(refusal) => return refused(&refusal),
        };
        if names.is_empty() || names.len() > MAX_DESCRIBED {
            let message = format!("names must hold 1 to {MAX_DESCRIBED} names");
            return refused(&Refusal::new(Code::InvalidArgs, message));
        }
        let in_force = self.engine.current().await;
        structured(&in_force.describe(&names, in_force.config.tool_response_limit))
    }

    fn read_cache(&self, arguments: Option<&Json<'_>>, context: &RequestContext) -> Answer {
        let arguments: ReadCacheArguments = match parse(READ_CACHE, arguments) {
            Ok(arguments) => arguments,
            Err(refusal) => return refused(&refusal),
        };
        let owner = owner(&context.connection);
        let Some(text) = self.cache.get(&owner, &arguments.key) else {
            let message =
                "Nothing is kept under this key. It may have expired; call the tool again.";
            return refused(&Refusal::new(Code::InvalidArgs, message));
        };
        let limit = match self.engine.config().tool_response_limit {
            0 => usize::MAX,
            limit => limit,
        };
        let limit = arguments.limit.unwrap_or(limit).clamp(1, limit);
        let part: String = text.chars().skip(arguments.offset).take(limit).collect();
        let (next, total) = (
            arguments.offset + part.chars().count(),
            text.chars().count(),
        );
        let next_offset = (next < total).then_some(next);
        let key = &arguments.key;
        let read_on = next_offset.map_or("This is the end.".to_owned(), |next| {
            format!(r#"Read on with read_cache {{"key": "{key}", "offset": {next}}}."#)
        });
        let first = arguments.offset;
        let position = format!("[mcpproxy: characters {first} to {next} of {total}. {read_on}]");
        // No structured content: some clients would give the model nothing else. The position comes
        // first, where a client that shortens the page leaves it.
        raw(&json!({
            "content": [{"type": "text", "text": position}, {"type": "text", "text": part}],
            "_meta": {
                "mcpproxy/page": {"offset": first, "next_offset": next_offset, "total": total}
            }
        }))
    }
}

impl Service for AgentEndpoint {
    async fn initialize(&self, _connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        let mut capabilities = AllServers::capabilities();
        capabilities["tools"] = json!({});
        Ok(InitializeResult {
            capabilities: raw(&capabilities)?,
            server_info: raw(&json!({
                "name": "mcpproxy",
                "title": "mcpproxy",
                "version": env!("CARGO_PKG_VERSION")
            }))?,
            instructions: Some(INSTRUCTIONS.to_owned()),
        })
    }

    async fn request(&self, request: Request, context: RequestContext) -> Answer {
        match request.method.as_str() {
            "tools/list" => {
                let mode: IntentMode = self.engine.config().intent_declaration.mode;
                tools_list(mode).map_err(|error| ErrorObject::internal(error.to_string()))
            }
            "tools/call" => self.call_tool(&request, context).await,
            // Boxed, so that calls do not carry the state of these.
            _ => until_interrupted(&self.engine, Box::pin(self.answer(request, context))).await,
        }
    }

    async fn notification(&self, notification: Notification, connection: Arc<Connection>) {
        self.servers.notification(notification, &connection).await;
    }

    fn closed(&self, connection: &Connection) {
        self.servers.closed(connection);
        if !connection.protocol.is_modern() {
            self.cache.forget(connection.session.as_str());
        }
    }
}

// === impl ToolCallParams ===

impl<'a> ToolCallParams<'a> {
    fn read(params: Option<&'a Json<'_>>) -> Result<Self, ErrorObject> {
        let invalid = |problem| ErrorObject::invalid_params(format!("tools/call: {problem}"));
        let (mut given_name, mut arguments, mut meta) = (None, None, None);
        // Members given twice have been refused with the message.
        for (name, value) in params.and_then(Json::members).into_iter().flatten() {
            match &*name {
                "name" => given_name = Some(value),
                "arguments" => arguments = Some(value),
                "_meta" => meta = Some(value),
                _ => {}
            }
        }
        let name = given_name.ok_or_else(|| invalid("`name` is missing"))?;
        Ok(Self {
            name: name
                .into_str()
                .ok_or_else(|| invalid("`name` must be a string"))?,
            arguments: arguments.filter(|json| !json.is_null()),
            meta: meta.filter(|json| !json.is_null()),
        })
    }
}

/// Who may read on in a long result: the session that got it or, in the modern era, which has no
/// sessions, a caller that is the same principal and knows the key.
fn owner(connection: &Connection) -> String {
    if connection.protocol.is_modern() {
        let principal = connection.extensions.get::<Principal>();
        return format!("{:?}", principal.unwrap_or(&Principal::Owner));
    }
    connection.session.to_string()
}

fn parse<'a, T: Deserialize<'a>>(
    tool: &str,
    arguments: Option<&'a Json<'_>>,
) -> Result<T, Refusal> {
    let text = arguments.map_or("{}", Json::get);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let member = match error.path().to_string().as_str() {
            "." => String::new(),
            path => format!("{path}: "),
        };
        let message = format!(
            "the arguments of {tool} are not valid: {member}{}",
            error.inner()
        );
        Refusal::new(Code::InvalidArgs, message)
    })
}

/// A result of our own: the JSON as text, and the same as structured content.
fn structured(value: &impl Serialize) -> Answer {
    #[derive(Serialize)]
    struct Structured<'a> {
        content: [TextContent<'a>; 1],
        #[serde(rename = "structuredContent")]
        structured_content: &'a RawValue,
    }
    #[derive(Serialize)]
    struct TextContent<'a> {
        r#type: &'static str,
        text: &'a str,
    }
    let value = raw(value)?;
    raw(&Structured {
        content: [TextContent {
            r#type: "text",
            text: value.get(),
        }],
        structured_content: &value,
    })
}
