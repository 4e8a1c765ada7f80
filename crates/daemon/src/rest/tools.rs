//! `/tools`: listing, searching, showing and calling tools.

use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use mcp::{Json, RawValue};
use policy::{Code, Refusal, ServerName, ToolId, ToolVariant};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::envelope::too_large;
use super::extract::{Parameters, Segment};
use super::parameters::{ServerPath, ToolPath};
use super::servers::{find, known_server, unknown_server};
use super::{Answer, ApiError, ApiResult, Data, ErrorBody, request_id};
use crate::engine::{
    CallRequest, Caller, InForce, SearchError, SearchRequest, SearchResult, ToolView,
};
use crate::http::{AppState, Principal};
use crate::off_thread::off_thread;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Only tools of this server.
    server: Option<String>,
    /// Only tools of this lane.
    lane: Option<policy::OperationType>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tools)]
pub(super) struct ToolListing {
    tools: Vec<ToolView>,
    total: usize,
    /// Shown only when there are any: servers that are being connected. Their tools are those they last had.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    starting: Vec<ServerName>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Tool {
    #[serde(flatten)]
    view: ToolView,
    /// The definition as the server announced it.
    #[schema(value_type = Object)]
    definition: Box<RawValue>,
}

/// The body of a call: the lane, and the arguments of `call_tool_*`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CallBody {
    tool_variant: ToolVariant,
    #[schema(value_type = CallArguments)]
    arguments: Box<RawValue>,
}

/// What an agent gives to `call_tool_*`. The intent can also be given flat, as
/// `intent_operation_type`, `intent_data_sensitivity` and `intent_reason`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never made: the engine reads it")]
struct CallArguments {
    /// server:tool
    #[schema(
        pattern = "^(?=[^:]{1,64}:)[A-Za-z0-9][A-Za-z0-9.-]*(_[A-Za-z0-9.-]+)*:[^\\u0000-\\u001f\\u007f-\\u009f]{1,128}$"
    )]
    name: String,
    /// The tool's own arguments.
    #[schema(value_type = Option<Object>)]
    args: Option<Box<RawValue>>,
    /// The same as a string that holds a JSON object. Not together with `args`.
    args_json: Option<String>,
    intent: Option<CallIntent>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never made: the engine reads it")]
