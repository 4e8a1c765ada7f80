//! The tier a decision uses, and where it came from.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{PinnedTiers, Tier, ToolVariant, Unannotated};

/// Everything that is said about a tool's tier, by whomever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TierFacts {
    pub override_tier: Option<Tier>,
    pub declared: Option<Tier>,
    pub audited: Option<Tier>,
    /// Whether the operator does not take the server's word for what its tools do.
    pub distrusted: bool,
    /// What the tool was pinned with, if it is pinned.
    pub pinned: Option<PinnedTiers>,
}

/// The tier a decision uses; only an unannotated tool has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EffectiveTier {
    Override(Tier),
    Declared(Tier),
    Audited(Tier),
    /// What the tool was before its server lowered it, which nobody has approved.
    Pinned(Tier),
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
    /// The server's or the auditor's, before the server changed the tool.
    Pinned,
    /// Nobody's.
    Unannotated,
}

impl EffectiveTier {
    /// The operator's word is above everybody's. Below it, the server's counts, or the auditor's
    /// where the server is silent and the operator asked for it; for a server that is not trusted,
    /// the stricter of both. What the tool was pinned with stays in force where that is stricter.
    pub fn resolve(facts: &TierFacts, unannotated: Unannotated) -> Self {
        if let Some(tier) = facts.override_tier {
            return Self::Override(tier);
        }
        let judge =
            |declared, audited| Self::judge(declared, audited, facts.distrusted, unannotated);
        let announced = judge(facts.declared, facts.audited);
        let Some(pinned) = facts.pinned else {
            return announced;
        };
        let spoken = judge(pinned.declared, Some(pinned.audited));
        let before = if pinned.silent {
            spoken.stricter(judge(None, Some(pinned.audited)), unannotated)
        } else {
            spoken
        };
        if announced.stricter(before, unannotated) == announced {
            return announced;
        }
        before.tier().map_or(Self::Unannotated, Self::Pinned)
    }

    fn judge(
        declared: Option<Tier>,
        audited: Option<Tier>,
        distrusted: bool,
        unannotated: Unannotated,
    ) -> Self {
        match (declared, audited) {
            (Some(declared), Some(audited)) if distrusted && audited > declared => {
                Self::Audited(audited)
            }
            (Some(declared), _) => Self::Declared(declared),
            (None, Some(audited)) if distrusted || unannotated == Unannotated::Infer => {
                Self::Audited(audited)
            }
            (None, _) => Self::Unannotated,
        }
    }

    /// The one of both that fewer lanes may call; this one if there is no difference. Between two
    /// tiers of one lane the higher counts.
    fn stricter(self, other: Self, unannotated: Unannotated) -> Self {
        let lanes = [self, other].map(|tier| tier.laxest_variant(unannotated));
        let higher_tier =
            matches!((self.tier(), other.tier()), (Some(one), Some(two)) if two > one);
        if lanes[1] > lanes[0] || (lanes[1] == lanes[0] && higher_tier) {
            other
        } else {
            self
        }
    }

    pub fn tier(self) -> Option<Tier> {
        match self {
            Self::Override(tier)
            | Self::Declared(tier)
            | Self::Audited(tier)
            | Self::Pinned(tier) => Some(tier),
            Self::Unannotated => None,
        }
    }

    pub fn provenance(self) -> Provenance {
        match self {
            Self::Override(_) => Provenance::Override,
            Self::Declared(_) => Provenance::Declared,
            Self::Audited(_) => Provenance::Audited,
            Self::Pinned(_) => Provenance::Pinned,
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
            Self::Pinned(tier) => write!(
                formatter,
                "pinned as {tier} (its server lowered that, which is not approved)"
            ),
            Self::Unannotated => formatter.write_str("not annotated by server"),
        }
    }
}

