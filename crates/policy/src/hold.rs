//! Why no lane may call a tool for now.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Code, Refusal, ToolId};

/// What keeps a tool from being called until the operator approves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// The operator put the tool, or its server, into quarantine.
    Quarantined,
    /// The definition is not the one that was pinned.
    DefinitionChanged,
}

impl Hold {
    pub const ALL: [Self; 2] = [Self::Quarantined, Self::DefinitionChanged];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quarantined => "quarantined",
            Self::DefinitionChanged => "definition_changed",
        }
    }

    /// What a caller of the tool is told.
    pub fn refusal(self, tool: &ToolId) -> Refusal {
        let approve = format!(
            "mcpproxy upstream approve {} {}",
            tool.server(),
            tool.tool()
        );
        let message = format!(
            "Tool '{tool}' is {self}; it can be called once the operator has approved it with \
             `{approve}`"
        );
        Refusal::new(Code::ToolQuarantined, message)
            .with("hold", self.as_str())
            .with("approve_with", approve)
    }
}

/// Completes the sentence "the tool is …".
impl fmt::Display for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Quarantined => "quarantined by the operator",
            Self::DefinitionChanged => "held because its definition is not the one that was pinned",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_agree() {
        for hold in Hold::ALL {
            assert_eq!(serde_json::to_value(hold).unwrap(), hold.as_str());
        }
    }

    #[test]
    fn a_caller_is_told_who_can_help_and_how() {
        let refusal = Hold::DefinitionChanged.refusal(&"notes:get".parse().unwrap());
        assert_eq!(refusal.code, Code::ToolQuarantined);
        assert!(
            refusal
                .message
                .contains("mcpproxy upstream approve notes get"),
            "{refusal}"
        );
        assert_eq!(refusal.details["hold"], "definition_changed");
    }
}
