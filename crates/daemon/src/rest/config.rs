//! `GET /config`: the config in force, secrets masked.

use axum::extract::State;
use serde_json::Value;

use super::{Answer, ApiResult, Data};
use crate::http::AppState;

/// Shows the config in force in the shape of the file, with every default filled in. Keys and the
/// values of env and headers are `***`.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    tag = "daemon",
    responses((status = 200, description = "The config.", body = Answer<Value>)),
)]
pub(super) async fn show(State(state): State<AppState>) -> ApiResult<Value> {
    Ok(Data(state.engine.config().to_masked_json()))
}
