//! The OpenAPI document, put together from the attributes above the handlers.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;

use crate::http::AppState;

const DESCRIPTION: &str = "\
Everything that the command line does, for scripts. Answers are wrapped: `{\"success\": true, \"data\": …, \
\"request_id\": …}`, or `{\"success\": false, \"error\": {\"code\", \"message\", \"hint\"}, \"request_id\": …}`. \
Send the key as `X-API-Key` or `Authorization: Bearer`; it is in the file `api_key` of the data directory. \
Requests whose Host is not this daemon's own, or that come from a page of another origin, are refused.";

#[derive(OpenApi)]
#[openapi(
    info(title = "mcpproxy", description = DESCRIPTION, license(name = "Apache-2.0", identifier = "Apache-2.0")),
    security(("api_key" = []), ("bearer" = [])),
    tags(
        (name = "servers", description = "The MCP servers behind the proxy"),
        (name = "tools", description = "Finding, judging and calling their tools"),
        (name = "activity", description = "What happened"),
        (name = "policy", description = "What other settings would make of it"),
        (name = "daemon", description = "The daemon itself"),
    ),
)]
struct Frame;

/// Adds `/openapi.json` to the routes, which describes them.
pub(super) fn with_document(routes: OpenApiRouter<AppState>) -> Router<AppState> {
    let (served, described) = routes.split_for_parts();
    let text = Bytes::from(format!("{:#}\n", document(described)));
    served.route(
        "/api/v1/openapi.json",
        get(|| async move { answer(text.clone()) }),
    )
}

fn answer(text: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

pub(super) fn document(described: utoipa::openapi::OpenApi) -> Value {
    let mut frame = Frame::openapi();
    env!("CARGO_PKG_VERSION").clone_into(&mut frame.info.version);
    let components = frame.components.get_or_insert_default();
    let key = ApiKey::Header(ApiKeyValue::new("X-API-Key"));
    components.add_security_scheme("api_key", SecurityScheme::ApiKey(key));
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    frame.merge(described);
    // A document that cannot be written would be a fault of the types above, and is empty.
    let mut document = serde_json::to_value(&frame).unwrap_or_default();
    for (name, operation) in operations(&mut document) {
        add_refusals(&name, operation);
        operation["operationId"] = name.into();
        for parameter in members(operation, "parameters") {
            drop_null(&mut parameter["schema"]);
        }
    }
    document
}

/// Every operation, with a name made of its method and path: those of the handlers are unique only
/// within their files.
fn operations(document: &mut Value) -> impl Iterator<Item = (String, &mut Value)> {
    let paths = document["paths"].as_object_mut().into_iter();
    paths.flat_map(Map::iter_mut).flat_map(|(path, item)| {
        let words: String = path
            .trim_start_matches("/api/v1")
            .replace(['/', '-'], "_")
            .replace(['{', '}'], "");
        let operations = item.as_object_mut().into_iter().flat_map(Map::iter_mut);
        operations.map(move |(method, operation)| (format!("{method}{words}"), operation))
    })
}

fn members<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    let list = value.get_mut(name).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

/// What the guards in front of every route answer. A route may say more about its own refusals.
fn add_refusals(name: &str, operation: &mut Value) {
    let mut guards = vec![
        ("401", "The API key is missing or wrong."),
        ("403", "The Host or the Origin is not the daemon's own."),
        ("429", "Too many wrong API keys came from this address."),
        ("503", "The daemon is stopping."),
    ];
    if !name.starts_with("get") {
        guards.push(("415", "The body does not say that it is JSON."));
    }
    for (status, description) in guards {
        let responses = &mut operation["responses"];
        if responses.get(status).is_none() {
            responses[status] = json!({
                "description": description,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
            });
        }
    }
}

/// A parameter that is not given is left out; there is no way to say `null` in a query.
fn drop_null(schema: &mut Value) {
    if let Some(types) = schema["type"].as_array() {
        let mut types: Vec<Value> = types.iter().filter(|it| *it != "null").cloned().collect();
        if let (Some(only), true) = (types.pop(), types.is_empty()) {
            schema["type"] = only;
        }
    }
    let options = schema.get("oneOf").and_then(Value::as_array);
    let other = options.and_then(|options| options.iter().find(|it| it["type"] != "null"));
    if let Some(other) = other.cloned() {
        *schema = other;
    }
}
