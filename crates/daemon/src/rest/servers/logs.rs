//! `/servers/{name}/logs`: what a server writes to its stderr.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use upstream::LogCursor;
use utoipa::ToSchema;

use super::find;
use crate::http::AppState;
use crate::rest::extract::{Parameters, Segment};
use crate::rest::parameters::ServerPath;
use crate::rest::{Answer, ApiError, ApiResult, Data, ErrorBody};

const DEFAULT_LINES: usize = 100;
const MOST_LINES: usize = 500;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::rest) struct LogQuery {
    /// How many lines; 100 unless given.
    #[param(minimum = 1, maximum = 500)]
    lines: Option<usize>,
    /// `cursor` of the answer before: only what was written since.
    #[param(pattern = "^[0-9a-f]{1,16}-[0-9a-f]{1,16}$")]
    after: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::rest) struct Logs {
    /// Oldest first. Secrets of the config are struck out.
    lines: Vec<String>,
    /// Where to go on.
    cursor: String,
}

/// Shows the last lines that a server wrote to stderr, or what it wrote since a cursor.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}/logs",
    tag = "servers",
    params(ServerPath, LogQuery),
    responses(
        (status = 200, description = "The lines.", body = Answer<Logs>),
        (status = 400, description = "A parameter is not understood.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(in crate::rest) async fn show(
    State(state): State<AppState>,
    Segment(name): Segment,
    Parameters(query): Parameters<LogQuery>,
) -> ApiResult<Logs> {
    let lines = query.lines.unwrap_or(DEFAULT_LINES);
    if !(1..=MOST_LINES).contains(&lines) {
        let message = format!("lines is {lines}; it must be between 1 and {MOST_LINES}");
        return Err(ApiError::bad_request(message));
    }
    let after: Option<LogCursor> =
        query.after.map(|text| text.parse()).transpose().map_err(
            |error: upstream::InvalidLogCursor| ApiError::bad_request(error.to_string()),
        )?;
    let page = find(&state.engine, &name)?.log(after, lines);
    Ok(Data(Logs {
        lines: page.lines,
        cursor: page.cursor.to_string(),
    }))
}
