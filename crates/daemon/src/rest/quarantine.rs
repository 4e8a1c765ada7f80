//! `/servers/{name}/drift`, `/approve` and `/quarantine`: tools that changed, and the operator's
//! word on them.

use std::collections::BTreeMap;

use axum::extract::{Extension, State};
use axum::http::StatusCode;
use catalog::Fingerprint;
use policy::ToolName;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{BodyText, Segment};
use super::parameters::ServerPath;
use super::servers::known_server;
use super::{Answer, ApiError, ApiResult, Data, ErrorBody};
use crate::engine::{Approval, QuarantineError, ServerDrift};
use crate::http::{AppState, Principal};

/// Which tools are meant; all, if none is named.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsBody {
    #[serde(default)]
    #[schema(value_type = Vec<ToolNameText>)]
    tools: Vec<ToolName>,
    /// The fingerprints of the definitions that were looked at. A tool that has changed since is
    /// not approved.
    #[serde(default)]
    #[schema(value_type = BTreeMap<ToolNameText, FingerprintText>)]
    seen: BTreeMap<ToolName, Fingerprint>,
}

/// The name of a tool as its server has it.
#[derive(ToSchema)]
#[schema(
    min_length = 1,
    max_length = 128,
    pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$"
)]
#[expect(dead_code, reason = "described, never made: `policy` reads it")]
struct ToolNameText(String);

/// What was looked at, as `GET /servers/{name}/drift` gives it.
#[derive(ToSchema)]
#[schema(pattern = "^[0-9a-f]{64}$")]
#[expect(dead_code, reason = "described, never made: `catalog` reads it")]
struct FingerprintText(String);

/// Shows what waits for approval on an upstream.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/drift",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 200, description = "What waits.", body = Answer<ServerDrift>),
        (status = 400, description = "The path is not UTF-8.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(super) async fn show(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state.engine, &name)?;
    Ok(Data(state.engine.current().await.drift(&server)))
}

/// Approves tools as they are announced now, and ends their quarantine.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/approve",
    tag = "servers",
    params(ServerPath),
    request_body = Option<ToolsBody>,
    responses(
        (status = 200, description = "What waits now.", body = Answer<ServerDrift>),
        (status = 400, description = "The body is not valid.", body = ErrorBody),
        (status = 404, description = "There is no such server or tool.", body = ErrorBody),
        (status = 409, description = "A tool is not announced, or not as it was looked at.", body = ErrorBody),
        (status = 413, description = "The body is too long.", body = ErrorBody),
        (status = 500, description = "The pins cannot be written; nothing was changed.", body = ErrorBody),
    ),
)]
pub(super) async fn approve(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Segment(name): Segment,
    BodyText(body): BodyText,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state.engine, &name)?;
    let body = read(&body)?;
    let approval = Approval {
        server,
        tools: body.tools,
        seen: body.seen,
        source: principal.source(),
    };
    Ok(Data(state.engine.approve(approval).await?))
}

/// Keeps tools of an upstream, or the whole of it, from being called until they are approved.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/quarantine",
    tag = "servers",
    params(ServerPath),
    request_body = Option<ToolsBody>,
    responses(
        (status = 200, description = "What waits now.", body = Answer<ServerDrift>),
        (status = 400, description = "The body is not valid.", body = ErrorBody),
        (status = 404, description = "There is no such server or tool.", body = ErrorBody),
        (status = 409, description = "A tool is not announced, or not as it was looked at.", body = ErrorBody),
        (status = 413, description = "The body is too long.", body = ErrorBody),
        (status = 500, description = "The pins cannot be written; nothing was changed.", body = ErrorBody),
    ),
)]
pub(super) async fn quarantine(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Segment(name): Segment,
    BodyText(body): BodyText,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state.engine, &name)?;
    let tools = read(&body)?.tools;
    let marked = state
        .engine
        .quarantine(&server, &tools, principal.source())
        .await?;
    Ok(Data(marked))
}

fn read(body: &str) -> Result<ToolsBody, ApiError> {
    // Without a body everything is meant. One that is there counts however it is labelled: what
    // names a few tools must not be taken for all of them.
    if body.is_empty() {
        return Ok(ToolsBody::default());
    }
    let body: Option<ToolsBody> = serde_json::from_str(body).map_err(|error| {
        ApiError::bad_request(format!("the body is not valid: {error}"))
            .hint("send {\"tools\": [\"name\", …]}, or {} for all of them")
    })?;
    Ok(body.unwrap_or_default())
}

impl From<QuarantineError> for ApiError {
    fn from(error: QuarantineError) -> Self {
        let message = error.to_string();
        let conflict = |code| Self::new(StatusCode::CONFLICT, code, message.clone());
        match error {
            QuarantineError::UnknownTool(server, _) => Self::not_found(message).hint(format!(
                "list its tools with `mcpproxy tools list --server {server}`"
            )),
            QuarantineError::NotAnnounced(server, _) => conflict("NOT_ANNOUNCED").hint(format!(
                "see whether '{server}' is connected, and try again then"
            )),
            QuarantineError::WholeServer(server) => {
                conflict("SERVER_QUARANTINED").hint(format!("mcpproxy upstream approve {server}"))
            }
            QuarantineError::ChangedMeanwhile(tool) => conflict("CHANGED_MEANWHILE").hint(format!(
                "look at it again with `mcpproxy upstream diff {} {}`",
                tool.server(),
                tool.tool()
            )),
            QuarantineError::NotSaved(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "PINS_NOT_SAVED", message)
                    .hint(format!("{error}: {cause}"))
            }
            QuarantineError::Stopping => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "STOPPING", message)
            }
        }
    }
}
