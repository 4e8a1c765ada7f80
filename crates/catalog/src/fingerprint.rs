//! What tells one definition from another: a hash over everything it says, whatever the order of
//! its members and the space between them.

use std::fmt;
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// The SHA-256 of a definition in a canonical form, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint([u8; 32]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a fingerprint; it has 64 hexadecimal digits")]
pub struct InvalidFingerprint;

impl Fingerprint {
    pub fn of(definition: &RawValue) -> Self {
        let mut canonical = Vec::with_capacity(definition.get().len());
        match serde_json::from_str::<Node>(definition.get()) {
            Ok(node) => node.write(&mut canonical),
            // What is nested too deep to be followed is compared as it is written.
            Err(_) => canonical.extend_from_slice(definition.get().as_bytes()),
        }
        Self(Sha256::digest(&canonical).into())
    }
}

/// A value with all its members, those given twice included: a parser that takes the other one
/// must not be shown something that was never pinned.
enum Node {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(String),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Every value begins with its kind and, where it can vary, its length.
    fn write(self, out: &mut Vec<u8>) {
        let sized = |out: &mut Vec<u8>, kind: u8, length: usize| {
            out.push(kind);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        };
        match self {
            Self::Null => out.push(b'n'),
            Self::Bool(value) => out.push(if value { b't' } else { b'f' }),
            Self::Unsigned(number) => {
                out.push(b'u');
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Signed(number) => {
                out.push(b'i');
                out.extend_from_slice(&number.to_be_bytes());
            }
            Self::Float(number) => {
                out.push(b'd');
                out.extend_from_slice(&number.to_bits().to_be_bytes());
            }
            Self::Text(text) => {
                sized(out, b's', text.len());
                out.extend_from_slice(text.as_bytes());
            }
            Self::Array(elements) => {
                sized(out, b'a', elements.len());
                for element in elements {
                    element.write(out);
                }
            }
            Self::Object(mut members) => {
                sized(out, b'o', members.len());
                members.sort_by(|one, two| one.0.cmp(&two.0));
                for (name, value) in members {
                    Self::Text(name).write(out);
                    value.write(out);
                }
            }
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        NodeSeed.deserialize(deserializer)
    }
}

struct NodeSeed;

impl<'de> DeserializeSeed<'de> for NodeSeed {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Unsigned(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Signed(number))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element_seed(Self)? {
            elements.push(element);
        }
        Ok(Node::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            members.push((name, map.next_value_seed(Self)?));
        }
        Ok(Node::Object(members))
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidFingerprint);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(InvalidFingerprint);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let value = digit(pair[0])? << 4 | digit(pair[1])?;
            *byte = u8::try_from(value).map_err(|_| InvalidFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = InvalidFingerprint;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> Fingerprint {
        Fingerprint::of(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn order_and_space_do_not_count() {
        let one = of(r#"{"name":"get","inputSchema":{"a":[1,2],"b":"x"}}"#);
        let other = of(r#"{ "inputSchema": {"b": "\u0078", "a": [1, 2]}, "name": "get" }"#);
        assert_eq!(one, other);
    }

    #[test]
    fn everything_that_is_said_counts() {
        let texts = [
            r#"{"name":"get"}"#,
            r#"{"name":"get","x":null}"#,
            r#"{"name":"get","x":""}"#,
            r#"{"name":"get","x":[1,2]}"#,
            r#"{"name":"get","x":[2,1]}"#,
            r#"{"name":"get","x":[[1],2]}"#,
            r#"{"name":"get","x":1}"#,
            r#"{"name":"get","x":1.5}"#,
            r#"{"name":"get","x":-1}"#,
            r#"{"name":"get","x":"1"}"#,
            r#"{"name":"get","x":true}"#,
            r#"{"name":"get","x":{"a":1,"a":2}}"#,
            r#"{"name":"get","x":{"a":3,"a":2}}"#,
        ];
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[index + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }

    #[test]
    fn what_is_nested_without_end_has_one_all_the_same() {
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_ne!(of(&deep(100_000)), of(&deep(100_001)));
    }

    #[test]
    fn it_is_written_and_read() {
        let fingerprint = of("{}");
        let json = serde_json::to_string(&fingerprint).unwrap();
        assert_eq!(json.len(), 66);
        let again: Fingerprint = serde_json::from_str(&json).unwrap();
        assert_eq!(again, fingerprint);
        for text in ["", "ab", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(text.parse::<Fingerprint>(), Err(InvalidFingerprint));
        }
    }
}