struct CallIntent {
    operation_type: policy::OperationType,
    data_sensitivity: Option<policy::DataSensitivity>,
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CallResult {
    /// The upstream's result, untouched.
    #[schema(value_type = Object)]
    result: Box<RawValue>,
}

/// Lists the tools of all upstreams, by name.
#[utoipa::path(
    get,
    path = "/api/v1/tools",
    tag = "tools",
    params(ListQuery),
    responses(
        (status = 200, description = "The tools.", body = Answer<ToolListing>),
        (status = 400, description = "A parameter is not understood.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Parameters(query): Parameters<ListQuery>,
) -> ApiResult<ToolListing> {
    tools(&state, query).await
}

/// Lists the tools of one server.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/tools",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 200, description = "The tools.", body = Answer<ToolListing>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(super) async fn of_server(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> ApiResult<ToolListing> {
    find(&state.engine, &name)?;
    let (server, lane) = (Some(name), None);
    tools(&state, ListQuery { server, lane }).await
}

async fn tools(state: &AppState, query: ListQuery) -> ApiResult<ToolListing> {
    let engine = &state.engine;
    if let Some(name) = &query.server {
        known_server(engine, name)?;
    }
    let in_force = engine.current().await;
    let only = query.server.as_deref().and_then(|name| name.parse().ok());
    let starting = in_force.starting(only.as_ref());
    let tools = off_thread(move || views(&in_force, &query)).await;
    let total = tools.len();
    Ok(Data(ToolListing {
        tools,
        total,
        starting,
    }))
}

fn views(in_force: &InForce, query: &ListQuery) -> Vec<ToolView> {
    let server = query.server.as_deref();
    in_force
        .tools()
        .filter(|(state, _)| {
            server.is_none_or(|wanted| wanted == state.definition().id.server().as_str())
        })
        .map(|(state, stale)| state.view(stale))
        .filter(|view| {
            query
                .lane
                .is_none_or(|lane| view.call_with.operation_type() == lane)
        })
        .collect()
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchQuery {
    /// What the tool should do.
    #[param(pattern = "[^\\s]")]
    q: String,
    /// How many tools; 10 unless given.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<i64>,
    /// Only tools of this server.
    server: Option<String>,
    /// Only tools of this lane.
    #[param(pattern = "^(read|write|destructive)$")]
    lane: Option<String>,
    /// How much of each tool is shown.
    #[param(inline)]
    detail: Option<crate::engine::Detail>,
    /// Whether each hit says why it was found.
    #[serde(default)]
    explain: bool,
}

/// Searches as `retrieve_tools` does.
#[utoipa::path(
    get,
    path = "/api/v1/tools/search",
    tag = "tools",
    params(SearchQuery),
    responses(
        (status = 200, description = "The tools that fit best.", body = Answer<SearchResult>),
        (status = 400, description = "A parameter is not understood.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(super) async fn search(
    State(state): State<AppState>,
    Parameters(query): Parameters<SearchQuery>,
) -> ApiResult<SearchResult> {
    let request = SearchRequest {
        query: query.q,
        limit: query.limit,
        server: query.server,
        lane: query.lane,
        detail: query.detail,
        explain: query.explain,
    };
    let current = state.engine.current().await;
    let found = off_thread(move || current.search(&request)).await;
    found.map(Data).map_err(|error| match error {
        SearchError::Server { name, .. } => unknown_server(&state.engine, &name),
        other => ApiError::bad_request(other.to_string()),
    })
}

/// Shows one tool with its definition, its tiers and why.
#[utoipa::path(
    get,
    path = "/api/v1/tools/{id}",
    tag = "tools",
    params(ToolPath),
    responses(
        (status = 200, description = "The tool.", body = Answer<Tool>),
        (status = 400, description = "That is not server:tool.", body = ErrorBody),
        (status = 404, description = "There is no such tool.", body = ErrorBody),
    ),
)]
pub(super) async fn show(State(state): State<AppState>, Segment(name): Segment) -> ApiResult<Tool> {
    let id: ToolId = name
        .parse()
        .map_err(|error| ApiError::from(Refusal::from(error)))?;
    let in_force = state.engine.current().await;
    let found = in_force.tool(&id).zip(in_force.catalog.get(&id));
    let Some((tool, entry)) = found else {
        let near = in_force.catalog.suggest_tools(&name);
        let error = ApiError::not_found(format!("there is no tool '{name}'"));
        let starting = in_force.starting(Some(id.server()));
        return Err(match near.first() {
            _ if !starting.is_empty() => error.hint(format!(
                "{} is still starting; try again in a few seconds",
                id.server()
            )),
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("list them with `mcpproxy tools list`"),
        });
    };
    Ok(Data(Tool {
        view: tool.view(entry.stale),
        definition: entry.tool.raw.clone(),
    }))
}

/// Calls a tool on the path that every call takes.
#[utoipa::path(
    post,
    path = "/api/v1/tools/call",
    tag = "tools",
    request_body = CallBody,
    responses(
        (status = 200, description = "The result, also one that says it is an error.", body = Answer<CallResult>),
        (status = 400, description = "The call or its intent is not valid.", body = ErrorBody),
        (status = 403, description = "The policy refuses the call.", body = ErrorBody),
        (status = 413, description = "The call is larger than limits.request_bytes.", body = ErrorBody),
        (status = 404, description = "There is no such tool or server.", body = ErrorBody),
        (status = 502, description = "The server failed.", body = ErrorBody),
        (status = 503, description = "The server is not connected, or the call cannot be recorded.", body = ErrorBody),
        (status = 504, description = "The server did not answer in time.", body = ErrorBody),
    ),
)]
pub(super) async fn call(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Result<axum::Json<CallBody>, JsonRejection>,
) -> ApiResult<CallResult> {
    let axum::Json(body) = body.map_err(|error| {
        if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large(None, state.engine.config().limits.request_bytes);
        }
        ApiError::from(Refusal::new(Code::InvalidArgs, error.body_text()))
            .hint("send {\"tool_variant\": \"call_tool_read\", \"arguments\": {\"name\": \"server:tool\", …}}")
    })?;
    let arguments = Json::from(&*body.arguments);
    let request = CallRequest::parse(body.tool_variant, Some(&arguments), None);
    let caller = Caller {
        source: principal.source(),
        session_id: None,
        client_name: None,
        request_id: Some(request_id()),
    };
    let result = state.engine.call(&request, &caller, None).await?;
    Ok(Data(CallResult { result }))
}
