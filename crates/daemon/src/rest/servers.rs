//! `/servers`: the upstreams and how they are.

pub(super) mod check;
pub(super) mod edit;
pub(super) mod entry;
pub(super) mod logs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use policy::{OperationType, ServerName, Trust};
use serde::Serialize;
use upstream::{State as UpstreamState, Upstream};
use utoipa::ToSchema;

use super::extract::Segment;
use super::parameters::ServerPath;
use super::{Answer, ApiError, ApiResult, Data, ErrorBody};
use crate::engine::{Engine, InForce};
use crate::http::AppState;

/// How long a server may take to notice that it is to be restarted.
const TAKEN_NOTE: Duration = Duration::from_millis(500);

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Servers {
    servers: Vec<Server>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Server {
    #[schema(value_type = String)]
    name: ServerName,
    /// disabled, connecting, ready, degraded (takes calls, but `last_error` says what is wrong),
    /// waiting, failed, stopped, or stopping while its process ends.
    state: &'static str,
    /// Whether the config wants it connected.
    enabled: bool,
    tools: usize,
    lanes: Lanes,
    /// What becomes of a tool whose definition changes.
    trust: Trust,
    /// How many tools no lane may call until they are approved.
    held: usize,
    /// Whether the tools are from a connection that is gone.
    stale: bool,
    /// What the server said when it was greeted.
    identity: Option<Identity>,
    /// The process, for a server that is a program and runs.
    pid: Option<u32>,
    /// How often it has been connected.
    connections: u32,
    last_error: Option<String>,
    /// What to do about the error.
    advice: Option<String>,
    retry_in_ms: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct Identity {
    name: String,
    version: String,
    protocol_version: &'static str,
}

/// How many tools are to be called on which lane.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Lanes {
    read: usize,
    write: usize,
    destructive: usize,
}

/// Lists all upstreams, by name.
#[utoipa::path(
    get,
    path = "/api/v1/servers",
    tag = "servers",
    responses((status = 200, description = "All servers.", body = Answer<Servers>)),
)]
pub(super) async fn list(State(state): State<AppState>) -> ApiResult<Servers> {
    let upstreams = state.engine.upstreams();
    let in_force = state.engine.current().await;
    let servers = upstreams
        .iter()
        .map(|upstream| Server::of(&state.engine, &in_force, upstream))
        .collect();
    Ok(Data(Servers { servers }))
}

/// Shows one upstream.
#[utoipa::path(
    get,
    path = "/api/v1/servers/{name}",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 200, description = "The server.", body = Answer<Server>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
    ),
)]
pub(super) async fn show(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> ApiResult<Server> {
    let ending = state.engine.fleet().ending(&parse_name(&name)?);
    let upstream = match (find(&state.engine, &name), ending) {
        (Ok(upstream), _) | (Err(_), Some(upstream)) => upstream,
        (Err(error), None) => return Err(error),
    };
    let in_force = state.engine.current().await;
    Ok(Data(Server::of(&state.engine, &in_force, &upstream)))
}

/// Drops the connection of a server, if it has one, and connects at once. The answer does not wait
/// for the outcome: `GET /api/v1/servers/{name}` shows it.
#[utoipa::path(
    post,
    path = "/api/v1/servers/{name}/restart",
    tag = "servers",
    params(ServerPath),
    responses(
        (status = 202, description = "The server, which is being connected.", body = Answer<Server>),
        (status = 400, description = "That is not a name.", body = ErrorBody),
        (status = 404, description = "There is no such server.", body = ErrorBody),
        (status = 409, description = "The server is switched off.", body = ErrorBody),
    ),
)]
pub(super) async fn restart(
    State(state): State<AppState>,
    Segment(name): Segment,
) -> Result<Response, ApiError> {
    let upstream = find(&state.engine, &name)?;
    if !upstream.config().enabled {
        let message = format!("'{name}' is switched off");
        return Err(ApiError::conflict("SERVER_DISABLED", message).hint(format!(
            "switch it on with `mcpproxy upstream enable {name}`"
        )));
    }
    // What does not get through at once waits behind another restart.
    let _ = tokio::time::timeout(TAKEN_NOTE, upstream.restart()).await;
    let in_force = state.engine.current().await;
    Ok(Server::of(&state.engine, &in_force, &upstream).accepted())
}

pub(super) fn find(engine: &Engine, name: &str) -> Result<Arc<Upstream>, ApiError> {
    let found = engine.fleet().get(&parse_name(name)?);
    found.ok_or_else(|| unknown_server(engine, name))
}

fn parse_name(name: &str) -> Result<ServerName, ApiError> {
    name.parse()
        .map_err(|error: policy::ServerNameError| ApiError::bad_request(error.to_string()))
}

/// The name of a server that there is.
pub(super) fn known_server(engine: &Engine, name: &str) -> Result<ServerName, ApiError> {
    let server = name.parse().ok();
    server
        .filter(|server| engine.fleet().get(server).is_some())
        .ok_or_else(|| unknown_server(engine, name))
}

pub(super) fn unknown_server(engine: &Engine, name: &str) -> ApiError {
    let error = ApiError::not_found(format!("there is no server '{name}'"));
    match engine.similar_server(name) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("list them with `mcpproxy upstream list` or GET /api/v1/servers"),
    }
}

impl Server {
    /// The answer to a change whose outcome is not waited for. How far the change has come by now
    /// is a matter of timing, so only `state` tells it, and the status is always the same.
    fn accepted(self) -> Response {
        (StatusCode::ACCEPTED, Data(self)).into_response()
    }

    pub(super) fn of(engine: &Engine, in_force: &InForce, upstream: &Upstream) -> Self {
        let status = upstream.status();
        let mut lanes = Lanes::default();
        let mut held = 0;
        let listed = status.tools.all().iter();
        for tool in listed.filter_map(|tool| in_force.tool(&tool.id)) {
            held += usize::from(tool.hold.is_some());
            match tool.call_with.operation_type() {
                OperationType::Read => lanes.read += 1,
                OperationType::Write => lanes.write += 1,
                OperationType::Destructive => lanes.destructive += 1,
            }
        }
        let failure = status.state.failure();
        // One that is switched on again is being connected, whatever is left of the one before.
        let is_wanted = upstream.config().enabled && engine.fleet().get(upstream.name()).is_some();
        let is_ending = !is_wanted && engine.fleet().ending(upstream.name()).is_some();
        let retry_in_ms = match &status.state {
            UpstreamState::Waiting { retry_at, .. } => {
                let left = retry_at
                    .saturating_duration_since(Instant::now())
                    .as_millis();
                u64::try_from(left).ok()
            }
            _ => None,
        };
        Self {
            name: upstream.name().clone(),
            state: if is_ending {
                "stopping"
            } else {
                status.state.as_str()
            },
            enabled: upstream.config().enabled,
            tools: status.tools.all().len(),
            lanes,
            trust: upstream.config().trust,
            held,
            stale: status.stale,
            identity: status.server.as_ref().map(|server| Identity {
                name: server.name.clone(),
                version: server.version.clone(),
                protocol_version: server.protocol.as_str(),
            }),
            pid: status.pid,
            connections: status.connections,
            last_error: failure.map(|failure| failure.message.clone()),
            advice: failure.map(|failure| failure.advice.clone()),
            retry_in_ms,
        }
    }
}
