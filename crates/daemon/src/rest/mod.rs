//! REST under `/api/v1`: one file per resource, one envelope for all answers. The attribute above a
//! handler is its place in the OpenAPI document; a route that is not put in with `routes!` is not
//! in it.

mod activity;
mod audit;
mod config;
mod envelope;
mod events;
mod extract;
mod openapi;
mod overrides;
mod parameters;
mod policy;
mod quarantine;
mod servers;
mod status;
mod tools;

use axum::Router;
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use envelope::{
    Answer, ApiError, ApiResult, BodyLimit, Data, ErrorBody, no_such_route, request_id,
    with_request_id, within_limit,
};

pub(crate) use extract::require_json;

use crate::http::AppState;

/// `/events`, which stands beside `/api/v1` as well as in it.
pub(crate) fn events() -> Router<AppState> {
    Router::new().route("/events", get(events::watch))
}

pub(crate) fn router() -> Router<AppState> {
    let routes = openapi::with_document(routes());
    routes.method_not_allowed_fallback(envelope::no_such_method)
}

/// The OpenAPI document of the REST API.
pub fn api_document() -> serde_json::Value {
    openapi::document(routes().into_openapi())
}

fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(events::watch))
        .routes(routes!(activity::list))
        .routes(routes!(activity::summary))
        .routes(routes!(activity::usage))
        .routes(routes!(activity::export))
        .routes(routes!(activity::verify))
        .routes(routes!(activity::show))
        .routes(routes!(audit::show, audit::check))
        .routes(routes!(overrides::list))
        .routes(routes!(overrides::set, overrides::clear))
        .routes(routes!(policy::simulate))
        .routes(routes!(status::show))
        .routes(routes!(status::stop))
        .routes(routes!(config::show))
        .routes(routes!(servers::list, servers::edit::create))
        .routes(routes!(
            servers::show,
            servers::edit::change,
            servers::edit::remove
        ))
        .routes(routes!(servers::edit::enable))
        .routes(routes!(servers::edit::disable))
        .routes(routes!(servers::restart))
        .routes(routes!(servers::logs::show))
        .routes(routes!(quarantine::show))
        .routes(routes!(quarantine::approve))
        .routes(routes!(quarantine::quarantine))
        .routes(routes!(tools::of_server))
        .routes(routes!(tools::list))
        .routes(routes!(tools::search))
        .routes(routes!(tools::call))
        .routes(routes!(tools::show))
}
