//! What is remembered of the tools of an upstream, so that a change does not go unnoticed.
//!
//! A tool is pinned when it is first seen: its definition and, apart from it, its tiers. What is
//! announced later is compared with that. Forgetting is nobody's right but the operator's: a tool
//! that goes away and comes back meets its pin again.

use std::collections::BTreeMap;

use policy::{Annotations, Hold, PinnedTiers, Tier, ToolName, Trust};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::fingerprint::Fingerprint;
use crate::tool::ToolDefinition;

/// The pins of one upstream.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerPins {
    /// Whether the operator put the whole upstream into quarantine.
    pub quarantined: bool,
    pub tools: BTreeMap<ToolName, Pin>,
}

/// What is remembered of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    pub definition: Box<RawValue>,
    pub fingerprint: Fingerprint,
    pub tiers: PinnedTiers,
    /// Whether the tiers are stricter than those of the definition, because the server lowered
    /// them and nobody approved that.
    pub tiers_kept: bool,
    /// The definition that was last announced instead of the pinned one.
    pub pending: Option<Fingerprint>,
    /// Whether the operator put the tool into quarantine.
    pub quarantined: bool,
}

/// A tool as its upstream announces it now.
#[derive(Debug, Clone, Copy)]
pub struct Announced<'a> {
    pub tool: &'a ToolDefinition,
    pub fingerprint: Fingerprint,
    pub audited: Tier,
}

/// How an announcement differs from what was known.
#[derive(Debug, Clone)]
pub struct Drift {
    pub kind: DriftKind,
    pub before: Remembered,
    pub after: Remembered,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftKind {
    /// Another definition, which is pinned from now on.
    Logged,
    /// Another definition, which has to be approved.
    Held,
    /// The pinned definition again, after another one.
    Restored,
}

/// One side of a change.
#[derive(Debug, Clone)]
pub struct Remembered {
    pub definition: Box<RawValue>,
    pub fingerprint: Fingerprint,
    pub tiers: PinnedTiers,
}

/// What an announcement did to the pins.
#[derive(Debug, Default)]
pub struct Observation {
    pub drift: Option<Drift>,
    /// Whether there is something new to remember.
    pub changed: bool,
}

impl ServerPins {
    /// Compares a tool with its pin; one that is new is pinned.
    pub fn observe(&mut self, announced: &Announced<'_>, trust: Trust) -> Observation {
        let name = announced.tool.id.tool();
        if let Some(pin) = self.tools.get_mut(name) {
            return pin.observe(announced, trust);
        }
        self.tools.insert(name.clone(), Pin::of(announced));
        Observation {
            drift: None,
            changed: true,
        }
    }

    /// What keeps a tool with this definition from being called.
    pub fn hold(&self, tool: &ToolName, fingerprint: Fingerprint) -> Option<Hold> {
        let pin = self.tools.get(tool);
        if self.quarantined || pin.is_some_and(|pin| pin.quarantined) {
            return Some(Hold::Quarantined);
        }
        pin.filter(|pin| pin.fingerprint != fingerprint)
            .map(|_| Hold::DefinitionChanged)
    }

    /// Pins what is announced now in place of what was. The quarantine of the tool ends.
    pub fn approve(&mut self, announced: &Announced<'_>) {
        let name = announced.tool.id.tool().clone();
        self.tools.insert(name, Pin::of(announced));
    }
}

impl Pin {
    fn of(announced: &Announced<'_>) -> Self {
        Self {
            definition: announced.tool.raw.clone(),
            fingerprint: announced.fingerprint,
            tiers: announced.tiers(),
            tiers_kept: false,
            pending: None,
            quarantined: false,
        }
    }

    fn observe(&mut self, announced: &Announced<'_>, trust: Trust) -> Observation {
        if announced.fingerprint == self.fingerprint {
            return self.observe_same(announced);
        }
        let before = self.remembered();
        let kind = match trust {
            Trust::Pin if self.pending == Some(announced.fingerprint) => {
                return Observation::default();
            }
            Trust::Pin => {
                self.pending = Some(announced.fingerprint);
                DriftKind::Held
            }
            Trust::Log => {
                let tiers = self.tiers.joined(announced.tiers());
                *self = Self {
                    tiers,
                    tiers_kept: tiers != announced.tiers(),
                    quarantined: self.quarantined,
                    ..Self::of(announced)
                };
                DriftKind::Logged
            }
        };
        Observation {
            drift: Some(Drift {
                kind,
                before,
                after: announced.remembered(),
            }),
            changed: true,
        }
    }

    fn observe_same(&mut self, announced: &Announced<'_>) -> Observation {
        let mut observation = Observation::default();
        if self.pending.take().is_some() {
            observation.drift = Some(Drift {
                kind: DriftKind::Restored,
                before: self.remembered(),
                after: announced.remembered(),
            });
            observation.changed = true;
        }
        // The definition is the same, so it is the auditor that has learnt something.
        if !self.tiers_kept && self.tiers != announced.tiers() {
            self.tiers = announced.tiers();
            observation.changed = true;
        }
        observation
    }

    pub fn remembered(&self) -> Remembered {
        Remembered {
            definition: self.definition.clone(),
            fingerprint: self.fingerprint,
            tiers: self.tiers,
        }
    }
}

impl Announced<'_> {
    pub fn tiers(&self) -> PinnedTiers {
        let hints = self.tool.annotations.as_ref();
        PinnedTiers::new(hints.and_then(Annotations::declared_tier), self.audited)
    }

