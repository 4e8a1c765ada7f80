//! The operator's settings that a decision depends on (`intent_declaration` in the config).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an agent must declare its operation type or may leave it to the variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntentMode {
    /// The agent declares an operation type and it must match the variant.
    #[default]
    TwoKey,
    /// The operation type comes from the variant; a declared one must still match.
    Inferred,
}

/// What to think of a tool on which its server put no hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unannotated {
    /// Any lane may call it.
    #[default]
    Trust,
    /// The audited tier counts as if the server had declared it.
    Infer,
    /// Only `call_tool_destructive` may call it.
    Deny,
}

/// The settings a decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    pub mode: IntentMode,
    /// Whether a lane that is too lax for a tool's tier is refused or only warned about.
    pub strict_server_validation: bool,
    pub unannotated: Unannotated,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            mode: IntentMode::default(),
            strict_server_validation: true,
            unannotated: Unannotated::default(),
        }
    }
}
