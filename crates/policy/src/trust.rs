//! How far a server is trusted not to change its tools (`trust` of a server in the config).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What becomes of a tool whose definition is not the one that was pinned.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// The change is recorded, and the new definition is pinned in place of the old.
    #[default]
    Log,
    /// The tool is held until the operator approves the new definition.
    Pin,
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Pin => "pin",
        }
    }
}
