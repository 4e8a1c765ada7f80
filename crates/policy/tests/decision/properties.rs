//! Laws that hold for every call, not only for the rows somebody thought of.

use policy::{
    Annotations, Code, DeclaredIntent, EffectiveTier, Hold, IntentMode, PinnedTiers, Rules, Tier,
    TierFacts, ToolVariant, Unannotated,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use crate::Scenario;

prop_compose! {
    fn hints()(
        read_only_hint in any::<Option<bool>>(),
        destructive_hint in any::<Option<bool>>(),
        idempotent_hint in any::<Option<bool>>(),
        open_world_hint in any::<Option<bool>>(),
    ) -> Annotations {
        let hints = Annotations::default();
        Annotations { read_only_hint, destructive_hint, idempotent_hint, open_world_hint, ..hints }
    }
}

prop_compose! {
    fn rules()(
        mode in select(vec![IntentMode::TwoKey, IntentMode::Inferred]),
        strict_server_validation in any::<bool>(),
        unannotated in select(vec![Unannotated::Trust, Unannotated::Infer, Unannotated::Deny]),
    ) -> Rules {
        Rules { mode, strict_server_validation, unannotated }
    }
}

fn tier() -> impl Strategy<Value = Option<Tier>> {
    option::of(select(Tier::ALL.to_vec()))
}

prop_compose! {
    fn pinned()(
        declared in tier(),
        audited in select(Tier::ALL.to_vec()),
        silent in any::<bool>(),
    ) -> PinnedTiers {
        PinnedTiers { silent: silent || declared.is_none(), declared, audited }
    }
}

prop_compose! {
    /// Any call whose intent matches its lane.
    fn scenario()(
        variant in select(ToolVariant::ALL.to_vec()),
        annotations in option::of(hints()),
        override_tier in tier(),
        audited_tier in tier(),
        distrusted in any::<bool>(),
        pinned in option::of(pinned()),
        rules in rules(),
    ) -> Scenario {
        let scenario = Scenario::on(variant);
        Scenario { annotations, override_tier, audited_tier, distrusted, pinned, rules, ..scenario }
    }
}

fn on_lane(scenario: &Scenario, variant: ToolVariant) -> Scenario {
    let intent = Some(DeclaredIntent::for_variant(variant));
    Scenario {
        variant,
        intent,
        ..scenario.clone()
    }
}

/// What the server could have said instead that speaks more for mutation.
fn more_evidence(hints: &Annotations) -> Vec<Annotations> {
    let mut more = vec![
        Annotations {
            read_only_hint: Some(false),
            ..hints.clone()
        },
        Annotations {
            destructive_hint: Some(true),
            ..hints.clone()
        },
    ];
    if hints.destructive_hint.is_none() {
        more.push(Annotations {
            destructive_hint: Some(false),
            ..hints.clone()
        });
    }
    more
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_stricter_lane_is_never_refused_where_a_laxer_one_is_not(scenario in scenario()) {
        let refused = ToolVariant::ALL.map(|variant| on_lane(&scenario, variant).code().is_some());
        prop_assert!(refused.is_sorted_by(|laxer, stricter| laxer >= stricter), "{refused:?}");
        prop_assert!(!refused[2], "the strictest lane may call every tool");
    }

    #[test]
    fn the_recommended_lane_is_never_refused(scenario in scenario()) {
        let decision = scenario.decide();
        let call_with = decision.effective.call_with(scenario.rules.unannotated);
        let recommended = on_lane(&scenario, call_with).decide();
        prop_assert_eq!(recommended.outcome.as_str(), "allow");
    }

    #[test]
    fn evidence_of_mutation_never_lowers_a_tier(hints in hints()) {
        for more in more_evidence(&hints) {
            prop_assert!(more.declared_tier() >= hints.declared_tier(), "{hints:?} {more:?}");
            let effective = |hints: &Annotations| {
                let declared = hints.declared_tier();
                let facts = TierFacts { declared, ..TierFacts::default() };
                EffectiveTier::resolve(&facts, Unannotated::Trust).tier()
            };
            prop_assert!(effective(&more) >= effective(&hints));
        }
    }

    #[test]
    fn evidence_of_mutation_never_opens_a_lane(scenario in scenario()) {
        // An operator who denies unannotated tools rewards a server for saying anything at all, and
        // an auditor can think worse of a silent server than it says of itself.
        prop_assume!(scenario.rules.unannotated == Unannotated::Trust);
        let hints = scenario.annotations.clone().unwrap_or_default();
        for more in more_evidence(&hints) {
            let more = Scenario { annotations: Some(more), ..scenario.clone() };
            if scenario.code().is_some() {
                prop_assert_eq!(more.code(), Some(Code::ServerMismatch));
            }
        }
    }

    #[test]
    fn a_pin_never_opens_a_lane(scenario in scenario()) {
        let unpinned = Scenario { pinned: None, ..scenario.clone() };
        prop_assert!(scenario.code().is_some() || unpinned.code().is_none());
    }

    #[test]
    fn a_pin_of_what_is_announced_changes_nothing(scenario in scenario()) {
        let declared = scenario.annotations.as_ref().and_then(Annotations::declared_tier);
        let pinned = scenario.audited_tier.map(|audited| PinnedTiers::new(declared, audited));
        let same = Scenario { pinned, ..scenario.clone() };
        let unpinned = Scenario { pinned: None, ..scenario };
        prop_assert_eq!(same.decide(), unpinned.decide());
    }

    #[test]
    fn no_lane_may_call_what_is_held(
        scenario in scenario(),
        hold in select(Hold::ALL.to_vec()),
    ) {
        let held = Scenario { hold: Some(hold), ..scenario };
        prop_assert_eq!(held.code(), Some(Code::ToolQuarantined));
    }

    #[test]
    fn not_strict_never_refuses_for_annotations(mut scenario in scenario()) {
        scenario.rules.strict_server_validation = false;
        let decision = scenario.decide();
        let operators_word = match decision.effective {
            EffectiveTier::Override(_) => true,
            EffectiveTier::Unannotated => scenario.rules.unannotated == Unannotated::Deny,
            EffectiveTier::Declared(_) | EffectiveTier::Audited(_) | EffectiveTier::Pinned(_) => {
                false
            }
        };
        prop_assert!(operators_word || decision.refusal().is_none());
    }

    #[test]
    fn strictness_changes_nothing_but_refusals_into_warnings(scenario in scenario()) {
        let with = |strict_server_validation| {
            let rules = Rules { strict_server_validation, ..scenario.rules };
            Scenario { rules, ..scenario.clone() }.decide()
        };
        let (strict, lenient) = (with(true), with(false));
        if strict.outcome != lenient.outcome {
            let refusal = strict.refusal().map(ToString::to_string);
            prop_assert!(refusal.is_some());
            prop_assert_eq!(refusal, lenient.warning().map(ToString::to_string));
        }
    }

    #[test]
    fn the_same_call_is_always_decided_the_same(scenario in scenario()) {
        prop_assert_eq!(scenario.decide(), scenario.decide());
    }

    #[test]
    fn any_words_are_decided_about(
        mut scenario in scenario(),
        operation_type in option::of("(?s).{0,20}"),
        data_sensitivity in option::of("(?s).{0,20}"),
        reason in option::of("(?s).{0,2000}"),
    ) {
        let declared = DeclaredIntent { operation_type, data_sensitivity, reason };
        scenario.intent = Some(declared.clone());
        let decision = scenario.decide();
        if let Some(intent) = decision.intent() {
            prop_assert_eq!(intent.operation_type, scenario.variant.operation_type());
            prop_assert_eq!(&intent.reason, &declared.reason);
        } else {
            prop_assert!(decision.refusal().is_some());
        }
    }
}
