//! Why a decision came out as it did, in a form for programs that reads as a sentence.

use std::fmt;

use crate::{Code, EffectiveTier, Hold, Refusal, Tier, ToolId, ToolVariant};

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

/// One step of the way to a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    OperationTypeMatches(ToolVariant),
    OperationTypeInferred(ToolVariant),
    IntentRefused(Code),
    /// No lane may call the tool.
    Held(Hold),
    /// A hint of the server was not usable, and counted as absent.
    HintIgnored(&'static str),
    Tier(EffectiveTier),
    /// `call_tool_destructive` may call every tool.
    StrictestLane,
    LaneFits {
        variant: ToolVariant,
        tier: Tier,
    },
    LaneStricterThanNeeded {
        variant: ToolVariant,
        tier: Tier,
    },
    LaneTooLax {
        variant: ToolVariant,
        call_with: ToolVariant,
    },
    /// A server's or the auditor's word only warns when validation is not strict.
    NotStrict,
    UnannotatedTrusted,
    UnannotatedDenied,
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

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OperationTypeMatches(variant) => {
                let operation_type = variant.operation_type();
                write!(
                    formatter,
                    "the agent declared {operation_type}, which matches {variant}"
                )
            }
            Self::OperationTypeInferred(variant) => {
                let operation_type = variant.operation_type();
                write!(
                    formatter,
                    "the operation type {operation_type} follows from {variant}"
                )
            }
            Self::IntentRefused(code) => write!(formatter, "the intent was refused with {code}"),
            Self::Held(hold) => write!(formatter, "the tool is {hold}"),
            Self::HintIgnored(hint) => {
                let consequence = match *hint {
                    "destructiveHint" => "counts as true",
                    _ => "was ignored",
                };
                write!(
                    formatter,
                    "the server's {hint} has a value of the wrong type and {consequence}"
                )
            }
            Self::Tier(effective) => write!(formatter, "the tool is {effective}"),
            Self::StrictestLane => {
                write!(
                    formatter,
                    "{} may call every tool",
                    ToolVariant::Destructive
                )
            }
            Self::LaneFits { variant, tier } => {
                write!(formatter, "{variant} is the lane of {tier} tools")
            }
            Self::LaneStricterThanNeeded { variant, tier } => {
                write!(formatter, "{variant} is stricter than {tier} tools need")
            }
            Self::LaneTooLax { variant, call_with } => {
                write!(
                    formatter,
                    "{variant} is too lax for a tool that belongs on {call_with}"
                )
            }
            Self::NotStrict => formatter
                .write_str("strict_server_validation is off, so the conflict is only a warning"),
            Self::UnannotatedTrusted => {
                formatter.write_str("unannotated tools are trusted on every lane")
            }
            Self::UnannotatedDenied => write!(
                formatter,
                "the operator allows unannotated tools on {} only",
                ToolVariant::Destructive
            ),
        }
    }
}
