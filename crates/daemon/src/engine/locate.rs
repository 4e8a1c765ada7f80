//! From the name of a tool to the upstream that has it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::ToolDefinition;
use policy::{Code, Refusal, ServerName, ToolId};
use upstream::{State, Upstream};

use super::Engine;

/// How long a call waits for an upstream that is just being connected.
const CONNECTING_PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Located {
    pub upstream: Arc<Upstream>,
    /// The definition as the upstream last announced it, so that what is decided upon is what it
    /// says now and not what it said when the tool was found.
    pub definition: Arc<ToolDefinition>,
}

impl Engine {
    pub(super) async fn locate(&self, id: &ToolId) -> Result<Located, Refusal> {
        let Some(upstream) = self.fleet.get(id.server()) else {
            return Err(self.unknown_server(id));
        };
        let status = upstream.status();
        if status.state.is_connected()
            && let Some(definition) = status.tools.get(id.tool()).cloned()
        {
            return Ok(Located {
                upstream,
                definition,
            });
        }
        let deadline = Instant::now() + CONNECTING_PATIENCE.min(upstream.config().timeout);
        let status = upstream.available(deadline).await;
        match (status.tools.get(id.tool()).cloned(), &status.state) {
            (Some(definition), _) => Ok(Located {
                upstream,
                definition,
            }),
            (None, State::Ready | State::Degraded { .. }) => Err(self.unknown_tool(id)),
            (None, state) => Err(unavailable(id.server(), state)),
        }
    }

    fn unknown_server(&self, id: &ToolId) -> Refusal {
        let name = id.server().as_str();
        let catalog = self.catalog();
        let near: Vec<String> = catalog
            .suggest_servers(name)
            .into_iter()
            .map(|server| server.to_string())
            .collect();
        let message = match near.first() {
            Some(best) => format!("Unknown server '{name}'. Did you mean '{best}'?"),
            None => format!("Unknown server '{name}'. Find tools with retrieve_tools."),
        };
        Refusal::new(Code::UnknownServer, message)
            .with("server", name)
            .with("did_you_mean", near)
    }

    fn unknown_tool(&self, id: &ToolId) -> Refusal {
        let near: Vec<String> = self
            .catalog()
            .suggest_tools(id.as_str())
            .into_iter()
            .map(|tool| tool.to_string())
            .collect();
        let message = match near.first() {
            Some(best) => format!("Unknown tool '{id}'. Did you mean '{best}'?"),
            None => format!("Unknown tool '{id}'. Find tools with retrieve_tools."),
        };
        Refusal::new(Code::UnknownTool, message)
            .with("tool", id.as_str())
            .with("did_you_mean", near)
    }
}

/// The upstream exists but cannot take the call now.
pub(crate) fn unavailable(server: &ServerName, state: &State) -> Refusal {
    let (why, what_to_do) = match state {
        State::Disabled => (
            "is switched off".to_owned(),
            format!("ask the operator to run `mcpproxy upstream enable {server}`"),
        ),
        State::Connecting => (
            "is still connecting".to_owned(),
            "try again shortly".to_owned(),
        ),
        State::Ready | State::Degraded { .. } | State::Stopped => (
            "lost its connection".to_owned(),
            "try again shortly".to_owned(),
        ),
        State::Waiting { failure, .. } | State::Failed { failure } => (
            format!("is not connected: {}", failure.message),
            failure.advice.clone(),
        ),
    };
    Refusal::new(
        Code::ServerUnavailable,
        format!("Server '{server}' {why}; {what_to_do}"),
    )
    .with("server", server.as_str())
    .with("state", state.as_str())
}
