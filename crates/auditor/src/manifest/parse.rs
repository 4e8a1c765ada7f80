//! Reading a manifest, with the place of every fault.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use policy::Tier;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Manifest;
use crate::escape::visible;

/// Why a text is not a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest is not valid JSON of the expected shape")]
    Json(#[from] serde_json::Error),
    #[error(
        "the manifest has version {found}, but only version {known} is known",
        known = Manifest::VERSION
    )]
    Version { found: u32 },
    #[error("the manifest names no tool; list at least one under tools")]
    Empty,
    #[error("line {line}: a tool has an empty name")]
    Nameless { line: usize },
    #[error("line {line}: the tool {name} stands twice under {tier}; remove one")]
    Twice {
        name: String,
        tier: Tier,
        line: usize,
    },
    #[error("line {line}: the tool {name} stands under both {first} and {second}; remove one")]
    TwoTiers {
        name: String,
        first: Tier,
        second: Tier,
        line: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    version: u32,
    #[serde(borrow)]
    tools: Tiers<'a>,
}

/// Names are kept raw, because where they stand in the text tells the line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tiers<'a> {
    #[serde(default, borrow)]
    read_only: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    write: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    soft_delete: Vec<&'a RawValue>,
    #[serde(default, borrow)]
    destructive: Vec<&'a RawValue>,
}

impl Manifest {
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let file: File<'_> = serde_json::from_str(text)?;
        if file.version != Self::VERSION {
            let found = file.version;
            return Err(ManifestError::Version { found });
        }
        let listed = [
            (Tier::ReadOnly, file.tools.read_only),
            (Tier::Write, file.tools.write),
            (Tier::SoftDelete, file.tools.soft_delete),
            (Tier::Destructive, file.tools.destructive),
        ];
        let mut tiers = BTreeMap::new();
        for (tier, names) in listed {
            for raw in names {
                add(&mut tiers, tier, raw, text)?;
            }
        }
        if tiers.is_empty() {
            return Err(ManifestError::Empty);
        }
        Ok(Self { tiers })
    }
}

fn add(
    tiers: &mut BTreeMap<String, Tier>,
    tier: Tier,
    raw: &RawValue,
    text: &str,
) -> Result<(), ManifestError> {
    let line = line_of(raw.get(), text);
    let name: String = serde_json::from_str(raw.get())?;
    if name.trim().is_empty() {
        return Err(ManifestError::Nameless { line });
    }
    match tiers.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(tier);
            Ok(())
        }
        Entry::Occupied(entry) => {
            let name = visible(entry.key()).into_owned();
            let first = *entry.get();
            Err(if first == tier {
                ManifestError::Twice { name, tier, line }
            } else {
                ManifestError::TwoTiers {
                    name,
                    first,
                    second: tier,
                    line,
                }
            })
        }
    }
}

/// The line on which a part of the text begins.
fn line_of(part: &str, text: &str) -> usize {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or_default();
    before.bytes().filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> ManifestError {
        Manifest::parse(text).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = r#"{"version": 1, "tools": {"destructive": ["n:purge"], "read_only": ["n:get", "get"]}}"#;
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.tier("n:purge"), Some(Tier::Destructive));
        assert_eq!(Manifest::parse(&manifest.to_json()).unwrap(), manifest);
    }

    #[test]
    fn a_text_that_is_not_json_is_told_with_its_place() {
        let ManifestError::Json(error) = fault("{\n  \"version\": 1,,") else {
            panic!("not a JSON error");
        };
        assert_eq!((error.line(), error.column()), (2, 16));
    }

    #[test]
    fn an_unknown_tier_and_a_tier_given_twice_are_told() {
        let unknown = fault(r#"{"version": 1, "tools": {"readonly": ["a"]}}"#);
        let ManifestError::Json(error) = unknown else {
            panic!("not a JSON error");
        };
        assert!(
            error.to_string().contains("unknown field `readonly`"),
            "{error}"
        );
        let twice = fault(r#"{"version": 1, "tools": {"write": ["a"], "write": ["b"]}}"#);
        assert!(
            matches!(twice, ManifestError::Json(error) if error.to_string().contains("duplicate field"))
        );
        assert!(matches!(
            fault(r#"{"version": 1, "tools": {"write": [7]}}"#),
            ManifestError::Json(_)
        ));
    }

    #[test]
    fn a_manifest_without_tools_is_refused() {
        assert!(matches!(
            fault(r#"{"version": 1, "tools": {}}"#),
            ManifestError::Empty
        ));
        let empty = r#"{"version": 1, "tools": {"write": []}}"#;
        assert!(matches!(fault(empty), ManifestError::Empty));
        let nameless = r#"{"version": 1, "tools": {"write": [" "]}}"#;
        assert!(matches!(
            fault(nameless),
            ManifestError::Nameless { line: 1 }
        ));
    }

    #[test]
    fn a_tool_that_stands_twice_is_named_with_its_line() {
        let text = "{\"version\": 1, \"tools\": {\"write\": [\n\"a\",\n\"b\",\n\"a\"]}}";
        assert_eq!(
            fault(text).to_string(),
            "line 4: the tool a stands twice under write; remove one"
        );
        let text =
            "{\"version\": 1, \"tools\": {\"write\": [\"a\"],\n\"destructive\": [\"\\u0061\"]}}";
        assert_eq!(
            fault(text).to_string(),
            "line 2: the tool a stands under both write and destructive; remove one"
        );
    }

    #[test]
    fn another_version_is_refused() {
        let text = r#"{"version": 2, "tools": {"write": ["a"]}}"#;
        assert!(matches!(fault(text), ManifestError::Version { found: 2 }));
    }
}
