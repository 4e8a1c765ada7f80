//! `/tools/{id}/override` and `/overrides`: the operator's own tiers, which are in the config file.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use config::Document;
use policy::Tier;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extract::Segment;
use super::parameters::OverridePath;
use super::{Answer, ApiError, ApiResult, Data, ErrorBody};
use crate::engine::InForce;
use crate::http::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OverrideBody {
    tier: Tier,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Override {
    pattern: String,
    tier: Option<Tier>,
    /// How many tools that are known now it applies to.
    tools: usize,
    /// Said when there is none: what may have been meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Overrides {
    overrides: Vec<Override>,
}

/// Lists the overrides in the order of the file.
#[utoipa::path(
    get,
    path = "/api/v1/overrides",
    tag = "tools",
    responses(
        (status = 200, description = "The overrides.", body = Answer<Overrides>),
    ),
)]
pub(super) async fn list(State(state): State<AppState>) -> ApiResult<Overrides> {
    let in_force = state.engine.current().await;
    let written = in_force.config.tool_overrides.written().iter();
    let overrides = written
        .map(|(pattern, tier)| describe(&in_force, pattern, Some(*tier)))
        .collect();
    Ok(Data(Overrides { overrides }))
}

/// Sets the tier of a tool, or of all tools that a pattern names.
#[utoipa::path(
    put,
    path = "/api/v1/tools/{id}/override",
    tag = "tools",
    params(OverridePath),
    request_body = OverrideBody,
    responses(
        (status = 200, description = "The override as it is now.", body = Answer<Override>),
        (status = 400, description = "The pattern or the tier is not valid.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(super) async fn set(
    State(state): State<AppState>,
    Segment(pattern): Segment,
    body: Result<Json<OverrideBody>, JsonRejection>,
) -> ApiResult<Override> {
    let Json(body) = body.map_err(|error| {
        let tiers = Tier::ALL.map(Tier::as_str).join(", ");
        ApiError::bad_request(error.body_text())
            .hint(format!("send {{\"tier\": …}}, one of {tiers}"))
    })?;
    state
        .edit_config(|document: &mut Document| {
            document.set_override(&pattern, body.tier).map_err(|error| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                ApiError::bad_request(error.to_string()).hint(source.unwrap_or_default())
            })
        })
        .await?;
    let in_force = state.engine.current().await;
    Ok(Data(describe(&in_force, &pattern, Some(body.tier))))
}

/// Removes an override.
#[utoipa::path(
    delete,
    path = "/api/v1/tools/{id}/override",
    tag = "tools",
    params(OverridePath),
    responses(
        (status = 200, description = "The override is gone.", body = Answer<Override>),
        (status = 400, description = "The path is not UTF-8.", body = ErrorBody),
        (status = 404, description = "There is no such override.", body = ErrorBody),
        (status = 409, description = "The config file is not valid, or was changed meanwhile.", body = ErrorBody),
        (status = 503, description = "The file is changed, and the daemon is slow to follow.", body = ErrorBody),
    ),
)]
pub(super) async fn clear(
    State(state): State<AppState>,
    Segment(pattern): Segment,
) -> ApiResult<Override> {
    let unknown = || {
        ApiError::not_found(format!("there is no override for '{pattern}'"))
            .hint("list them with `mcpproxy tools override list` or GET /api/v1/overrides")
    };
    state
        .edit_config(|document| {
            document
                .remove_override(&pattern)
                .then_some(())
                .ok_or_else(unknown)
        })
        .await?;
    let in_force = state.engine.current().await;
    Ok(Data(describe(&in_force, &pattern, None)))
}

fn describe(in_force: &InForce, pattern: &str, tier: Option<Tier>) -> Override {
    let catalog = &in_force.catalog;
    let compiled = policy::Overrides::compile([(pattern, Tier::Write)]).unwrap_or_default();
    let tools = catalog
        .tools()
        .filter(|entry| compiled.tier_for(&entry.tool.id).is_some())
        .count();
    let near = catalog.suggest_tools(pattern);
    // An override that is gone need not match anything.
    let warning = (tools == 0 && tier.is_some()).then(|| match near.first() {
        Some(near) => format!("no tool matches '{pattern}' now; did you mean '{near}'?"),
        None => format!("no tool matches '{pattern}' now"),
    });
    Override {
        pattern: pattern.to_owned(),
        tier,
        tools,
        warning,
    }
}
