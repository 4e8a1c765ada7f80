//! `/servers/{name}/drift`, `/approve` and `/quarantine`: tools that changed, and the operator's
//! word on them.

use std::collections::BTreeMap;

use activity::Source;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use catalog::Fingerprint;
use policy::{ServerName, ToolName};
use serde::Deserialize;

use super::servers::unknown_server;
use super::{ApiError, ApiResult, Data};
use crate::engine::{Approval, QuarantineError, ServerDrift};
use crate::http::{AppState, Principal};

/// Which tools are meant; all, if none is named.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsBody {
    #[serde(default)]
    tools: Vec<ToolName>,
    /// The fingerprints of the definitions that were looked at. A tool that has changed since is
    /// not approved.
    #[serde(default)]
    seen: BTreeMap<ToolName, Fingerprint>,
}

type Body = Result<Json<ToolsBody>, JsonRejection>;

/// Shows what waits for approval on an upstream.
pub(super) async fn show(
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state, &name)?;
    Ok(Data(state.engine.drift(&server)))
}

/// Approves tools as they are announced now, and ends their quarantine.
pub(super) async fn approve(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state, &name)?;
    let body = read(body)?;
    let approval = Approval {
        server: &server,
        tools: &body.tools,
        seen: &body.seen,
        source: source(principal),
    };
    Ok(Data(state.engine.approve(&approval).await?))
}

/// Keeps tools of an upstream, or the whole of it, from being called until they are approved.
pub(super) async fn quarantine(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    Path(name): Path<String>,
    body: Body,
) -> ApiResult<ServerDrift> {
    let server = known_server(&state, &name)?;
    let tools = read(body)?.tools;
    let marked = state
        .engine
        .quarantine(&server, &tools, source(principal))
        .await?;
    Ok(Data(marked))
}

fn read(body: Body) -> Result<ToolsBody, ApiError> {
    match body {
        Ok(Json(body)) => Ok(body),
        // Without a body everything is meant.
        Err(JsonRejection::MissingJsonContentType(_)) => Ok(ToolsBody::default()),
        Err(error) => Err(ApiError::bad_request(error.body_text())
            .hint("send {\"tools\": [\"name\", …]}, or {} for all of them")),
    }
}

fn known_server(state: &AppState, name: &str) -> Result<ServerName, ApiError> {
    let server = name.parse().ok();
    server
        .filter(|server| state.engine.fleet().get(server).is_some())
        .ok_or_else(|| unknown_server(&state.engine, name))
}

fn source(principal: Principal) -> Source {
    match principal {
        Principal::Owner => Source::Cli,
        Principal::KeyHolder | Principal::Anonymous => Source::Api,
    }
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
        }
    }
}
