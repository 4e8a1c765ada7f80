//! The operator's own tiers for tools (`tool_overrides` in the config).

mod pattern;

use std::cmp::Reverse;
use std::collections::HashMap;

pub use pattern::PatternError;
pub(crate) use pattern::glob_matches;
use pattern::{Glob, Pattern};

use crate::{Tier, ToolId};

/// Tiers by pattern, compiled for lookup.
///
/// A pattern without wildcards beats one with; among those with, the one with more literal
/// characters wins, and between equals the stricter tier.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    exact: HashMap<ToolId, Tier>,
    /// In the order in which they are tried.
    globs: Vec<(Glob, Tier)>,
}

/// A pattern of `tool_overrides` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool override {pattern:?} is not usable")]
pub struct OverrideError {
    pub pattern: String,
    pub source: PatternError,
}

impl Overrides {
    pub fn compile<P: AsRef<str>>(
        entries: impl IntoIterator<Item = (P, Tier)>,
    ) -> Result<Self, OverrideError> {
        let mut overrides = Self::default();
        for (pattern, tier) in entries {
            let pattern = pattern.as_ref();
            let parsed = pattern.parse().map_err(|source| OverrideError {
                pattern: pattern.to_owned(),
                source,
            })?;
            match parsed {
                Pattern::Exact(id) => {
                    let entry = overrides.exact.entry(id).or_insert(tier);
                    *entry = tier.max(*entry);
                }
                Pattern::Glob(glob) => overrides.globs.push((glob, tier)),
            }
        }
        overrides
            .globs
            .sort_by_key(|(glob, tier)| Reverse((glob.literal_characters(), *tier)));
        Ok(overrides)
    }

    /// The operator's tier for a tool, with the pattern that says so.
    pub fn tier_for(&self, tool: &ToolId) -> Option<(Tier, &str)> {
        if let Some((id, tier)) = self.exact.get_key_value(tool) {
            return Some((*tier, id.as_str()));
        }
        let (glob, tier) = self.globs.iter().find(|(glob, _)| glob.matches(tool))?;
        Some((*tier, glob.as_str()))
    }

    /// All patterns, those without wildcards first, in no particular order.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, Tier)> {
        let exact = self.exact.iter().map(|(id, tier)| (id.as_str(), *tier));
        exact.chain(self.globs.iter().map(|(glob, tier)| (glob.as_str(), *tier)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(entries: &[(&str, Tier)]) -> Overrides {
        Overrides::compile(entries.iter().copied()).unwrap()
    }

    fn lookup<'a>(overrides: &'a Overrides, tool: &str) -> Option<(Tier, &'a str)> {
        overrides.tier_for(&tool.parse().unwrap())
    }

    #[test]
    fn an_exact_pattern_beats_any_glob() {
        let overrides = compile(&[
            ("github:delete_draf?", Tier::Destructive),
            ("github:delete_draft", Tier::SoftDelete),
        ]);
        let found = lookup(&overrides, "github:delete_draft");
        assert_eq!(found, Some((Tier::SoftDelete, "github:delete_draft")));
        let found = lookup(&overrides, "github:delete_drafx");
        assert_eq!(found, Some((Tier::Destructive, "github:delete_draf?")));
    }

    #[test]
    fn the_glob_with_more_literal_characters_wins() {
        let overrides = compile(&[
            ("*:*", Tier::Write),
            ("github:*", Tier::Destructive),
            ("github:list_*", Tier::ReadOnly),
        ]);
        assert_eq!(
            lookup(&overrides, "github:list_repos").unwrap().0,
            Tier::ReadOnly
        );
        assert_eq!(
            lookup(&overrides, "github:purge").unwrap().0,
            Tier::Destructive
        );
        assert_eq!(lookup(&overrides, "notes:purge").unwrap().0, Tier::Write);
    }

    #[test]
    fn between_equals_the_stricter_tier_wins_whatever_the_order() {
        let lax = ("a*:bc", Tier::ReadOnly);
        let strict = ("ab:*c", Tier::SoftDelete);
        for entries in [[lax, strict], [strict, lax]] {
            let found = lookup(&compile(&entries), "ab:bc").map(|(tier, _)| tier);
            assert_eq!(found, Some(Tier::SoftDelete));
        }
    }

    #[test]
    fn the_same_pattern_twice_means_the_stricter_tier() {
        for tiers in [
            [Tier::Write, Tier::Destructive],
            [Tier::Destructive, Tier::Write],
        ] {
            let overrides = compile(&tiers.map(|tier| ("notes:purge", tier)));
            let found = lookup(&overrides, "notes:purge");
            assert_eq!(found, Some((Tier::Destructive, "notes:purge")));
        }
    }

    #[test]
    fn a_tool_without_an_override_has_none() {
        assert_eq!(
            lookup(&compile(&[("*:purge_*", Tier::Destructive)]), "notes:get"),
            None
        );
        assert_eq!(lookup(&Overrides::default(), "notes:get"), None);
    }

    #[test]
    fn every_pattern_can_be_listed() {
        let overrides = compile(&[("*:purge_*", Tier::Destructive), ("a:b", Tier::Write)]);
        let listed: Vec<_> = overrides.patterns().collect();
        assert_eq!(
            listed,
            [("a:b", Tier::Write), ("*:purge_*", Tier::Destructive)]
        );
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = Overrides::compile([("github", Tier::Write)]).unwrap_err();
        assert_eq!(error.pattern, "github");
        assert_eq!(error.source, PatternError::NoServer);
    }
}
