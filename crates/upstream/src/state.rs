//! What is published about an upstream, for everyone who asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use catalog::ToolDefinition;
use policy::ToolName;

use crate::failure::Failure;

/// Where an upstream stands in its life.
#[derive(Debug, Clone)]
pub enum State {
    /// Switched off in the config.
    Disabled,
    /// Being started and greeted.
    Connecting,
    /// Taking calls.
    Ready,
    /// Failed, and going to be tried again.
    Waiting {
        failure: Failure,
        attempt: u32,
        retry_at: Instant,
    },
    /// Failed in a way that trying again does not mend.
    Failed { failure: Failure },
    /// Removed from the config, or the daemon is going down.
    Stopped,
}

/// One moment of an upstream.
#[derive(Debug, Clone)]
pub struct Status {
    pub state: State,
    /// The tools as last listed. They outlive a lost connection, so that they can still be found.
    pub tools: ToolList,
    /// Whether the tools are from a connection that is gone.
    pub stale: bool,
    /// What the server calls itself, once it said hello.
    pub server: Option<ServerIdentity>,
    /// The process, for a stdio upstream that runs.
    pub pid: Option<u32>,
    /// How often it has been connected.
    pub connections: u32,
}

/// The tools of one upstream, in its order and by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    all: Arc<[Arc<ToolDefinition>]>,
    by_name: Arc<HashMap<ToolName, usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    pub protocol: mcp::ProtocolVersion,
}

// === impl State ===

impl State {
    /// The word that stands for the state in data.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Waiting { .. } => "waiting",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Waiting { failure, .. } | Self::Failed { failure } => Some(failure),
            Self::Disabled | Self::Connecting | Self::Ready | Self::Stopped => None,
        }
    }

    /// Whether it is worth waiting for this state to change by itself.
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Connecting)
    }
}

// === impl Status ===

impl Status {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            tools: ToolList::default(),
            stale: false,
            server: None,
            pid: None,
            connections: 0,
        }
    }
}

// === impl ToolList ===

impl ToolList {
    pub(crate) fn new(tools: Vec<Arc<ToolDefinition>>) -> Self {
        let by_name = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| (tool.id.tool().clone(), index))
            .collect();
        Self {
            all: tools.into(),
            by_name: Arc::new(by_name),
        }
    }

    pub fn all(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.all
    }

    pub fn get(&self, name: &ToolName) -> Option<&Arc<ToolDefinition>> {
        self.all.get(*self.by_name.get(name)?)
    }

    pub(crate) fn is_same_as(&self, tools: &[Arc<ToolDefinition>]) -> bool {
        self.all.len() == tools.len()
            && self
                .all
                .iter()
                .zip(tools)
                .all(|(old, new)| old.raw.get() == new.raw.get())
    }
}
