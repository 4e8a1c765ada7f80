//! `GET /status`: how the daemon is doing.

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

/// How many tools are named.
const EXAMPLES: usize = 5;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DaemonStatus)]
pub(super) struct Status {
    version: &'static str,
    pid: u32,
    #[schema(value_type = String)]
    listen: std::net::SocketAddr,
    uptime_seconds: u64,
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
        uptime_seconds: state.started.elapsed().as_secs(),
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

fn undecided_tools(in_force: &InForce) -> Option<UndecidedTools> {
    let undecided = in_force.undecided();
    let examples = undecided.iter().take(EXAMPLES);
    (!undecided.is_empty()).then(|| UndecidedTools {
        count: undecided.len(),
        examples: examples.map(|id| (*id).clone()).collect(),
    })
}
