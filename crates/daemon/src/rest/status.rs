//! `GET /status` and `POST /stop`: how the daemon is doing, and its end.

use std::collections::BTreeMap;

use activity::{Gap, Health};
use axum::extract::State;
use policy::ToolId;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Answer, ApiResult, Data};
use crate::engine::InForce;
use crate::http::AppState;
use crate::off_thread::off_thread;
use crate::started_by::StartedBy;

/// How many tools are named.
const EXAMPLES: usize = 5;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DaemonStatus)]
pub(super) struct Status {
    version: &'static str,
    pid: u32,
    #[schema(value_type = String)]
    listen: std::net::SocketAddr,
    /// The address of the config, if it is not the one in use.
    #[schema(value_type = Option<String>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    listen_wanted: Option<std::net::SocketAddr>,
    uptime_seconds: u64,
    started_by: StartedBy,
    tools: usize,
    /// How many upstreams are in which state.
    #[schema(value_type = BTreeMap<String, usize>)]
    servers: BTreeMap<&'static str, usize>,
    activity: LogStatus,
    /// Shown only when there are any: tools without hints that look as if they change something, while
    /// `intent_declaration.unannotated` is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided_tools: Option<UndecidedTools>,
}

/// Tools that any lane may call as long as the operator has not decided about tools without hints.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UndecidedTools {
    count: usize,
    /// The first of them.
    #[schema(value_type = Vec<String>)]
    examples: Vec<ToolId>,
}

/// Whether the activity log can be written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogStatus {
    /// `good`, `full` or `unavailable`.
    state: &'static str,
    /// What happened without a record, until a record says so.
    not_recorded: Option<Gap>,
}

/// Shows the daemon's version, address, age, and what it is connected to.
#[utoipa::path(
    get,
    path = "/api/v1/status",
    tag = "daemon",
    responses(
        (status = 200, description = "How the daemon is doing.", body = Answer<Status>),
    ),
)]
pub(super) async fn show(State(state): State<AppState>) -> ApiResult<Status> {
    let mut servers = BTreeMap::new();
    for upstream in state.engine.upstreams() {
        *servers.entry(upstream.status().state.as_str()).or_default() += 1;
    }
    let in_force = state.engine.current().await;
    let tools = in_force.catalog.len();
    let undecided_tools = off_thread(move || undecided_tools(&in_force)).await;
    Ok(Data(Status {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        listen: state.listen,
        listen_wanted: not_in_use(state.engine.config().listen, state.listen),
        uptime_seconds: state.started.elapsed().as_secs(),
        started_by: state.started_by.clone(),
        tools,
        servers,
        activity: LogStatus {
            state: match state.engine.activity().health() {
                Health::Good => "good",
                Health::Full => "full",
                Health::Unavailable => "unavailable",
            },
            not_recorded: state.engine.activity().gap(),
        },
        undecided_tools,
    }))
}

/// A port of 0 stands for any.
fn not_in_use(
    wanted: std::net::SocketAddr,
    used: std::net::SocketAddr,
) -> Option<std::net::SocketAddr> {
    (wanted != used && wanted.port() != 0).then_some(wanted)
}

/// What ends.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Stopping {
    pid: u32,
}

/// Ends the daemon. Calls that are under way have `shutdown_grace` to end.
#[utoipa::path(
    post,
    path = "/api/v1/stop",
    tag = "daemon",
    responses(
        (status = 200, description = "The daemon ends.", body = Answer<Stopping>),
    ),
)]
pub(super) async fn stop(State(state): State<AppState>) -> ApiResult<Stopping> {
    tracing::info!("asked to stop");
    state.stop_wanted.cancel();
    Ok(Data(Stopping {
        pid: std::process::id(),
    }))
}

fn undecided_tools(in_force: &InForce) -> Option<UndecidedTools> {
    let undecided = in_force.undecided();
    let examples = undecided.iter().take(EXAMPLES);
    (!undecided.is_empty()).then(|| UndecidedTools {
        count: undecided.len(),
        examples: examples.map(|id| (*id).clone()).collect(),
    })
}
