//! An input schema on one line: `(owner: string, repo: string, state?: open|closed|all)`.
//!
//! Agents read it instead of the schema to save tokens. Schemas come from upstreams and may be
//! anything, so what is not understood is `any` and everything is bounded.

use std::cell::Cell;
use std::fmt::Write;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Objects nested deeper are written as `object`.
const OBJECT_DEPTH: usize = 2;

/// References, unions and arrays followed one inside the other; a schema may refer to itself.
const MOST_STEPS: usize = 16;

/// Schemas read for one signature. Without it, unions of references to unions would take forever.
const MOST_SCHEMAS: usize = 2_000;

/// Further members, alternatives or values of an enumeration are written as `…`, and so is what
/// follows when the line or a word is already this long, in bytes.
const MOST_MEMBERS: usize = 40;
const MOST_ALTERNATIVES: usize = 12;
const LONGEST_LINE: usize = 4_000;
const LONGEST_WORD: usize = 80;

/// Writes `schema` as the parameter list of a function. Optional parameters have a `?`; objects
/// are shown to depth two, enumerations by their values.
pub fn signature(schema: Option<&RawValue>) -> String {
    let root: Value = schema
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or(Value::Null);
    let writer = Writer {
        root: &root,
        schemas_left: Cell::new(MOST_SCHEMAS),
    };
    let mut out = String::from("(");
    if let Some(members) = writer.members(&root, MOST_STEPS) {
        writer.write_members(&mut out, &members, OBJECT_DEPTH, MOST_STEPS);
    }
    out.push(')');
    out
}

struct Writer<'a> {
    root: &'a Value,
    schemas_left: Cell<usize>,
}

/// The properties of an object schema and the names of the required ones.
struct Members<'a> {
    properties: &'a Map<String, Value>,
    required: Option<&'a Value>,
}

impl<'a> Writer<'a> {
    /// The steps that remain inside the next schema; none if it must not be read.
    fn step(&self, steps: usize) -> Option<usize> {
        self.schemas_left
            .set(self.schemas_left.get().checked_sub(1)?);
        steps.checked_sub(1)
    }

    /// The members of an object schema, found directly or behind a reference or `allOf`.
    fn members(&self, schema: &'a Value, steps: usize) -> Option<Members<'a>> {
        let steps = self.step(steps)?;
        if let Some(Value::Object(properties)) = schema.get("properties") {
            let required = schema.get("required");
            return Some(Members {
                properties,
                required,
            });
        }
        if let Some(target) = self.referenced(schema) {
            return self.members(target, steps);
        }
        let all = schema.get("allOf")?.as_array()?;
        all.iter().find_map(|part| self.members(part, steps))
    }

    /// The schema that a local `$ref` points to. Others would have to be fetched, which we never do.
    fn referenced(&self, schema: &'a Value) -> Option<&'a Value> {
        self.root
            .pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
    }

    fn write_members(&self, out: &mut String, members: &Members<'a>, depth: usize, steps: usize) {
        let is_required = |name: &str| {
            let names = members.required.and_then(Value::as_array);
            names.is_some_and(|names| names.iter().any(|required| required == name))
        };
        for (position, (name, schema)) in members.properties.iter().enumerate() {
            if position > 0 {
                out.push_str(", ");
            }
            if position == MOST_MEMBERS || out.len() > LONGEST_LINE {
                out.push('…');
                return;
            }
            write_word(out, name);
            out.push_str(if is_required(name) { ": " } else { "?: " });
            self.write_type(out, schema, depth, steps);
        }
    }

    fn write_type(&self, out: &mut String, schema: &'a Value, depth: usize, steps: usize) {
        let Some(steps) = self.step(steps) else {
            out.push_str("any");
            return;
        };
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            write_alternatives(out, values.iter().map(literal));
        } else if let Some(value) = schema.get("const") {
            out.push_str(&literal(value));
        } else if let Some(target) = self.referenced(schema) {
            self.write_type(out, target, depth, steps);
        } else if let Some(options) = union(schema) {
            let written = options
                .iter()
                .map(|option| self.type_of(option, depth, steps));
            write_alternatives(out, written);
        } else {
            match schema.get("type") {
                Some(Value::String(kind)) => self.write_kind(out, kind, schema, depth, steps),
                Some(Value::Array(kinds)) => {
                    let kinds = kinds.iter().filter_map(Value::as_str);
                    let written = kinds.map(|kind| {
                        let mut text = String::new();
                        self.write_kind(&mut text, kind, schema, depth, steps);
                        text
                    });
                    write_alternatives(out, written);
                }
                _ => self.write_kind(out, "", schema, depth, steps),
            }
        }
    }

    fn type_of(&self, schema: &'a Value, depth: usize, steps: usize) -> String {
        let mut text = String::new();
        self.write_type(&mut text, schema, depth, steps);
        text
    }

    fn write_kind(
        &self,
        out: &mut String,
        kind: &str,
        schema: &'a Value,
        depth: usize,
        steps: usize,
    ) {
        match kind {
            "array" => self.write_array(out, schema, depth, steps),
            "object" | "" => match (self.members(schema, steps), depth.checked_sub(1)) {
                (Some(members), Some(depth)) if !members.properties.is_empty() => {
                    out.push('{');
                    self.write_members(out, &members, depth, steps);
                    out.push('}');
                }
                (Some(_), _) => out.push_str("object"),
                (None, _) => out.push_str(if kind.is_empty() { "any" } else { kind }),
            },
            _ => write_word(out, kind),
        }
    }

    fn write_array(&self, out: &mut String, schema: &'a Value, depth: usize, steps: usize) {
        let Some(items @ Value::Object(_)) = schema.get("items") else {
            out.push_str("array");
            return;
        };
        let item = self.type_of(items, depth, steps);
        let ambiguous = item.contains('|') && !item.starts_with('{');
        let (open, close) = if ambiguous { ("(", ")") } else { ("", "") };
        // Writing to a string cannot fail.
        let _ = write!(out, "{open}{item}{close}[]");
    }
}

fn union(schema: &Value) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"]
        .into_iter()
        .find_map(|key| schema.get(key)?.as_array())
}

