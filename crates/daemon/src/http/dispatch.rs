//! Dispatches requests: MCP endpoints by hand, because every call takes this path; the rest to the
//! REST router.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use tower::ServiceExt;

use super::auth;
use super::guard::Guard;
use super::router::AppState;
use super::serve::Transport;
use crate::endpoint::Endpoints;

/// Answers the requests of all connections.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(super) guard: Guard,
    pub(super) state: AppState,
    pub(super) endpoints: Arc<Endpoints>,
    pub(super) router: Router,
}

/// The MCP endpoint that a path names.
#[derive(Debug, PartialEq, Eq)]
enum McpPath {
    Agent,
    Direct,
    Server(String),
}

impl Dispatch {
    pub(super) async fn answer(&self, mut request: Request, transport: Transport) -> Response {
        if let Err(refusal) = self.guard.admit(transport, &request) {
            return refusal.into_response();
        }
        let Some(path) = McpPath::of(request.uri().path()) else {
            request.extensions_mut().insert(transport);
            return match self.router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        };
        match auth::of_mcp_client(&self.state, transport, request.headers()).await {
            Ok(principal) => request.extensions_mut().insert(principal),
            Err(refusal) => return refusal.into_response(),
        };
        match path {
            McpPath::Agent => self.endpoints.agent(request).await,
            McpPath::Direct => self.endpoints.direct(request).await,
            McpPath::Server(name) => self.endpoints.server(&name, request).await,
        }
    }
}

impl McpPath {
    fn of(path: &str) -> Option<Self> {
        match path.strip_prefix("/mcp")? {
            "" => Some(Self::Agent),
            "/direct" => Some(Self::Direct),
            rest => {
                let name = rest.strip_prefix("/server/")?;
                let name = percent_decode_str(name).decode_utf8().ok()?;
                (!name.is_empty() && !name.contains('/')).then(|| Self::Server(name.into_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_endpoint_or_none() {
        let server = |name: &str| Some(McpPath::Server(name.to_owned()));
        for (path, endpoint) in [
            ("/mcp", Some(McpPath::Agent)),
            ("/mcp/direct", Some(McpPath::Direct)),
            ("/mcp/server/notes", server("notes")),
            ("/mcp/server/n%6ftes", server("notes")),
            ("/mcp/server/", None),
            ("/mcp/server", None),
            ("/mcp/server/a/b", None),
            ("/mcp/server/%ff", None),
            ("/mcp/", None),
            ("/mcpx", None),
            ("/api/v1/status", None),
        ] {
            assert_eq!(McpPath::of(path), endpoint, "{path}");
        }
    }
}
