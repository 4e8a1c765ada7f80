//! What is remembered of a tool's tiers, apart from its definition.

use serde::{Deserialize, Serialize};

use crate::Tier;

/// The strictest that was said of a tool since it was first seen or last approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedTiers {
    pub declared: Option<Tier>,
    pub audited: Tier,
    /// Whether the server said nothing at some time, so that what the operator thinks of
    /// unannotated tools applied.
    pub silent: bool,
}

impl PinnedTiers {
    /// The tiers of a tool as it is announced.
    pub fn new(declared: Option<Tier>, audited: Tier) -> Self {
        Self {
            declared,
            audited,
            silent: declared.is_none(),
        }
    }

    /// The stricter of both, whoever's word it is.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self {
            declared: self.declared.max(other.declared),
            audited: self.audited.max(other.audited),
            silent: self.silent || other.silent,
        }
    }
}
