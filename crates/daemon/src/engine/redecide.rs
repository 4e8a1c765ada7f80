//! A recorded call, decided again under a config that may be another one.

use activity::{Facts, Given, Record, Status};
use config::Config;
use policy::{
    Annotations, Call, Code, Decision, DeclaredIntent, EffectiveTier, Hold, IntentMode, Outcome,
    Refusal, Tier, TierFacts, ToolId, Trust, decide,
};
use serde::Deserialize;

/// What a decision comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    Warned,
    Refused(Code),
}

/// What was decided then, and what is decided now.
#[derive(Debug)]
pub(super) struct Redecided {
    pub tool: ToolId,
    pub recorded: Verdict,
    pub decision: Decision,
}

/// Decides a recorded call again; none if it was never decided, because it named nothing that
/// could be called.
pub(super) fn redecide(record: &Record, config: &Config) -> Option<Redecided> {
    let facts = record.metadata.facts?;
    let name = format!(
        "{}:{}",
        record.server_name.as_deref()?,
        record.tool_name.as_deref()?
    );
    let tool: ToolId = name.parse().ok()?;
    let recorded = recorded_verdict(record)?;
    let tier_facts = TierFacts {
        override_tier: config
            .tool_overrides
            .compiled()
            .tier_for(&tool)
            .map(|(tier, _)| tier),
        declared: facts.declared_tier,
        audited: facts.audited_tier,
        distrusted: config.distrust.matches(tool.server()),
        pinned: facts.pinned,
    };
    let mut rules = config.intent_declaration;
    let variant = if facts.lane_chosen {
        record.metadata.tool_variant?
    } else {
        // An endpoint without lanes has no place to declare an intent either.
        rules.mode = IntentMode::Inferred;
        EffectiveTier::resolve(&tier_facts, rules.unannotated).call_with(rules.unannotated)
    };
    let (intent, annotations) = (declared_intent(record, &facts), hints(facts.declared_tier));
    let call = Call {
        variant,
        tool: &tool,
        intent: intent.as_ref(),
        annotations: annotations.as_ref(),
        override_tier: tier_facts.override_tier,
        audited_tier: facts.audited_tier,
        distrusted: tier_facts.distrusted,
        pinned: facts.pinned,
        hold: facts.hold.filter(|hold| holds(*hold, &tool, config)),
    };
    let decision = decide(&call, &rules);
    Some(Redecided {
        tool,
        recorded,
        decision,
    })
}

impl From<&Decision> for Verdict {
    fn from(decision: &Decision) -> Self {
        match &decision.outcome {
            Outcome::Allow { .. } => Self::Allowed,
            Outcome::Warn { .. } => Self::Warned,
            Outcome::Reject { refusal, .. } => Self::Refused(refusal.code),
        }
    }
}

/// What was decided then. None for a record that is about something else than a decision.
fn recorded_verdict(record: &Record) -> Option<Verdict> {
    if record.status == Status::Blocked {
        let code = record.error_code.as_deref()?;
        let code: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
            serde::de::IntoDeserializer::into_deserializer(code);
        return Code::deserialize(code).ok().map(Verdict::Refused);
    }
    Some(if record.metadata.warnings.is_empty() {
        Verdict::Allowed
    } else {
        Verdict::Warned
    })
}

/// The intent with the words that were understood; the others are as wrong as they were.
fn declared_intent(record: &Record, facts: &Facts) -> Option<DeclaredIntent> {
    let recorded = record.metadata.intent.clone().unwrap_or_default();
    let word = |given, understood: Option<&'static str>| match given {
        Given::Absent => None,
        Given::Understood => understood.map(str::to_owned),
        Given::NotUnderstood => Some(String::new()),
    };
    facts.intent_given.then(|| DeclaredIntent {
        operation_type: word(
            facts.operation_type,
            recorded.operation_type.map(policy::OperationType::as_str),
        ),
        data_sensitivity: word(
            facts.data_sensitivity,
            recorded
                .data_sensitivity
                .map(policy::DataSensitivity::as_str),
        ),
        reason: recorded.reason,
    })
}

/// Hints that declare this tier.
fn hints(tier: Option<Tier>) -> Option<Annotations> {
    let tier = tier?;
    Some(Annotations {
        read_only_hint: Some(tier == Tier::ReadOnly),
        destructive_hint: Some(tier == Tier::Destructive),
        ..Annotations::default()
    })
}

