//! A page that a browser has open must not be able to use a server on this machine: it would come
//! with a name or an origin of somewhere else.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, StatusCode};

pub(super) async fn only_from_here(request: Request, next: Next) -> Response {
    if is_local(request.headers()) {
        next.run(request).await
    } else {
        StatusCode::FORBIDDEN.into_response()
    }
}

fn is_local(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let origin = headers.get(ORIGIN).map(|value| {
        let origin = value.to_str().unwrap_or_default();
        origin.split_once("://").map_or("", |(_, host)| host)
    });
    host.is_some_and(is_loopback) && origin.is_none_or(is_loopback)
}

fn is_loopback(authority: &str) -> bool {
    let name = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(authority, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}
