//! The one function that decides about a call.
//!
//! It is pure: what it needs is in its arguments, so a recorded call can be decided again under
//! other rules and a test can ask about any combination.

use crate::{
    Annotations, DeclaredIntent, EffectiveTier, Hold, IntentDeclaration, LaneConflict, PinnedTiers,
    Refusal, Rules, Tier, TierFacts, ToolId, ToolVariant, Unannotated, Warning,
};

/// Everything about a call that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub variant: ToolVariant,
    pub tool: &'a ToolId,
    /// `None` when the agent declared nothing at all.
    pub intent: Option<&'a DeclaredIntent>,
    pub annotations: Option<&'a Annotations>,
    pub override_tier: Option<Tier>,
    pub audited_tier: Option<Tier>,
    /// Whether the operator does not take the server's word for what its tools do.
    pub distrusted: bool,
    /// What the tool was pinned with, if it is pinned.
    pub pinned: Option<PinnedTiers>,
    /// What keeps the tool from being called at all, if anything.
    pub hold: Option<Hold>,
}

/// What is to happen to a call, and the tier that it was decided upon.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub outcome: Outcome,
    pub effective: EffectiveTier,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Allow {
        intent: IntentDeclaration,
    },
    Warn {
        intent: IntentDeclaration,
        warning: Warning,
    },
    Reject {
        refusal: Refusal,
        /// There when the intent held and the tool or the lane was refused.
        intent: Option<IntentDeclaration>,
    },
}

enum Lane {
    Fits,
    Cautious(Warning),
    TooLax(LaneConflict),
}

/// Decides about a call: first whether the intent holds, then whether the tool may be called at
/// all, then whether the lane suits it.
pub fn decide(call: &Call<'_>, rules: &Rules) -> Decision {
    let effective = EffectiveTier::resolve(&call.tier_facts(), rules.unannotated);
    let outcome = match IntentDeclaration::check(call.intent, call.variant, rules.mode) {
        Ok(intent) => match call.hold {
            None => judge_lane(call, *rules, effective, intent),
            Some(hold) => {
                let refusal = hold.refusal(call.tool);
                Outcome::Reject {
                    refusal: with_call_details(refusal, call, *rules, effective),
                    intent: Some(intent),
                }
            }
        },
        Err(refusal) => {
            let refusal = with_call_details(refusal, call, *rules, effective);
            Outcome::Reject {
                refusal,
                intent: None,
            }
        }
    };
    Decision { outcome, effective }
}

fn judge_lane(
    call: &Call<'_>,
    rules: Rules,
    effective: EffectiveTier,
    intent: IntentDeclaration,
) -> Outcome {
    match compare_lane(call, rules, effective) {
        Lane::Fits => Outcome::Allow { intent },
        Lane::Cautious(warning) => Outcome::Warn { intent, warning },
        Lane::TooLax(conflict) if binds(effective, rules) => {
            let refusal = with_call_details(Refusal::from(&conflict), call, rules, effective);
            Outcome::Reject {
                refusal,
                intent: Some(intent),
            }
        }
        Lane::TooLax(conflict) => Outcome::Warn {
            intent,
            warning: Warning::LaneTooLax(conflict),
        },
    }
}

fn compare_lane(call: &Call<'_>, rules: Rules, effective: EffectiveTier) -> Lane {
    let variant = call.variant;
    let call_with = effective.laxest_variant(rules.unannotated);
    if variant < call_with {
        return Lane::TooLax(LaneConflict {
            tool: call.tool.clone(),
            variant,
            effective,
            call_with,
        });
    }
    // Every tool may be called on the strictest lane, and one of unknown tier on each.
    if variant == ToolVariant::Destructive || variant == call_with || effective.tier().is_none() {
        return Lane::Fits;
    }
    Lane::Cautious(Warning::OverlyCautious {
        tool: call.tool.clone(),
        effective,
    })
}

/// Whether a lane that is too lax is refused. Strictness is about how far servers, and the auditor
/// in their place, are believed; what the operator set always binds.
fn binds(effective: EffectiveTier, rules: Rules) -> bool {
    match effective {
        EffectiveTier::Override(_) => true,
        EffectiveTier::Unannotated => rules.unannotated == Unannotated::Deny,
        EffectiveTier::Declared(_) | EffectiveTier::Audited(_) | EffectiveTier::Pinned(_) => {
            rules.strict_server_validation
        }
    }
}

fn with_call_details(
    refusal: Refusal,
    call: &Call<'_>,
    rules: Rules,
    effective: EffectiveTier,
) -> Refusal {
    refusal
        .with("tool", call.tool.as_str())
        .with("tool_variant", call.variant.as_str())
        .with("effective_tier", effective.tier().map(Tier::as_str))
        .with("provenance", effective.provenance().as_str())
        .with("call_with", effective.call_with(rules.unannotated).as_str())
}

impl Call<'_> {
    fn tier_facts(&self) -> TierFacts {
        TierFacts {
            override_tier: self.override_tier,
            declared: self.annotations.and_then(Annotations::declared_tier),
            audited: self.audited_tier,
            distrusted: self.distrusted,
            pinned: self.pinned,
        }
    }
}

impl Decision {
    /// The intent to act on and to record, when it held.
    pub fn intent(&self) -> Option<&IntentDeclaration> {
        match &self.outcome {
            Outcome::Allow { intent } | Outcome::Warn { intent, .. } => Some(intent),
            Outcome::Reject { intent, .. } => intent.as_ref(),
        }
    }

    pub fn warning(&self) -> Option<&Warning> {
        match &self.outcome {
            Outcome::Warn { warning, .. } => Some(warning),
            Outcome::Allow { .. } | Outcome::Reject { .. } => None,
        }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            Outcome::Reject { refusal, .. } => Some(refusal),
            Outcome::Allow { .. } | Outcome::Warn { .. } => None,
        }
    }
}

impl Outcome {
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Allow { .. } => "allow",
            Self::Warn { .. } => "warn",
            Self::Reject { .. } => "reject",
        }
    }
}