fn literal(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::String(word) => write_word(&mut text, word),
        other => write_word(&mut text, &other.to_string()),
    }
    text
}

fn write_alternatives(out: &mut String, alternatives: impl Iterator<Item = String>) {
    let mut written: Vec<String> = Vec::new();
    for alternative in alternatives {
        if written.len() == MOST_ALTERNATIVES {
            written.push("…".to_owned());
            break;
        }
        if !written.contains(&alternative) {
            written.push(alternative);
        }
    }
    if written.is_empty() {
        out.push_str("any");
    }
    for (position, alternative) in written.iter().enumerate() {
        if position > 0 {
            out.push('|');
        }
        out.push_str(alternative);
    }
}

/// Writes a name or a value, quoted when it could be mistaken for part of the signature.
fn write_word(out: &mut String, word: &str) {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@' | '/');
    let shown = &word[..word.floor_char_boundary(LONGEST_WORD)];
    if !word.is_empty() && shown.chars().all(plain) {
        out.push_str(shown);
    } else {
        // `Debug` escapes control characters and line breaks, so the line stays one line. Writing
        // to a string cannot fail.
        let _ = write!(out, "{shown:?}");
    }
    if shown.len() < word.len() {
        out.push('…');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn of(schema: &Value) -> String {
        signature(Some(&RawValue::from_string(schema.to_string()).unwrap()))
    }

    fn of_parameter(schema: &Value) -> String {
        let text = of(&json!({"properties": {"p": schema}, "required": ["p"]}));
        text.trim_start_matches("(p: ")
            .trim_end_matches(')')
            .to_owned()
    }

    #[test]
    fn reads_like_a_function() {
        let schema = json!({
            "type": "object",
            "properties": {
                "owner": {"type": "string"},
                "repo": {"type": "string"},
                "state": {"type": "string", "enum": ["open", "closed", "all"]},
            },
            "required": ["owner", "repo"],
        });
        assert_eq!(
            of(&schema),
            "(owner: string, repo: string, state?: open|closed|all)"
        );
        assert_eq!(signature(None), "()");
        assert_eq!(of(&json!({"type": "object"})), "()");
    }

    #[test]
    fn types_of_all_kinds() {
        for (schema, expected) in [
            (json!({"type": ["string", "null"]}), "string|null"),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                "integer[]",
            ),
            (
                json!({"type": "array", "items": {"enum": ["a", "b"]}}),
                "(a|b)[]",
            ),
            (json!({"type": "array"}), "array"),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                "string|null",
            ),
            (
                json!({"oneOf": [{"type": "number"}, {"type": "number"}]}),
                "number",
            ),
            (json!({"const": "fixed"}), "fixed"),
            (json!({"enum": [1, true, null]}), "1|true|null"),
            (json!({"enum": []}), "any"),
            (json!({"description": "untyped"}), "any"),
            (json!(true), "any"),
            (json!({"type": 7}), "any"),
            (json!({"$ref": "https://elsewhere.example/schema"}), "any"),
        ] {
            assert_eq!(of_parameter(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn objects_are_shown_to_depth_two() {
        let inner = json!({"type": "object", "properties": {"z": {"type": "string"}}});
        let middle = json!({"type": "object", "properties": {"y": inner}});
        let outer = json!({"type": "object", "properties": {"x": middle}});
        assert_eq!(of_parameter(&outer), "{x?: {y?: object}}");
    }

    #[test]
    fn local_references_are_followed_and_loops_end() {
        let schema = json!({
            "$defs": {
                "point": {"type": "object", "properties": {"x": {"type": "number"}}},
                "loop": {"$ref": "#/$defs/loop"},
                "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
            },
            "properties": {
                "at": {"$ref": "#/$defs/point"},
                "loop": {"$ref": "#/$defs/loop"},
                "both": {"allOf": [{"$ref": "#/$defs/point"}]},
            },
        });
        assert_eq!(
            of(&schema),
            "(at?: {x?: number}, loop?: any, both?: {x?: number})"
        );
    }

    #[test]
    fn what_an_upstream_writes_stays_on_the_line() {
        let schema = json!({
            "properties": {"a\nb": {"type": "x): \u{1b}[31m"}, "": {"enum": ["line\nbreak"]}},
        });
        let text = of(&schema);
        assert!(!text.contains(char::is_control), "{text:?}");
    }

    #[test]
    fn a_huge_schema_has_a_short_signature() {
        let long = of(&json!({"properties": {"p": {"enum": ["x".repeat(9_000)]}}}));
        assert!(long.len() < 100, "{long}");
        let names = (0..1_000).map(|n| {
            (
                format!("p{n}"),
                json!({"enum": (0..99).collect::<Vec<_>>()}),
            )
        });
        let text = of(&json!({"properties": names.collect::<Map<_, _>>()}));
        assert!(text.len() < 3_000, "{}", text.len());
        assert!(text.ends_with("…)"));
    }

    #[test]
    fn branching_does_not_explode() {
        // Every level refers to the next one fifty times over.
        for union in ["anyOf", "allOf"] {
            let definitions = (0..20).map(|level| {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                (format!("d{level}"), json!({union: vec![next; 50]}))
            });
            let schema = json!({
                "$defs": definitions.collect::<Map<_, _>>(),
                "properties": {"p": {"$ref": "#/$defs/d0"}},
            });
            assert_eq!(of(&schema), "(p?: any)");
        }
    }

    /// JSON that is shaped like a schema often enough to reach every branch.
    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            prop::sample::select(&["object", "array", "string", "#/properties", "#", "p"][..])
                .prop_map(Value::from),
            "\\PC{0,4}".prop_map(Value::from),
        ];
        let keys = &[
            "type",
            "properties",
            "required",
            "items",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "p",
        ][..];
        leaf.prop_recursive(5, 48, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((prop::sample::select(keys), inner), 0..5).prop_map(
                    |members| {
                        Value::Object(
                            members
                                .into_iter()
                                .map(|(key, value)| (key.into(), value))
                                .collect(),
                        )
                    }
                ),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_json_has_a_one_line_signature(schema in schemas()) {
            let text = of(&schema);
            prop_assert!(text.starts_with('(') && text.ends_with(')'));
            prop_assert!(!text.contains(['\n', '\r']));
        }
    }
}
