//! A walk through an input schema: parameter names, the choices they allow, and prose.
//!
//! Read straight from the text: a schema is often longer than everything else about a tool, and
//! building a value of it would cost more than judging it.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Nesting beyond which nothing is looked for.
const MAX_DEPTH: u8 = 32;

/// Something in a schema that can tell about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item<'i> {
    Parameter(&'i str),
    Choice {
        parameter: &'i str,
        value: &'i str,
    },
    /// Any other text: descriptions, titles, defaults, examples.
    Text(&'i str),
}

/// Calls `visit` with every item in the order of the text.
///
/// A schema that is nested too deeply is read as far as it goes: what was found is still true,
/// and the rest is not ours to judge.
pub(crate) fn walk(schema: &RawValue, mut visit: impl FnMut(Item<'_>)) {
    let mut deserializer = serde_json::Deserializer::from_str(schema.get());
    let walk = Walk {
        visit: &mut visit,
        place: Place::Schema(None),
        depth: 0,
    };
    drop(walk.deserialize(&mut deserializer));
}

/// Where in a schema a value stands.
#[derive(Clone, Copy)]
enum Place<'p> {
    /// A schema, of the parameter if it is of one.
    Schema(Option<&'p str>),
    /// The value of `properties`.
    Properties,
    /// The value of `enum` or `const` of a parameter.
    Choices(&'p str),
    /// Anything else.
    Prose,
}

struct Walk<'w, F> {
    visit: &'w mut F,
    place: Place<'w>,
    depth: u8,
}

impl Place<'_> {
    /// Where the member `key` of an object in this place stands.
    fn member<'k>(&'k self, key: &'k str) -> Place<'k> {
        match (self, key) {
            (Self::Schema(_), "properties") => Place::Properties,
            (Self::Schema(Some(parameter)), "enum" | "const") => Place::Choices(parameter),
            (Self::Schema(parameter), "anyOf" | "oneOf" | "allOf" | "items") => {
                Place::Schema(*parameter)
            }
            (Self::Properties, parameter) => Place::Schema(Some(parameter)),
            _ => Place::Prose,
        }
    }
}

impl<'de, F: FnMut(Item<'_>)> DeserializeSeed<'de> for Walk<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            return IgnoredAny::deserialize(deserializer).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Item<'_>)> Visitor<'de> for Walk<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a schema")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(key) = members.next_key_seed(Key)? {
            if matches!(self.place, Place::Properties) {
                (self.visit)(Item::Parameter(&key));
            }
            members.next_value_seed(Walk {
                visit: self.visit,
                place: self.place.member(&key),
                depth: self.depth + 1,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(()) = elements.next_element_seed(Walk {
            visit: self.visit,
            place: self.place,
            depth: self.depth + 1,
        })? {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.visit)(match self.place {
            Place::Choices(parameter) => Item::Choice {
                parameter,
                value: text,
            },
            Place::Schema(_) | Place::Properties | Place::Prose => Item::Text(text),
        });
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Borrows a key from the text where it has no escapes; a plain `Cow` would always copy.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(schema: &str) -> Vec<String> {
        let schema = RawValue::from_string(schema.to_owned()).unwrap();
        let mut found = Vec::new();
        walk(&schema, |item| found.push(format!("{item:?}")));
        found
    }

    #[test]
    fn parameters_choices_and_prose_are_told_apart() {
        let found = items(
            r#"{"type": "object", "properties": {
                "action": {"description": "What", "enum": ["get", "delete", 3]},
                "p\u0061th": {"anyOf": [{"const": "here"}, {"type": "null"}]}}}"#,
        );
        for expected in [
            r#"Parameter("action")"#,
            r#"Text("What")"#,
            r#"Choice { parameter: "action", value: "delete" }"#,
            r#"Parameter("path")"#,
            r#"Choice { parameter: "path", value: "here" }"#,
        ] {
            assert!(
                found.iter().any(|item| item == expected),
                "{expected}: {found:?}"
            );
        }
    }

    #[test]
    fn schemas_of_elements_and_alternatives_are_looked_into() {
        let found = items(
            r#"{"oneOf": [{"properties": {"edits": {"items": {"properties": {"op": {"const": "rm"}}}}}}]}"#,
        );
        assert!(found.contains(&r#"Choice { parameter: "op", value: "rm" }"#.to_owned()));
    }

    #[test]
    fn odd_schemas_are_read_as_far_as_they_make_sense() {
        assert!(items("true").is_empty());
        assert!(items(r#"{"properties": [1, null, 2.5, -3]}"#).is_empty());
        let deep = format!("{}1{}", r#"{"items":"#.repeat(100), "}".repeat(100));
        assert!(items(&deep).is_empty());
    }
}
