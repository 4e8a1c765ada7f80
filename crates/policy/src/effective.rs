//! The tier a decision uses, and where it came from.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Annotations, Tier, ToolVariant, Unannotated};

/// The tier a decision uses; only an unannotated tool has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectiveTier {
    Override(Tier),
    Declared(Tier),
    Audited(Tier),
    Unannotated,
}

/// Whose word the effective tier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// The operator's.
    Override,
    /// The server's.
    Declared,
    /// Our auditor's.
    Audited,
    /// Nobody's.
    Unannotated,
}

impl EffectiveTier {
    /// The operator's word is above the server's; the auditor's counts where the server is silent
    /// and the operator asked for it.
    pub fn resolve(
        override_tier: Option<Tier>,
        annotations: Option<&Annotations>,
        audited_tier: Option<Tier>,
        unannotated: Unannotated,
    ) -> Self {
        if let Some(tier) = override_tier {
            return Self::Override(tier);
        }
        if let Some(tier) = annotations.and_then(Annotations::declared_tier) {
            return Self::Declared(tier);
        }
        match (unannotated, audited_tier) {
            (Unannotated::Infer, Some(tier)) => Self::Audited(tier),
            _ => Self::Unannotated,
        }
    }

    /// The tier for a server that is not trusted: the stricter of what it declares and what the
    /// auditor concludes. What the operator set stays.
    #[must_use]
    pub fn distrusting(self, audited_tier: Option<Tier>) -> Self {
        match (self, audited_tier) {
            (Self::Declared(declared), Some(audited)) if audited > declared => {
                Self::Audited(audited)
            }
            (Self::Unannotated, Some(audited)) => Self::Audited(audited),
            _ => self,
        }
    }

    pub fn tier(self) -> Option<Tier> {
        match self {
            Self::Override(tier) | Self::Declared(tier) | Self::Audited(tier) => Some(tier),
            Self::Unannotated => None,
        }
    }

    pub fn provenance(self) -> Provenance {
        match self {
            Self::Override(_) => Provenance::Override,
            Self::Declared(_) => Provenance::Declared,
            Self::Audited(_) => Provenance::Audited,
            Self::Unannotated => Provenance::Unannotated,
        }
    }

    /// The laxest lane that may call the tool.
    pub fn laxest_variant(self, unannotated: Unannotated) -> ToolVariant {
        match (self.tier(), unannotated) {
            (Some(tier), _) => tier.variant(),
            (None, Unannotated::Deny) => ToolVariant::Destructive,
            (None, Unannotated::Trust | Unannotated::Infer) => ToolVariant::Read,
        }
    }

    /// The lane to recommend. Any lane may call an unannotated tool that is trusted, but nobody
    /// knows that it only reads, so the recommendation is to call it as a write.
    pub fn call_with(self, unannotated: Unannotated) -> ToolVariant {
        match self {
            Self::Unannotated => self.laxest_variant(unannotated).max(ToolVariant::Write),
            _ => self.laxest_variant(unannotated),
        }
    }
}

/// Completes the sentence "the tool is …".
impl fmt::Display for EffectiveTier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Override(tier) => write!(formatter, "set to {tier} by override"),
            Self::Declared(Tier::ReadOnly) => formatter.write_str("marked read-only by server"),
            Self::Declared(Tier::Write | Tier::SoftDelete) => {
                formatter.write_str("marked as not read-only by server")
            }
            Self::Declared(Tier::Destructive) => {
                formatter.write_str("marked destructive by server")
            }
            Self::Audited(tier) => write!(formatter, "inferred {tier} by audit"),
            Self::Unannotated => formatter.write_str("not annotated by server"),
        }
    }
}

impl Provenance {
    pub const ALL: [Self; 4] = [
        Self::Override,
        Self::Declared,
        Self::Audited,
        Self::Unannotated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Declared => "declared",
            Self::Audited => "audited",
            Self::Unannotated => "unannotated",
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_only() -> Annotations {
        Annotations {
            read_only_hint: Some(true),
            ..Annotations::default()
        }
    }

    #[test]
    fn the_operator_is_above_the_server_and_the_server_above_the_auditor() {
        use EffectiveTier as E;
        let (write, destructive) = (Some(Tier::Write), Some(Tier::Destructive));
        let hints = read_only();
        let resolve = |over, hints, audited| E::resolve(over, hints, audited, Unannotated::Infer);
        assert_eq!(
            resolve(write, Some(&hints), destructive),
            E::Override(Tier::Write)
        );
        assert_eq!(
            resolve(None, Some(&hints), destructive),
            E::Declared(Tier::ReadOnly)
        );
        assert_eq!(
            resolve(None, None, destructive),
            E::Audited(Tier::Destructive)
        );
        assert_eq!(resolve(None, None, None), E::Unannotated);
    }

    #[test]
    fn the_auditor_counts_only_when_asked_for() {
        for setting in [Unannotated::Trust, Unannotated::Deny] {
            let effective = EffectiveTier::resolve(None, None, Some(Tier::Write), setting);
            assert_eq!(effective, EffectiveTier::Unannotated);
        }
    }

    #[test]
    fn a_server_that_is_not_trusted_gets_the_stricter_of_both_words() {
        use EffectiveTier as E;
        let audited = Some(Tier::Destructive);
        assert_eq!(
            E::Declared(Tier::ReadOnly).distrusting(audited),
            E::Audited(Tier::Destructive)
        );
        assert_eq!(
            E::Unannotated.distrusting(audited),
            E::Audited(Tier::Destructive)
        );
        let harmless = Some(Tier::ReadOnly);
        assert_eq!(
            E::Declared(Tier::Write).distrusting(harmless),
            E::Declared(Tier::Write)
        );
        assert_eq!(
            E::Override(Tier::ReadOnly).distrusting(audited),
            E::Override(Tier::ReadOnly)
        );
        assert_eq!(
            E::Declared(Tier::Write).distrusting(None),
            E::Declared(Tier::Write)
        );
    }

    #[test]
    fn annotations_that_say_nothing_about_harm_are_no_annotations() {
        let hints = Annotations {
            open_world_hint: Some(true),
            ..Annotations::default()
        };
        let effective = EffectiveTier::resolve(None, Some(&hints), None, Unannotated::Trust);
        assert_eq!(effective, EffectiveTier::Unannotated);
    }

    #[test]
    fn an_unannotated_tool_is_recommended_for_writing_unless_that_is_denied() {
        let call_with = |setting| EffectiveTier::Unannotated.call_with(setting);
        assert_eq!(call_with(Unannotated::Trust), ToolVariant::Write);
        assert_eq!(call_with(Unannotated::Infer), ToolVariant::Write);
        assert_eq!(call_with(Unannotated::Deny), ToolVariant::Destructive);
    }

    #[test]
    fn text_and_json_agree() {
        for provenance in Provenance::ALL {
            assert_eq!(
                serde_json::to_value(provenance).unwrap(),
                provenance.as_str()
            );
        }
    }
}
