//! Which request goes where.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, Request};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get};
use config::{Document, Settings};
use tokio_util::sync::CancellationToken;

use super::auth::{self, ApiKey};
use super::guard::{self, Guard};
use crate::config_editor::ConfigEditor;
use crate::door::Doors;
use crate::engine::Engine;
use crate::rest::{self, ApiError, BodyLimit};

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub engine: Arc<Engine>,
    pub api_key: Arc<ApiKey>,
    /// The address in use.
    pub listen: SocketAddr,
    pub started: Instant,
    /// Fires when the daemon stops: streams that nobody ends would keep it from doing so.
    pub stopping: CancellationToken,
    pub config_editor: ConfigEditor,
}

impl AppState {
    /// Changes the config file, and with it the config in force.
    pub(crate) async fn edit_config(
        &self,
        change: impl FnOnce(&mut Document) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        self.config_editor.edit(&self.engine, change).await
    }
}

/// All routes of a daemon, and the MCP sessions behind them.
#[derive(Debug, Clone)]
pub(crate) struct Routes {
    pub router: Router,
    pub doors: Arc<Doors>,
    pub stopping: CancellationToken,
}

/// Puts the routes together, with the guards that apply to each.
pub(crate) fn router(
    engine: Arc<Engine>,
    api_key: ApiKey,
    listen: SocketAddr,
    config_editor: ConfigEditor,
) -> Routes {
    let guard = Guard::new(listen);
    let doors = Doors::new(Arc::clone(&engine));
    let state = AppState {
        engine,
        api_key: Arc::new(api_key),
        listen,
        started: Instant::now(),
        stopping: CancellationToken::new(),
        config_editor,
    };
    let body_limit = BodyLimit(state.engine.config().limits.request_bytes);
    let with_key = from_fn_with_state(state.clone(), auth::require_key);
    let rest = rest::router()
        .layer(DefaultBodyLimit::max(body_limit.0))
        .layer(from_fn_with_state(body_limit, rest::within_limit))
        .layer(with_key.clone())
        .layer(from_fn(rest::with_request_id));
    let events = rest::events().layer(with_key);
    let stopping = state.stopping.clone();
    let mcp_auth = from_fn_with_state(state.clone(), auth::require_key_if_configured);
    let router = Router::new()
        // Alive: the process answers. Ready: it takes calls, whatever its upstreams are doing.
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(|| async { "ready\n" }))
        .merge(mcp_routes(&doors).layer(mcp_auth))
        .merge(rest)
        .merge(events)
        .fallback(rest::no_such_route)
        .layer(from_fn_with_state(guard, guard::check))
        .with_state(state);
    Routes {
        router,
        doors,
        stopping,
    }
}

fn mcp_routes(doors: &Arc<Doors>) -> Router<AppState> {
    let (direct, server) = (Arc::clone(doors), Arc::clone(doors));
    Router::new()
        .route("/mcp", doors.agent.route())
        .route(
            "/mcp/direct",
            any(async move |request: Request| direct.direct(request).await),
        )
        .route(
            "/mcp/server/{name}",
            any(async move |Path(name): Path<String>, request: Request| {
                server.server(&name, request).await
            }),
        )
}

/// The routes for the process itself: every request is the owner's.
pub fn local_router(engine: Arc<Engine>, settings: Settings) -> Router {
    let listen = engine.config().listen;
    let editor = ConfigEditor::creating(settings);
    let Routes { router, .. } = router(engine, ApiKey::none(), listen, editor);
    router.layer(axum::extract::Extension(auth::Transport::Socket))
}
