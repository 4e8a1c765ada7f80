//! Who started a daemon, which is also whose environment it and its upstreams have.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum StartedBy {
    /// A person, who may look at its output: `mcpproxy serve`.
    Terminal,
    /// The service manager of the system.
    Service,
    /// Another command that needed a daemon. It runs in the background.
    Command {
        /// The command, as `stdio`.
        command: String,
        /// The command's process, which may have ended.
        pid: u32,
    },
}

impl StartedBy {
    /// Whether the daemon was started only because a command needed one, so that another may take its
    /// place.
    pub fn is_background(&self) -> bool {
        matches!(self, Self::Command { .. })
    }
}
