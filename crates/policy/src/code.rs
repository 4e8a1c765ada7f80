//! The shape every refusal in the product has: a code, a message, details.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ToolIdError;

/// Why a call was refused, as a word that programs can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// The declared operation type is not the variant's.
    IntentMismatch,
    MissingIntent,
    MissingOperationType,
    InvalidOperationType,
    /// The lane is too lax for the tool's effective tier.
    ServerMismatch,
    InvalidSensitivity,
    ReasonTooLong,
    InvalidToolName,
    InvalidArgs,
    UnknownServer,
    UnknownTool,
    ServerUnavailable,
    ToolQuarantined,
    Timeout,
    UpstreamError,
    /// The call may change something and cannot be recorded.
    ActivityUnavailable,
    /// The daemon stopped before the call was over.
    Interrupted,
}

/// A call that was not carried out, in the form callers receive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    /// Facts for programs, in the order they were added.
    #[serde(default)]
    pub details: Map<String, Value>,
}

impl Code {
    pub const ALL: [Self; 17] = [
        Self::IntentMismatch,
        Self::MissingIntent,
        Self::MissingOperationType,
        Self::InvalidOperationType,
        Self::ServerMismatch,
        Self::InvalidSensitivity,
        Self::ReasonTooLong,
        Self::InvalidToolName,
        Self::InvalidArgs,
        Self::UnknownServer,
        Self::UnknownTool,
        Self::ServerUnavailable,
        Self::ToolQuarantined,
        Self::Timeout,
        Self::UpstreamError,
        Self::ActivityUnavailable,
        Self::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::IntentMismatch => "INTENT_MISMATCH",
            Self::MissingIntent => "MISSING_INTENT",
            Self::MissingOperationType => "MISSING_OPERATION_TYPE",
            Self::InvalidOperationType => "INVALID_OPERATION_TYPE",
            Self::ServerMismatch => "SERVER_MISMATCH",
            Self::InvalidSensitivity => "INVALID_SENSITIVITY",
            Self::ReasonTooLong => "REASON_TOO_LONG",
            Self::InvalidToolName => "INVALID_TOOL_NAME",
            Self::InvalidArgs => "INVALID_ARGS",
            Self::UnknownServer => "UNKNOWN_SERVER",
            Self::UnknownTool => "UNKNOWN_TOOL",
            Self::ServerUnavailable => "SERVER_UNAVAILABLE",
            Self::ToolQuarantined => "TOOL_QUARANTINED",
            Self::Timeout => "TIMEOUT",
            Self::UpstreamError => "UPSTREAM_ERROR",
            Self::ActivityUnavailable => "ACTIVITY_UNAVAILABLE",
            Self::Interrupted => "INTERRUPTED",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
        }
    }

    /// Adds one detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl From<ToolIdError> for Refusal {
    fn from(error: ToolIdError) -> Self {
        Self::new(Code::InvalidToolName, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolId;

    #[test]
    fn text_and_json_agree() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn a_refusal_is_code_message_and_details() {
        let refusal = Refusal::new(Code::UnknownTool, "no such tool").with("tool", "github:gte");
        let json = json!({
            "code": "UNKNOWN_TOOL",
            "message": "no such tool",
            "details": {"tool": "github:gte"},
        });
        assert_eq!(serde_json::to_value(&refusal).unwrap(), json);
        assert_eq!(serde_json::from_value::<Refusal>(json).unwrap(), refusal);
        assert_eq!(refusal.to_string(), "no such tool");
    }

    #[test]
    fn a_name_that_does_not_parse_becomes_a_refusal() {
        let refusal = Refusal::from("list_repos".parse::<ToolId>().unwrap_err());
        assert_eq!(refusal.code, Code::InvalidToolName);
        assert!(refusal.message.contains("server:tool"), "{refusal}");
    }
}