/// A definition that changed is no reason to hold the tool where changes are only logged.
fn holds(hold: Hold, tool: &ToolId, config: &Config) -> bool {
    let server = config.server(tool.server());
    match (hold, server.map(|server| server.trust)) {
        (Hold::DefinitionChanged, Some(Trust::Log)) => false,
        (Hold::DefinitionChanged | Hold::Quarantined, _) => true,
    }
}

/// The line that says what a decision is, if it is anything but plain consent.
pub(super) fn message(decision: &Decision) -> Option<String> {
    let refusal: Option<&Refusal> = decision.refusal();
    refusal
        .map(ToString::to_string)
        .or_else(|| decision.warning().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use activity::sqlite::{SqliteOptions, SqliteStore};
    use activity::{Activity, Cursor, Durability, End, Filter, Payloads, Settings, Source};
    use policy::{DataSensitivity, OperationType, PinnedTiers, ToolVariant};
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use redact::Redactor;

    use super::super::Caller;
    use super::super::call::facts_of;
    use super::super::recording::{Decided, log_entry};
    use super::super::request::{Asked, CallRequest, LaneCall};
    use super::*;

    const CALLS: usize = 10_000;

    /// A call and the config it is decided under.
    #[derive(Debug)]
    struct Scenario {
        config: usize,
        variant: ToolVariant,
        tool: &'static str,
        intent: Option<DeclaredIntent>,
        annotations: Option<Annotations>,
        audited: Tier,
        pinned: Option<PinnedTiers>,
        hold: Option<Hold>,
    }

    fn configs() -> Vec<Config> {
        let mut configs = Vec::new();
        for mode in ["two_key", "inferred"] {
            for strict in [true, false] {
                for unannotated in ["trust", "infer", "deny"] {
                    for distrust in ["[]", r#"["a*"]"#] {
                        let text = format!(
                            r#"{{"intent_declaration": {{"mode": "{mode}", "distrust": {distrust},
                            "strict_server_validation": {strict}, "unannotated": "{unannotated}"}},
                            "tool_overrides": {{"alpha:o*": "read_only", "beta:o*": "destructive"}},
                            "mcpServers": {{"alpha": {{"command": "x", "trust": "pin"}}}}}}"#
                        );
                        let path = std::path::Path::new("x");
                        let loaded = config::parse(text.as_bytes(), path);
                        configs.push(loaded.unwrap_or_else(|error| panic!("{error}")).config);
                    }
                }
            }
        }
        configs
    }

    fn tier() -> impl Strategy<Value = Tier> {
        select(Tier::ALL.to_vec())
    }

    fn word(known: Vec<&'static str>) -> impl Strategy<Value = Option<String>> {
        let known = select(known).prop_map(str::to_owned);
        option::of(prop_oneof![9 => known, 1 => "[a-z]{0,9}"])
    }

    prop_compose! {
        fn intent()(
            operation_type in word(OperationType::ALL.map(OperationType::as_str).to_vec()),
            data_sensitivity in word(DataSensitivity::ALL.map(DataSensitivity::as_str).to_vec()),
            reason in option::of(prop_oneof![9 => "[a-z ]{0,20}", 1 => "é{999,1002}"]),
        ) -> DeclaredIntent {
            DeclaredIntent { operation_type, data_sensitivity, reason }
        }
    }

    prop_compose! {
        fn hints()(
            read_only_hint in any::<Option<bool>>(),
            destructive_hint in any::<Option<bool>>(),
        ) -> Annotations {
            Annotations { read_only_hint, destructive_hint, ..Annotations::default() }
        }
    }

    prop_compose! {
        fn pinned()(declared in option::of(tier()), audited in tier(), silent in any::<bool>())
            -> PinnedTiers
        {
            PinnedTiers { silent: silent || declared.is_none(), declared, audited }
        }
    }

    fn scenario(configs: usize) -> impl Strategy<Value = Scenario> {
        let tools = vec!["alpha:open", "alpha:get", "beta:over", "beta:get"];
        (
            0..configs,
            select(ToolVariant::ALL.to_vec()),
            select(tools),
            // Most declare what they do, so that most get as far as the lanes.
            (prop::bool::weighted(0.6), option::of(intent())),
            option::of(hints()),
            tier(),
            option::of(pinned()),
            prop_oneof![9 => Just(None), 1 => select(Hold::ALL.to_vec()).prop_map(Some)],
        )
            .prop_map(
                |(config, variant, tool, (fits, intent), annotations, audited, pinned, hold)| {
                    let matching = DeclaredIntent::for_variant(variant);
                    Scenario {
                        config,
                        variant,
                        tool,
                        intent: if fits { Some(matching) } else { intent },
                        annotations,
                        audited,
                        pinned,
                        // Only a server that is pinned holds a definition.
                        hold: hold
                            .filter(|hold| *hold == Hold::Quarantined || tool.starts_with("alpha")),
                    }
                },
            )
    }

    /// Decides a scenario as a live call is decided.
    fn decided(scenario: &Scenario, config: &Config) -> Decided {
        let tool: ToolId = scenario.tool.parse().unwrap();
        let override_tier = config.tool_overrides.compiled().tier_for(&tool);
        let call = Call {
            variant: scenario.variant,
            tool: &tool,
            intent: scenario.intent.as_ref(),
            annotations: scenario.annotations.as_ref(),
            override_tier: override_tier.map(|(tier, _)| tier),
            audited_tier: Some(scenario.audited),
            distrusted: config.distrust.matches(tool.server()),
            pinned: scenario.pinned,
            hold: scenario.hold,
        };
        Decided {
            decision: decide(&call, &config.intent_declaration),
            facts: facts_of(&call, true),
        }
    }

    fn open(folder: &std::path::Path) -> Activity {
        let options = SqliteOptions {
            directory: folder.to_owned(),
            max_file_bytes: None,
        };
        let settings = Settings {
            redactor: Redactor::new(std::iter::empty::<&str>()).unwrap(),
            max_response_bytes: 0,
            max_argument_bytes: usize::MAX,
            payloads: Payloads::Full,
        };
        Activity::new(
            Arc::new(SqliteStore::open(&options).unwrap().store),
            settings,
        )
    }

    #[tokio::test]
    async fn recorded_calls_replayed_under_the_recorded_config_are_decided_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let activity = open(folder.path());
        let configs = configs();
        let caller = Caller {
            source: Source::Mcp,
            session_id: None,
            client_name: None,
            request_id: None,
        };
        let mut runner = TestRunner::deterministic();
        let strategy = scenario(configs.len());
        let mut expected = std::collections::HashMap::new();
        for _ in 0..CALLS {
            let scenario = strategy.new_tree(&mut runner).unwrap().current();
            let request = CallRequest::Lane(LaneCall {
                asked: Asked {
                    name: scenario.tool.to_owned(),
                    arguments: None,
                    intent: scenario.intent.clone(),
                    bytes: 0,
                },
                variant: scenario.variant,
                tool: scenario.tool.parse().unwrap(),
                meta: None,
            });
            let decided = decided(&scenario, &configs[scenario.config]);
            let variant = Some(scenario.variant);
            let entry = log_entry(&request, &caller, Some(&decided), variant);
            let outcome = match decided.decision.refusal() {
                None => activity::Outcome::Success,
                Some(refusal) => activity::Outcome::Blocked {
                    code: refusal.code.as_str(),
                    message: &refusal.message,
                },
            };
            let end = End::new(outcome, Duration::ZERO);
            let stored = activity.record(entry, end, Durability::Batched).await;
            expected.insert(stored.unwrap(), (scenario.config, decided.decision));
        }
        // Whatever is queued is stored before this one is.
        let last = activity::Start::new(activity::RecordType::System, Source::Api);
        let end = End::new(activity::Outcome::Success, Duration::ZERO);
        let last = activity.record(last, end, Durability::Written).await;
        let mut after = Some(Cursor::after(last.unwrap()));
        let mut refused = 0;
        let mut warned = 0;
        while let Some(cursor) = after {
            let records = activity.scan(Filter::default(), Some(cursor), 500).await;
            let records = records.unwrap();
            for record in &records {
                let (config, decision) = expected.remove(&record.id).unwrap();
                let replayed = redecide(record, &configs[config]).unwrap();
                let again = &replayed.decision;
                assert_eq!(replayed.recorded, Verdict::from(&decision), "{record:?}");
                assert_eq!(Verdict::from(again), Verdict::from(&decision), "{record:?}");
                assert_eq!(again.effective, decision.effective, "{record:?}");
                assert_eq!(again.warning(), decision.warning(), "{record:?}");
                refused += usize::from(decision.refusal().is_some());
                warned += usize::from(decision.warning().is_some());
            }
            after = records.last().map(|record| Cursor::after(record.id));
        }
        assert!(expected.is_empty(), "{} were not replayed", expected.len());
        // The calls are not all alike, or this would prove little.
        assert!(
            refused > CALLS / 5 && warned > CALLS / 20,
            "{refused} {warned}"
        );
        assert!(refused < CALLS * 4 / 5, "{refused}");
        activity.close().await.unwrap();
    }
}
