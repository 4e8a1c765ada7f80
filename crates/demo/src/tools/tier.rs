//! What kind of tool a tool is, and the annotations that follow from it.

use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    /// Changes nothing.
    ReadOnly,
    /// Creates or changes, and what was there before is kept or easily brought back.
    Write {
        /// Whether doing it twice is the same as doing it once.
        idempotent: bool,
    },
    /// Takes away, but can be undone; doing it twice is the same as doing it once.
    SoftDelete,
    /// Cannot be undone.
    Destructive,
}

impl Tier {
    /// Each tier states the hint that places it, and no tool here reaches beyond its own file.
    pub(super) fn annotations(self) -> Value {
        match self {
            Self::ReadOnly => json!({ "readOnlyHint": true, "openWorldHint": false }),
            Self::Write { idempotent } => json!({
                "destructiveHint": false, "idempotentHint": idempotent, "openWorldHint": false,
            }),
            Self::SoftDelete => json!({
                "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
            }),
            Self::Destructive => json!({ "destructiveHint": true, "openWorldHint": false }),
        }
    }
}
