//! The fixture behind streamable HTTP, for the eras it is told.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use http::{Method, StatusCode, header};
use mcp::modern::headers::PROTOCOL_VERSION;
use mcp::server::{HttpOptions, HttpServer};
use mcp::{ErrorObject, codes};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::eras::{Eras, is_modern};
use super::fixture::ConformanceServer;
use super::local::only_from_here;

/// More than any scenario sends.
const BODY_LIMIT: usize = 4 << 20;

/// How long a stream that is to be cut goes on: long enough to tell how to resume it.
const UNTIL_CUT: Duration = Duration::from_millis(200);

pub(super) fn router(eras: Eras) -> Router {
    let service = Arc::new(ConformanceServer::default());
    let server = HttpServer::new(service, HttpOptions::default());
    Router::new()
        .route("/mcp", server.route())
        .layer(middleware::from_fn_with_state(eras, in_era))
        .layer(middleware::from_fn(only_from_here))
}

/// Lets pass what is of an era that the fixture speaks, and cuts the stream of the one tool that
/// is about that. Modern streams cannot be resumed, so they are left alone.
async fn in_era(State(eras): State<Eras>, request: Request, next: Next) -> Response {
    if *request.method() != Method::POST {
        return match eras {
            Eras::Modern => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            Eras::Both | Eras::Legacy => next.run(request).await,
        };
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, BODY_LIMIT).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let version = parts.headers.get(PROTOCOL_VERSION);
    let version = version.and_then(|version| version.to_str().ok());
    if let Some(error) = eras.refusal(&message, version) {
        return refuse(eras, &message["id"], &error);
    }
    let to_be_cut =
        message["params"]["name"] == "test_reconnection" && !is_modern(&message, version);
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    if to_be_cut && is_stream(&response) {
        return cut(response);
    }
    response
}

fn refuse(eras: Eras, id: &Value, error: &ErrorObject) -> Response {
    // Only the modern era knows a status for this.
    let status = match eras {
        Eras::Modern if error.code == codes::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::BAD_REQUEST,
    };
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, answer).into_response()
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

fn cut(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let events = body.into_data_stream().take_until(sleep(UNTIL_CUT));
    let events = events.map(|chunk: Result<Bytes, _>| chunk);
    Response::from_parts(parts, Body::from_stream(events))
}
