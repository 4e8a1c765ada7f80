//! `/servers`: the upstreams and how they are.

use std::time::Instant;

use axum::extract::{Path, State};
use policy::{OperationType, ServerName, Trust};
use serde::Serialize;
use upstream::{State as UpstreamState, Upstream};

use super::{ApiError, ApiResult, Data};
use crate::engine::Engine;
use crate::http::AppState;

#[derive(Debug, Serialize)]
pub(super) struct Servers {
    servers: Vec<Server>,
}

#[derive(Debug, Serialize)]
pub(super) struct Server {
    name: ServerName,
    state: &'static str,
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
    pid: Option<u32>,
    connections: u32,
    last_error: Option<String>,
    advice: Option<String>,
    retry_in_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Identity {
    name: String,
    version: String,
    protocol_version: &'static str,
}

/// How many tools are to be called on which lane.
#[derive(Debug, Default, Serialize)]
struct Lanes {
    read: usize,
    write: usize,
    destructive: usize,
}

/// Lists all upstreams, by name.
pub(super) async fn list(State(state): State<AppState>) -> ApiResult<Servers> {
    let upstreams = state.engine.upstreams();
    let servers = upstreams
        .iter()
        .map(|upstream| Server::of(&state.engine, upstream))
        .collect();
    Ok(Data(Servers { servers }))
}

/// Shows one upstream.
pub(super) async fn show(
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> ApiResult<Server> {
    let found = state.engine.fleet().get(&parse_name(&name)?);
    let upstream = found.ok_or_else(|| unknown_server(&state.engine, &name))?;
    Ok(Data(Server::of(&state.engine, &upstream)))
}

fn parse_name(name: &str) -> Result<ServerName, ApiError> {
    name.parse()
        .map_err(|error: policy::ServerNameError| ApiError::bad_request(error.to_string()))
}

pub(super) fn unknown_server(engine: &Engine, name: &str) -> ApiError {
    let error = ApiError::not_found(format!("there is no server '{name}'"));
    match engine.catalog().suggest_servers(name).first() {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error.hint("list them with GET /api/v1/servers"),
    }
}

impl Server {
    fn of(engine: &Engine, upstream: &Upstream) -> Self {
        let status = upstream.status();
        let mut lanes = Lanes::default();
        let mut held = 0;
        for tool in status.tools.all().iter() {
            let view = engine.view(tool, false);
            held += usize::from(view.hold.is_some());
            match view.call_with.operation_type() {
                OperationType::Read => lanes.read += 1,
                OperationType::Write => lanes.write += 1,
                OperationType::Destructive => lanes.destructive += 1,
            }
        }
        let failure = status.state.failure();
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
            state: status.state.as_str(),
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