impl Provenance {
    pub const ALL: [Self; 5] = [
        Self::Override,
        Self::Declared,
        Self::Audited,
        Self::Pinned,
        Self::Unannotated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "override",
            Self::Declared => "declared",
            Self::Audited => "audited",
            Self::Pinned => "pinned",
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
    use EffectiveTier as E;

    use super::*;

    const SETTINGS: [Unannotated; 3] = [Unannotated::Trust, Unannotated::Infer, Unannotated::Deny];

    fn facts(declared: Option<Tier>, audited: Tier) -> TierFacts {
        TierFacts {
            declared,
            audited: Some(audited),
            ..TierFacts::default()
        }
    }

    /// Facts of a tool that was pinned as it was first seen and announces something else now.
    fn drifted(before: (Option<Tier>, Tier), now: (Option<Tier>, Tier)) -> TierFacts {
        TierFacts {
            pinned: Some(PinnedTiers::new(before.0, before.1)),
            ..facts(now.0, now.1)
        }
    }

    #[test]
    fn the_operator_is_above_the_server_and_the_server_above_the_auditor() {
        let resolve = |facts: TierFacts| E::resolve(&facts, Unannotated::Infer);
        let read_only = facts(Some(Tier::ReadOnly), Tier::Destructive);
        let overridden = TierFacts {
            override_tier: Some(Tier::Write),
            ..read_only
        };
        assert_eq!(resolve(overridden), E::Override(Tier::Write));
        assert_eq!(resolve(read_only), E::Declared(Tier::ReadOnly));
        assert_eq!(
            resolve(facts(None, Tier::Destructive)),
            E::Audited(Tier::Destructive)
        );
        assert_eq!(resolve(TierFacts::default()), E::Unannotated);
    }

    #[test]
    fn the_auditor_counts_only_when_asked_for() {
        for setting in [Unannotated::Trust, Unannotated::Deny] {
            let effective = E::resolve(&facts(None, Tier::Write), setting);
            assert_eq!(effective, E::Unannotated);
        }
    }

    #[test]
    fn a_server_that_is_not_trusted_gets_the_stricter_of_both_words() {
        let resolve = |declared, audited| {
            let distrusted = TierFacts {
                distrusted: true,
                audited,
                ..facts(declared, Tier::ReadOnly)
            };
            E::resolve(&distrusted, Unannotated::Trust)
        };
        let destructive = Some(Tier::Destructive);
        let audited = E::Audited(Tier::Destructive);
        assert_eq!(resolve(Some(Tier::ReadOnly), destructive), audited);
        assert_eq!(resolve(None, destructive), audited);
        let write = Some(Tier::Write);
        assert_eq!(
            resolve(write, Some(Tier::ReadOnly)),
            E::Declared(Tier::Write)
        );
        assert_eq!(resolve(write, None), E::Declared(Tier::Write));
    }

    #[test]
    fn a_tier_that_was_lowered_stays_and_one_that_was_raised_applies() {
        let (read, write, destructive) = (Tier::ReadOnly, Tier::Write, Tier::Destructive);
        let resolve =
            |before, now| E::resolve(&drifted((before, write), (now, write)), Unannotated::Trust);
        for (before, now) in [
            (destructive, Some(write)),
            (destructive, Some(read)),
            (write, Some(read)),
            (destructive, None),
            (write, None),
        ] {
            assert_eq!(
                resolve(Some(before), now),
                E::Pinned(before),
                "{before} {now:?}"
            );
        }
        for (before, now) in [
            (Some(read), write),
            (Some(write), destructive),
            (Some(write), write),
            (None, read),
            (None, destructive),
        ] {
            assert_eq!(
                resolve(before, Some(now)),
                E::Declared(now),
                "{before:?} {now}"
            );
        }
        // Nobody knows whether it still only reads, and the recommendation says so.
        assert_eq!(resolve(Some(read), None), E::Unannotated);
    }

    #[test]
    fn hints_do_not_open_what_was_closed_to_a_silent_tool() {
        let gained = drifted(
            (None, Tier::Destructive),
            (Some(Tier::ReadOnly), Tier::Destructive),
        );
        let resolve = |setting| E::resolve(&gained, setting);
        assert_eq!(resolve(Unannotated::Trust), E::Declared(Tier::ReadOnly));
        assert_eq!(resolve(Unannotated::Infer), E::Pinned(Tier::Destructive));
        assert_eq!(resolve(Unannotated::Deny), E::Unannotated);
    }

    #[test]
    fn a_description_that_turned_harmless_does_not_lower_an_audited_tier() {
        let reworded = drifted((None, Tier::Destructive), (None, Tier::ReadOnly));
        let effective = E::resolve(&reworded, Unannotated::Infer);
        assert_eq!(effective, E::Pinned(Tier::Destructive));
        assert_eq!(E::resolve(&reworded, Unannotated::Trust), E::Unannotated);
    }

    #[test]
    fn the_operator_stands_above_the_pin() {
        for setting in SETTINGS {
            let facts = TierFacts {
                override_tier: Some(Tier::ReadOnly),
                ..drifted(
                    (Some(Tier::Destructive), Tier::Destructive),
                    (None, Tier::Write),
                )
            };
            assert_eq!(E::resolve(&facts, setting), E::Override(Tier::ReadOnly));
        }
    }

    #[test]
    fn an_unannotated_tool_is_recommended_for_writing_unless_that_is_denied() {
        let call_with = |setting| E::Unannotated.call_with(setting);
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