    pub fn remembered(&self) -> Remembered {
        Remembered {
            definition: self.tool.raw.clone(),
            fingerprint: self.fingerprint,
            tiers: self.tiers(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESTRUCTIVE: &str = r#"{"name":"wipe","annotations":{"destructiveHint":true}}"#;
    const WRITE: &str = r#"{"name":"wipe","annotations":{"destructiveHint":false}}"#;
    const SILENT: &str = r#"{"name":"wipe"}"#;

    fn tool(json: &str) -> ToolDefinition {
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        ToolDefinition::parse(&"notes".parse().unwrap(), raw).unwrap()
    }

    fn announced(tool: &ToolDefinition) -> Announced<'_> {
        Announced {
            tool,
            fingerprint: Fingerprint::of(&tool.raw),
            audited: Tier::Write,
        }
    }

    fn observe(pins: &mut ServerPins, json: &str, trust: Trust) -> Option<DriftKind> {
        let tool = tool(json);
        let observation = pins.observe(&announced(&tool), trust);
        assert!(observation.changed || observation.drift.is_none());
        observation.drift.map(|drift| drift.kind)
    }

    fn hold(pins: &ServerPins, json: &str) -> Option<Hold> {
        let tool = tool(json);
        pins.hold(tool.id.tool(), Fingerprint::of(&tool.raw))
    }

    fn pin(pins: &ServerPins) -> &Pin {
        &pins.tools[&"wipe".parse::<ToolName>().unwrap()]
    }

    #[test]
    fn the_first_sight_is_believed() {
        let mut pins = ServerPins::default();
        assert_eq!(observe(&mut pins, DESTRUCTIVE, Trust::Pin), None);
        assert_eq!(observe(&mut pins, DESTRUCTIVE, Trust::Pin), None);
        assert_eq!(hold(&pins, DESTRUCTIVE), None);
        assert_eq!(pin(&pins).tiers.declared, Some(Tier::Destructive));
    }

    #[test]
    fn a_pinned_definition_holds_another_until_it_is_approved() {
        let mut pins = ServerPins::default();
        observe(&mut pins, DESTRUCTIVE, Trust::Pin);
        assert_eq!(observe(&mut pins, WRITE, Trust::Pin), Some(DriftKind::Held));
        // It is told once, however often it is announced.
        assert_eq!(observe(&mut pins, WRITE, Trust::Pin), None);
        assert_eq!(hold(&pins, WRITE), Some(Hold::DefinitionChanged));
        let restored = observe(&mut pins, DESTRUCTIVE, Trust::Pin);
        assert_eq!(restored, Some(DriftKind::Restored));
        assert_eq!(hold(&pins, DESTRUCTIVE), None);

        observe(&mut pins, WRITE, Trust::Pin);
        pins.approve(&announced(&tool(WRITE)));
        assert_eq!(hold(&pins, WRITE), None);
        assert_eq!(observe(&mut pins, WRITE, Trust::Pin), None);
        assert_eq!(pin(&pins).tiers.declared, Some(Tier::Write));
    }

    #[test]
    fn a_logged_change_is_pinned_but_does_not_lower_the_tier() {
        let mut pins = ServerPins::default();
        observe(&mut pins, DESTRUCTIVE, Trust::Log);
        for json in [WRITE, SILENT] {
            assert_eq!(
                observe(&mut pins, json, Trust::Log),
                Some(DriftKind::Logged)
            );
            assert_eq!(observe(&mut pins, json, Trust::Log), None);
            assert_eq!(hold(&pins, json), None);
            assert_eq!(pin(&pins).tiers.declared, Some(Tier::Destructive));
            assert!(pin(&pins).tiers_kept);
        }
        pins.approve(&announced(&tool(SILENT)));
        assert_eq!(pin(&pins).tiers, PinnedTiers::new(None, Tier::Write));
    }

    #[test]
    fn a_tier_that_was_raised_is_remembered() {
        let mut pins = ServerPins::default();
        observe(&mut pins, SILENT, Trust::Log);
        observe(&mut pins, WRITE, Trust::Log);
        observe(&mut pins, SILENT, Trust::Log);
        assert_eq!(pin(&pins).tiers.declared, Some(Tier::Write));
    }

    #[test]
    fn a_better_auditor_is_no_change_of_the_server() {
        let mut pins = ServerPins::default();
        let tool = tool(SILENT);
        let first = announced(&tool);
        pins.observe(&first, Trust::Pin);
        let later = Announced {
            audited: Tier::ReadOnly,
            ..first
        };
        let observation = pins.observe(&later, Trust::Pin);
        assert!(observation.drift.is_none() && observation.changed);
        assert_eq!(pin(&pins).tiers.audited, Tier::ReadOnly);
    }

    #[test]
    fn the_operators_quarantine_outlives_every_announcement() {
        let mut pins = ServerPins::default();
        observe(&mut pins, WRITE, Trust::Log);
        let name: ToolName = "wipe".parse().unwrap();
        pins.tools.get_mut(&name).unwrap().quarantined = true;
        observe(&mut pins, SILENT, Trust::Log);
        assert_eq!(hold(&pins, SILENT), Some(Hold::Quarantined));
        pins.approve(&announced(&tool(SILENT)));
        assert_eq!(hold(&pins, SILENT), None);
        pins.quarantined = true;
        assert_eq!(hold(&pins, SILENT), Some(Hold::Quarantined));
    }

    #[test]
    fn pins_survive_being_written_down() {
        let mut pins = ServerPins::default();
        observe(&mut pins, DESTRUCTIVE, Trust::Pin);
        observe(&mut pins, SILENT, Trust::Pin);
        let json = serde_json::to_string(&pins).unwrap();
        let mut again: ServerPins = serde_json::from_str(&json).unwrap();
        assert_eq!(pin(&again).definition.get(), DESTRUCTIVE);
        assert_eq!(hold(&again, SILENT), Some(Hold::DefinitionChanged));
        assert_eq!(observe(&mut again, SILENT, Trust::Pin), None);
    }
}
