//! What an agent says it is about to do: operation types, the three variants, data sensitivity.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a call does to the world, from harmless to irreversible.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperationType {
    Read,
    Write,
    Destructive,
}

/// One of the three tools through which upstream tools are called, from the laxest to the
/// strictest. Clients approve these by their exact names.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    ToSchema,
)]
pub enum ToolVariant {
    #[serde(rename = "call_tool_read")]
    Read,
    #[serde(rename = "call_tool_write")]
    Write,
    #[serde(rename = "call_tool_destructive")]
    Destructive,
}

/// How private the data is that a call touches, in the agent's own judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DataSensitivity {
    Public,
    Internal,
    Private,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown operation type; use read, write or destructive")]
pub struct UnknownOperationType;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown data sensitivity; use public, internal, private or unknown")]
pub struct UnknownDataSensitivity;

impl OperationType {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    /// The one-letter form that tables show beside the word.
    pub fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Destructive => 'D',
        }
    }

    pub fn variant(self) -> ToolVariant {
        match self {
            Self::Read => ToolVariant::Read,
            Self::Write => ToolVariant::Write,
            Self::Destructive => ToolVariant::Destructive,
        }
    }
}

impl FromStr for OperationType {
    type Err = UnknownOperationType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str() == text)
            .ok_or(UnknownOperationType)
    }
}

impl fmt::Display for OperationType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl ToolVariant {
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    /// The name of the tool as clients see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "call_tool_read",
            Self::Write => "call_tool_write",
            Self::Destructive => "call_tool_destructive",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|variant| variant.as_str() == name)
    }

    pub fn operation_type(self) -> OperationType {
        match self {
            Self::Read => OperationType::Read,
            Self::Write => OperationType::Write,
            Self::Destructive => OperationType::Destructive,
        }
    }
}

impl fmt::Display for ToolVariant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl DataSensitivity {
    pub const ALL: [Self; 4] = [Self::Public, Self::Internal, Self::Private, Self::Unknown];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Private => "private",
            Self::Unknown => "unknown",
        }
    }
}

impl FromStr for DataSensitivity {
    type Err = UnknownDataSensitivity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str() == text)
            .ok_or(UnknownDataSensitivity)
    }
}

impl fmt::Display for DataSensitivity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Serialize) -> serde_json::Value {
        serde_json::to_value(value).unwrap()
    }

    /// The text form and the serde form are written down apart; they must not drift apart.
    #[test]
    fn text_and_json_agree() {
        for value in OperationType::ALL {
            assert_eq!(json(value), value.as_str());
            assert_eq!(value.as_str().parse(), Ok(value));
            assert_eq!(value.variant().operation_type(), value);
        }
        for value in ToolVariant::ALL {
            assert_eq!(json(value), value.as_str());
            assert_eq!(ToolVariant::from_name(value.as_str()), Some(value));
        }
        for value in DataSensitivity::ALL {
            assert_eq!(json(value), value.as_str());
            assert_eq!(value.as_str().parse(), Ok(value));
        }
    }

    #[test]
    fn operation_types_are_exact_words() {
        for text in ["", "Read", "READ", " read", "delete"] {
            assert_eq!(
                text.parse::<OperationType>(),
                Err(UnknownOperationType),
                "{text:?}"
            );
        }
    }

    #[test]
    fn the_removed_call_tool_is_no_variant() {
        assert_eq!(ToolVariant::from_name("call_tool"), None);
    }

    #[test]
    fn strictness_is_the_order() {
        assert!(ToolVariant::Read < ToolVariant::Write);
        assert!(ToolVariant::Write < ToolVariant::Destructive);
        assert_eq!(
            OperationType::ALL.map(OperationType::letter),
            ['R', 'W', 'D']
        );
    }
}
