//! A server is tried out before it is added: what it would offer, and on which lanes.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use config::ServerConfig;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::{Engine, ToolView};
use crate::rest::{ApiError, ApiResult, Data};

/// How long a server may take to show its tools. `npx` may have to fetch it first.
const PATIENCE: Duration = Duration::from_secs(65);

/// What a server that was tried out offers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::rest) struct Check {
    /// What the server calls itself.
    server_name: Option<String>,
    server_version: Option<String>,
    tools: Vec<ToolView>,
}

/// Connects, lists the tools, and lets the server go again.
pub(super) async fn try_out(engine: &Engine, server: ServerConfig) -> ApiResult<Check> {
    let (name, trust) = (server.name.clone(), server.trust);
    let status = engine
        .fleet()
        .try_out(server, Instant::now() + PATIENCE)
        .await;
    // Nothing is wrong with this daemon: what was sent describes a server that is not there.
    let failed = |message: String, advice: &str| {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        ApiError::new(status, "SERVER_UNAVAILABLE", message).hint(advice)
    };
    if let Some(failure) = status.state.failure() {
        let message = format!("'{name}' cannot be connected: {}", failure.message);
        // It is not in the config, so nothing is tried again by itself.
        let advice = if failure.permanent {
            &failure.advice
        } else {
            "see that the server runs, and try again"
        };
        return Err(failed(message, advice));
    }
    if !status.state.is_settled() {
        let message = format!("'{name}' did not answer within {} s", PATIENCE.as_secs());
        return Err(failed(message, "see that the server runs, and try again"));
    }
    let tools = status.tools.all().iter();
    let in_force = engine.in_force();
    Ok(Data(Check {
        server_name: status.server.as_ref().map(|server| server.name.clone()),
        server_version: status.server.as_ref().map(|server| server.version.clone()),
        tools: tools.map(|tool| in_force.preview(tool, trust)).collect(),
    }))
}
