//! Which request goes where.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use config::{Document, Settings};
use tokio_util::sync::CancellationToken;

use super::auth::{self, ApiKey};
use super::dispatch::Dispatch;
use super::guard::Guard;
use super::guesses::Guesses;
use super::serve::Transport;
use crate::config_editor::ConfigEditor;
use crate::endpoint::Endpoints;
use crate::engine::Engine;
use crate::rest::{self, ApiError, BodyLimit};
use crate::started_by::StartedBy;

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct AppState {
    pub engine: Arc<Engine>,
    pub api_key: Arc<ApiKey>,
    pub(super) guesses: Arc<Guesses>,
    /// The address in use.
    pub listen: SocketAddr,
    pub started: Instant,
    pub started_by: StartedBy,
    /// Firing it ends the daemon.
    pub stop_wanted: CancellationToken,
    /// Streams of events end when this fires.
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
    pub dispatch: Arc<Dispatch>,
    pub endpoints: Arc<Endpoints>,
    /// Fires when a client asks the daemon to stop.
    pub stop_wanted: CancellationToken,
    /// No request is begun once this has fired.
    pub draining: CancellationToken,
    /// Streams of events end when this fires.
    pub stopping: CancellationToken,
}

/// Puts the routes together, with the guards that apply to each.
pub(crate) fn router(
    engine: Arc<Engine>,
    api_key: ApiKey,
    listen: SocketAddr,
    started_by: StartedBy,
    config_editor: ConfigEditor,
) -> Routes {
    let draining = CancellationToken::new();
    let endpoints = Endpoints::new(Arc::clone(&engine), draining.clone());
    let state = AppState {
        engine,
        api_key: Arc::new(api_key),
        guesses: Arc::default(),
        listen,
        started: Instant::now(),
        started_by,
        stop_wanted: CancellationToken::new(),
        stopping: CancellationToken::new(),
        config_editor,
    };
    let body_limit = BodyLimit(state.engine.config().limits.request_bytes);
    let with_key = from_fn_with_state(state.clone(), auth::require_key);
    let rest = rest::router()
        .layer(from_fn(rest::require_json))
        .layer(DefaultBodyLimit::max(body_limit.0))
        .layer(from_fn_with_state(body_limit, rest::within_limit))
        .layer(with_key.clone())
        .layer(from_fn(rest::with_request_id));
    let events = rest::events().layer(with_key);
    let readiness = Router::new()
        // Ready: it takes calls, whatever its upstreams are doing.
        .route("/readyz", get(|| async { "ready\n" }))
        .merge(rest)
        .merge(events)
        .layer(from_fn_with_state(draining.clone(), refuse_when_stopping));
    let (stopping, stop_wanted) = (state.stopping.clone(), state.stop_wanted.clone());
    let router = Router::new()
        // Alive: the process answers.
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(readiness)
        .fallback(rest::no_such_route)
        .with_state(state.clone());
    let dispatch = Dispatch {
        guard: Guard::new(listen),
        state,
        endpoints: Arc::clone(&endpoints),
        router,
    };
    Routes {
        dispatch: Arc::new(dispatch),
        endpoints,
        stop_wanted,
        draining,
        stopping,
    }
}

async fn refuse_when_stopping(
    State(draining): State<CancellationToken>,
    request: Request,
    next: Next,
) -> Response {
    if draining.is_cancelled() {
        return ApiError::stopping().into_response();
    }
    next.run(request).await
}

/// The routes for the process itself: every request is the owner's.
pub fn local_router(engine: Arc<Engine>, settings: Settings) -> Router {
    let listen = engine.config().listen;
    let editor = ConfigEditor::new(settings);
    let started_by = StartedBy::Terminal;
    let Routes { dispatch, .. } = router(engine, ApiKey::none(), listen, started_by, editor);
    let router = dispatch.router.clone();
    router.layer(axum::extract::Extension(Transport::Socket))
}
