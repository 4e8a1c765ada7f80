//! `/tools`: listing, searching, showing and calling tools.

use activity::Source;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, State};
use mcp::RawValue;
use policy::{Code, Refusal, ToolId, ToolVariant};
use serde::{Deserialize, Serialize};

use super::servers::unknown_server;
use super::{ApiError, ApiResult, Data, request_id};
use crate::engine::{CallRequest, Caller, SearchRequest, SearchResult, ToolView};
use crate::http::{AppState, Principal};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    server: Option<String>,
    lane: Option<policy::OperationType>,
}

#[derive(Debug, Serialize)]
pub(super) struct Tools {
    tools: Vec<ToolView>,
    total: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Tool {
    #[serde(flatten)]
    view: ToolView,
    definition: Box<RawValue>,
}

/// The body of a call: the lane, and the arguments of `call_tool_*`.
#[derive(Debug, Deserialize)]
pub(super) struct CallBody {
    tool_variant: ToolVariant,
    arguments: Box<RawValue>,
}

#[derive(Debug, Serialize)]
pub(super) struct CallResult {
    /// The upstream's result, untouched.
    result: Box<RawValue>,
}

/// Lists the tools of all upstreams, by name.
pub(super) async fn list(
    State(state): State<AppState>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> ApiResult<Tools> {
    let Query(query) = query.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let engine = &state.engine;
    if let Some(name) = &query.server {
        let known = engine
            .upstreams()
            .iter()
            .any(|upstream| upstream.name().as_str() == name);
        if !known {
            return Err(unknown_server(engine, name));
        }
    }
    let catalog = engine.catalog();
    let tools: Vec<_> = catalog
        .tools()
        .filter(|entry| {
            let server = entry.tool.id.server().as_str();
            query
                .server
                .as_deref()
                .is_none_or(|wanted| wanted == server)
        })
        .map(|entry| engine.view(entry.tool, entry.stale))
        .filter(|view| {
            query
                .lane
                .is_none_or(|lane| view.call_with.operation_type() == lane)
        })
        .collect();
    let total = tools.len();
    Ok(Data(Tools { tools, total }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchQuery {
    q: String,
    limit: Option<i64>,
    server: Option<String>,
    lane: Option<String>,
    detail: Option<crate::engine::Detail>,
    /// Whether each hit says why it was found.
    #[serde(default)]
    explain: bool,
}

/// Searches as `retrieve_tools` does.
pub(super) async fn search(
    State(state): State<AppState>,
    query: Result<Query<SearchQuery>, QueryRejection>,
) -> ApiResult<SearchResult> {
    let Query(query) = query.map_err(|error| ApiError::bad_request(error.body_text()))?;
    let request = SearchRequest {
        query: query.q,
        limit: query.limit,
        server: query.server,
        lane: query.lane,
        detail: query.detail,
        explain: query.explain,
    };
    let found = state.engine.search(&request);
    found
        .map(Data)
        .map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Shows one tool with its definition, its tiers and why.
pub(super) async fn show(
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> ApiResult<Tool> {
    let id: ToolId = name
        .parse()
        .map_err(|error| ApiError::from(Refusal::from(error)))?;
    let catalog = state.engine.catalog();
    let Some(entry) = catalog.get(&id) else {
        let near = catalog.suggest_tools(&name);
        let error = ApiError::not_found(format!("there is no tool '{name}'"));
        return Err(match near.first() {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error.hint("list them with GET /api/v1/tools"),
        });
    };
    let view = state.engine.view(entry.tool, entry.stale);
    Ok(Data(Tool {
        view,
        definition: entry.tool.raw.clone(),
    }))
}

/// Calls a tool on the path that every call takes.
pub(super) async fn call(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    body: Result<axum::Json<CallBody>, JsonRejection>,
) -> ApiResult<CallResult> {
    let axum::Json(body) = body.map_err(|error| {
        ApiError::from(Refusal::new(Code::InvalidArgs, error.body_text()))
            .hint("send {\"tool_variant\": \"call_tool_read\", \"arguments\": {\"name\": \"server:tool\", …}}")
    })?;
    let request = CallRequest::parse(body.tool_variant, Some(&body.arguments));
    let caller = Caller {
        source: match principal {
            Principal::Owner => Source::Cli,
            Principal::KeyHolder | Principal::Anonymous => Source::Api,
        },
        session_id: None,
        client_name: None,
        request_id: Some(request_id()),
    };
    let result = state.engine.call(&request, &caller, None).await?;
    Ok(Data(CallResult { result }))
}
