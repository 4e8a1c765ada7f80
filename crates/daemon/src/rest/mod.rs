//! REST under `/api/v1`: one file per resource, one envelope for all answers.

mod activity;
mod audit;
mod envelope;
mod events;
mod overrides;
mod policy;
mod quarantine;
mod servers;
mod status;
mod tools;

use axum::Router;
use axum::routing::{get, post, put};

pub(crate) use envelope::{ApiError, ApiResult, Data, no_such_route, request_id, with_request_id};

use crate::http::AppState;

/// `/events`, which stands beside `/api/v1` as well as in it.
pub(crate) fn events() -> Router<AppState> {
    Router::new().route("/events", get(events::watch))
}

pub(crate) fn router() -> Router<AppState> {
    events()
        .route("/activity", get(activity::list))
        .route("/activity/summary", get(activity::summary))
        .route("/activity/usage", get(activity::usage))
        .route("/activity/export", get(activity::export))
        .route("/activity/verify", get(activity::verify))
        .route("/activity/{id}", get(activity::show))
        .route("/audit", get(audit::show).post(audit::check))
        .route("/overrides", get(overrides::list))
        .route(
            "/tools/{id}/override",
            put(overrides::set).delete(overrides::clear),
        )
        .route("/policy/simulate", post(policy::simulate))
        .route("/status", get(status::show))
        .route("/servers", get(servers::list))
        .route("/servers/{name}", get(servers::show))
        .route("/servers/{name}/drift", get(quarantine::show))
        .route("/servers/{name}/approve", post(quarantine::approve))
        .route("/servers/{name}/quarantine", post(quarantine::quarantine))
        .route("/tools", get(tools::list))
        .route("/tools/search", get(tools::search))
        .route("/tools/call", post(tools::call))
        .route("/tools/{id}", get(tools::show))
}
