//! The four tiers of tools and the lane each belongs to.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ToolVariant;

/// How much harm a tool can do, from none to irreversible.
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
pub enum Tier {
    /// Changes nothing.
    ReadOnly,
    /// Creates or changes.
    Write,
    /// Removes, but what was removed can be brought back.
    SoftDelete,
    /// Removes for good.
    Destructive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown tier; use read_only, write, soft_delete or destructive")]
pub struct UnknownTier;

impl Tier {
    pub const ALL: [Self; 4] = [
        Self::ReadOnly,
        Self::Write,
        Self::SoftDelete,
        Self::Destructive,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Write => "write",
            Self::SoftDelete => "soft_delete",
            Self::Destructive => "destructive",
        }
    }

    /// The lane that tools of this tier are called on.
    pub fn variant(self) -> ToolVariant {
        match self {
            Self::ReadOnly => ToolVariant::Read,
            Self::Write | Self::SoftDelete => ToolVariant::Write,
            Self::Destructive => ToolVariant::Destructive,
        }
    }
}

impl FromStr for Tier {
    type Err = UnknownTier;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.as_str() == text)
            .ok_or(UnknownTier)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_agree() {
        for tier in Tier::ALL {
            assert_eq!(serde_json::to_value(tier).unwrap(), tier.as_str());
            assert_eq!(tier.as_str().parse(), Ok(tier));
        }
        assert_eq!("ReadOnly".parse::<Tier>(), Err(UnknownTier));
    }

    #[test]
    fn a_higher_tier_never_has_a_laxer_lane() {
        assert!(Tier::ALL.is_sorted());
        assert!(Tier::ALL.map(Tier::variant).is_sorted());
    }
}
