//! The hints a server puts on a tool, and the tier they declare.
//!
//! Servers are not ours to correct: whatever they send is read as far as it makes sense, and what
//! made none is remembered so that it can be shown.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Tier;

/// A tool's annotations as its server gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members that were there with a value of the wrong type. They count as absent, but for a
    /// destructive hint, which counts as set.
    /// `annotations` itself stands here when it was not an object.
    #[serde(skip)]
    pub malformed: Vec<&'static str>,
}

impl Annotations {
    /// Reads the `annotations` member of a tool definition.
    pub fn from_raw(raw: &RawValue) -> Self {
        // A raw value is well-formed JSON already; what can still fail is its nesting depth.
        serde_json::from_str(raw.get()).map_or_else(|_| Self::not_an_object(), Self::from_value)
    }

    /// Reads the `annotations` member of a tool definition.
    pub fn from_value(value: Value) -> Self {
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Self::default(),
            _ => return Self::not_an_object(),
        };
        let mut malformed = Vec::new();
        Self {
            title: member(&members, "title", &mut malformed, |value| {
                value.as_str().map(str::to_owned)
            }),
            read_only_hint: member(&members, "readOnlyHint", &mut malformed, Value::as_bool),
            destructive_hint: member(&members, "destructiveHint", &mut malformed, Value::as_bool),
            idempotent_hint: member(&members, "idempotentHint", &mut malformed, Value::as_bool),
            open_world_hint: member(&members, "openWorldHint", &mut malformed, Value::as_bool),
            malformed,
        }
    }

    /// The tier the hints declare; none when they say nothing about harm.
    ///
    /// The more restrictive hint wins. A server that talks about harm at all without claiming
    /// read-only has admitted to a write: otherwise a client that auto-approves reads would run
    /// writes unasked. A destructive hint that cannot be read counts as set.
    pub fn declared_tier(&self) -> Option<Tier> {
        if self.malformed.contains(&"destructiveHint") {
            return Some(Tier::Destructive);
        }
        match (self.destructive_hint, self.read_only_hint) {
            (Some(true), _) => Some(Tier::Destructive),
            (_, Some(true)) => Some(Tier::ReadOnly),
            (None, None) => None,
            (Some(false), _) | (_, Some(false)) => Some(Tier::Write),
        }
    }

    fn not_an_object() -> Self {
        Self {
            malformed: vec!["annotations"],
            ..Self::default()
        }
    }
}

fn member<T>(
    members: &Map<String, Value>,
    name: &'static str,
    malformed: &mut Vec<&'static str>,
    read: impl Fn(&Value) -> Option<T>,
) -> Option<T> {
    let value = members.get(name).filter(|value| !value.is_null())?;
    let read = read(value);
    if read.is_none() {
        malformed.push(name);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Annotations {
        Annotations::from_raw(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn a_destructive_hint_that_cannot_be_read_counts_against_the_tool() {
        for hint in [r#""true""#, r#""false""#, "1", "[]"] {
            let hints = parse(&format!(
                r#"{{"readOnlyHint": true, "destructiveHint": {hint}}}"#
            ));
            assert_eq!(hints.declared_tier(), Some(Tier::Destructive), "{hint}");
        }
        let unset = parse(r#"{"readOnlyHint": true, "destructiveHint": null}"#);
        assert_eq!(unset.declared_tier(), Some(Tier::ReadOnly));
    }

    #[test]
    fn every_combination_of_hints_has_its_tier() {
        let (yes, no) = (Some(true), Some(false));
        let table = [
            // readOnlyHint, destructiveHint, declared tier
            (None, None, None),
            (yes, None, Some(Tier::ReadOnly)),
            (yes, no, Some(Tier::ReadOnly)),
            (yes, yes, Some(Tier::Destructive)),
            (no, None, Some(Tier::Write)),
            (no, no, Some(Tier::Write)),
            (no, yes, Some(Tier::Destructive)),
            (None, no, Some(Tier::Write)),
            (None, yes, Some(Tier::Destructive)),
        ];
        for (read_only_hint, destructive_hint, tier) in table {
            let hints = Annotations {
                read_only_hint,
                destructive_hint,
                ..Annotations::default()
            };
            assert_eq!(
                hints.declared_tier(),
                tier,
                "{read_only_hint:?} {destructive_hint:?}"
            );
        }
    }

    #[test]
    fn unknown_members_and_nulls_are_ignored() {
        let hints = parse(r#"{"readOnlyHint": true, "destructiveHint": null, "audience": ["x"]}"#);
        assert_eq!(hints.read_only_hint, Some(true));
        assert_eq!(hints.destructive_hint, None);
        assert!(hints.malformed.is_empty());
    }

    #[test]
    fn a_hint_of_the_wrong_type_is_absent_and_reported() {
        let hints = parse(r#"{"title": 7, "readOnlyHint": "true", "openWorldHint": false}"#);
        assert_eq!(hints.malformed, ["title", "readOnlyHint"]);
        assert_eq!(hints.declared_tier(), None);
        assert_eq!(hints.open_world_hint, Some(false));
    }

    #[test]
    fn annotations_that_are_no_object_are_reported() {
        for json in [
            "[]",
            "\"readOnly\"",
            "true",
            &format!("{}1{}", "[".repeat(900), "]".repeat(900)),
        ] {
            assert_eq!(parse(json).malformed, ["annotations"]);
        }
        assert_eq!(parse("null"), Annotations::default());
    }

    #[test]
    fn hints_without_a_word_about_harm_declare_no_tier() {
        assert_eq!(
            parse(r#"{"idempotentHint": true, "title": "T"}"#).declared_tier(),
            None
        );
    }

    #[test]
    fn serializes_with_the_names_of_the_protocol_and_only_what_was_given() {
        let json = serde_json::to_string(&parse(r#"{"x": 1, "destructiveHint": true}"#)).unwrap();
        assert_eq!(json, r#"{"destructiveHint":true}"#);
    }
}
