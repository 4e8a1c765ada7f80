//! Conflicts between a lane and a tool, in a form for programs that reads as a sentence.

use std::fmt;

use crate::{Code, EffectiveTier, Refusal, ToolId, ToolVariant};

/// A call on a lane that is too lax for the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneConflict {
    pub tool: ToolId,
    pub variant: ToolVariant,
    pub effective: EffectiveTier,
    /// The laxest lane that would do.
    pub call_with: ToolVariant,
}

/// Why an allowed call deserves a second look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// A read-only tool was called as a write: harmless, but a person may be asked needlessly.
    OverlyCautious {
        tool: ToolId,
        effective: EffectiveTier,
    },
    /// The lane is too lax, and the operator chose to be warned instead of protected.
    LaneTooLax(LaneConflict),
}

impl fmt::Display for LaneConflict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tool,
            effective,
            call_with,
            ..
        } = self;
        write!(formatter, "Tool '{tool}' is {effective}")?;
        if *effective == EffectiveTier::Unannotated {
            // The server did nothing wrong here; say whose rule it is.
            formatter.write_str(" and intent_declaration.unannotated is deny")?;
        }
        write!(formatter, ", use {call_with}")
    }
}

impl From<&LaneConflict> for Refusal {
    fn from(conflict: &LaneConflict) -> Self {
        Self::new(Code::ServerMismatch, conflict.to_string())
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OverlyCautious { tool, effective } => {
                write!(
                    formatter,
                    "Tool '{tool}' is {effective}, call_tool_read is enough"
                )
            }
            Self::LaneTooLax(conflict) => conflict.fmt(formatter),
        }
    }
}
