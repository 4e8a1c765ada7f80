//! What is published about an upstream, for everyone who asks.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::ToolDefinition;
use mcp::client::Handshake;
use policy::ToolName;

use crate::failure::Failure;

/// A retry that comes within this time is worth waiting for.
const IN_A_MOMENT: Duration = Duration::from_secs(2);

/// Where an upstream stands in its life.
#[derive(Debug, Clone)]
pub enum State {
    /// Switched off in the config.
    Disabled,
    /// Being started and greeted.
    Connecting,
    /// Taking calls.
    Ready,
    /// Taking calls, but something is wrong: it does not answer, or its tools cannot be listed.
    Degraded { failure: Failure },
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
    /// How often it was tried to connect it.
    pub attempts: u64,
    /// How often the tools were listed again, whether or not that succeeded.
    pub listings: u64,
}

/// The tools of one upstream, in its order and by name. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct ToolList {
    all: Arc<[Arc<ToolDefinition>]>,
    by_name: Arc<HashMap<ToolName, usize>>,
}

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    pub protocol: mcp::ProtocolVersion,
    /// Its whole answer to the greeting, for those to whom we stand in its place.
    pub handshake: Arc<Handshake>,
}

// === impl State ===

impl State {
    /// The word that stands for the state in data.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Degraded { .. } => "degraded",
            Self::Waiting { .. } => "waiting",
            Self::Failed { .. } => "failed",
            Self::Stopped => "stopped",
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Degraded { failure }
            | Self::Waiting { failure, .. }
            | Self::Failed { failure } => Some(failure),
            Self::Disabled | Self::Connecting | Self::Ready | Self::Stopped => None,
        }
    }

    /// Whether calls are taken.
    pub fn is_connected(&self) -> bool {
        matches!(self, Self::Ready | Self::Degraded { .. })
    }

    /// Whether the outcome of connecting is known.
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Connecting)
    }

    /// Whether a caller should wait for this state to change: it is being connected, or has just
    /// been lost and is tried again in a moment.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connecting => true,
            // When many are down at once, even the first retry may be minutes away.
            Self::Waiting {
                attempt: 1,
                retry_at,
                ..
            } => retry_at.saturating_duration_since(Instant::now()) < IN_A_MOMENT,
            _ => false,
        }
    }
}

// === impl Status ===

impl Status {
    /// The status of an upstream whose tools are known from an earlier life of the process.
    pub(crate) fn new(state: State, tools: Vec<Arc<ToolDefinition>>) -> Self {
        Self {
            state,
            stale: !tools.is_empty(),
            tools: ToolList::new(tools),
            server: None,
            pid: None,
            connections: 0,
            attempts: 0,
            listings: 0,
        }
    }
}

// === impl ServerIdentity ===

impl ServerIdentity {
    pub(crate) fn of(handshake: &Arc<Handshake>) -> Self {
        Self {
            name: handshake.server.name.clone(),
            version: handshake.server.version.clone(),
            protocol: handshake.protocol,
            handshake: Arc::clone(handshake),
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
        self.all.get(self.position(name)?)
    }

    /// Where a tool stands in [`ToolList::all`].
    pub fn position(&self, name: &ToolName) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// Whether it is the very same listing.
    pub fn is_identical_to(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.all, &other.all)
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
