//! A server with everything that the protocol's conformance suite asks for, in both eras, at
//! `http://127.0.0.1:PORT/mcp`. The port is the only argument.
//!
//! It is written as a legacy server would be: what it asks its client and what it tells it reaches
//! clients of the modern era by the transport's doing.

mod fixture;
mod prompts;
mod resources;
mod tools;

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, StatusCode};
use mcp::server::{HttpOptions, HttpServer};

use crate::fixture::Fixture;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args()
        .nth(1)
        .ok_or("usage: conformance_server PORT")?
        .parse()?;
    let server = HttpServer::new(Arc::new(Fixture), HttpOptions::default());
    let router = axum::Router::new()
        .route("/mcp", server.route())
        .layer(middleware::from_fn(only_from_here));
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    Ok(axum::serve(listener, router).await?)
}

/// A page that a browser has open must not be able to use this server.
async fn only_from_here(request: Request, next: Next) -> Response {
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
