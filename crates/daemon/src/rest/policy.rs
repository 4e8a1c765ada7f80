//! `/policy/simulate`: recorded calls, decided again under other settings.

use std::collections::BTreeMap;

use activity::Filter;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Answer, ApiError, ApiResult, Data, ErrorBody};
use crate::engine::Simulation;
use crate::http::AppState;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SimulateBody {
    /// Settings by their paths in the config file, as `intent_declaration.unannotated`.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Value>)]
    set: Map<String, Value>,
    /// Which calls, by the parameters of `GET /activity`.
    #[serde(default)]
    filter: BTreeMap<String, String>,
}

/// Replays recorded calls through the decision, and tells what would have come out otherwise.
#[utoipa::path(
    post,
    path = "/api/v1/policy/simulate",
    tag = "policy",
    request_body = SimulateBody,
    responses(
        (status = 200, description = "What would have changed.", body = Answer<Simulation>),
        (status = 400, description = "A setting or a filter is not valid.", body = ErrorBody),
        (status = 503, description = "The log cannot be read.", body = ErrorBody),
    ),
)]
pub(super) async fn simulate(
    State(state): State<AppState>,
    body: Result<Json<SimulateBody>, JsonRejection>,
) -> ApiResult<Simulation> {
    let Json(body) = body.map_err(|error| {
        ApiError::bad_request(error.body_text())
            .hint("send {\"set\": {\"intent_declaration.unannotated\": \"infer\"}}")
    })?;
    let pairs = body.filter.iter();
    let filter = Filter::from_pairs(pairs.map(|(name, value)| (name.as_str(), value.as_str())))?;
    let changes = body.set.iter().map(|(path, value)| (path.as_str(), value));
    let config = state.engine.config().what_if(changes).map_err(|error| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "INVALID_SETTING",
            error.to_string(),
        )
        .hint("the settings are described in docs/configuration.md")
    })?;
    Ok(Data(state.engine.simulate(&filter, &config).await?))
}
