//! One value of the document, not yet parsed further than its edges.

use std::collections::HashMap;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{JsonPath, Position};
use crate::fault::{Fault, Problem};

/// A value with its place in the document.
#[derive(Clone)]
pub(crate) struct Node<'a> {
    document: &'a str,
    raw: &'a RawValue,
    path: JsonPath,
}

/// A key of an object and what it holds.
pub(crate) struct Member<'a> {
    pub(crate) key: String,
    pub(crate) position: Position,
    pub(crate) value: Node<'a>,
}

/// What sort of JSON a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    Boolean,
    Number,
    String,
    Array,
    Object,
}

impl<'a> Node<'a> {
    /// The root of a document that is known to be JSON without duplicate keys from here on.
    pub(crate) fn parse(document: &'a str) -> Result<Self, Fault> {
        let syntax = |error: serde_json::Error| {
            let position = Position::of_error(document, &error);
            Fault::new(JsonPath::default(), position, Problem::Syntax(error))
        };
        // Once as a `Value`, because that bounds the depth, on which the recursion below relies.
        let _: serde_json::Value = serde_json::from_str(document).map_err(syntax)?;
        let root = Self {
            document,
            raw: serde_json::from_str(document).map_err(syntax)?,
            path: JsonPath::default(),
        };
        root.refuse_duplicates()?;
        Ok(root)
    }

    fn refuse_duplicates(&self) -> Result<(), Fault> {
        match self.kind() {
            Kind::Object => {
                let mut seen: HashMap<String, Position> = HashMap::new();
                for member in self.members()? {
                    member.value.refuse_duplicates()?;
                    if let Some(first) = seen.insert(member.key, member.position) {
                        let problem = Problem::DuplicateKey { first };
                        return Err(Fault::new(member.value.path, member.position, problem));
                    }
                }
                Ok(())
            }
            Kind::Array => self
                .elements()?
                .iter()
                .try_for_each(Self::refuse_duplicates),
            Kind::Null | Kind::Boolean | Kind::Number | Kind::String => Ok(()),
        }
    }

    pub(crate) fn path(&self) -> &JsonPath {
        &self.path
    }

    pub(crate) fn position(&self) -> Position {
        position_of(self.document, self.raw.get())
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.raw.get().as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// The value as it stands in the document.
    pub(crate) fn text(&self) -> &'a str {
        self.raw.get()
    }

    /// What is wrong with this value.
    pub(crate) fn fault(&self, problem: impl Into<Problem>) -> Fault {
        Fault::new(self.path.clone(), self.position(), problem.into())
    }

    fn wrong_kind(&self, expected: &'static str) -> Fault {
        self.fault(Problem::WrongKind {
            expected,
            found: self.kind(),
        })
    }

    fn read<T: DeserializeOwned>(&self, expected: &'static str) -> Result<T, Fault> {
        serde_json::from_str(self.raw.get()).map_err(|_| self.wrong_kind(expected))
    }

    pub(crate) fn string(&self) -> Result<String, Fault> {
        self.read("a string")
    }

    pub(crate) fn boolean(&self) -> Result<bool, Fault> {
        self.read("true or false")
    }

    pub(crate) fn whole_number(&self) -> Result<u64, Fault> {
        if self.kind() != Kind::Number {
            return Err(self.wrong_kind("a whole number"));
        }
        let text = self.raw.get();
        // `5.0` is a whole number, too, for JSON and for programs that know only one kind.
        let whole = match text.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole,
            _ => text,
        };
        serde_json::from_str(whole).map_err(|_| {
            self.fault(Problem::NotWhole {
                found: text.to_owned(),
            })
        })
    }

    pub(crate) fn elements(&self) -> Result<Vec<Self>, Fault> {
        let raw: Vec<&'a RawValue> =
            serde_json::from_str(self.raw.get()).map_err(|_| self.wrong_kind("an array"))?;
        Ok(raw
            .into_iter()
            .enumerate()
            .map(|(index, raw)| Self {
                document: self.document,
                raw,
                path: self.path.index(index),
            })
            .collect())
    }

    pub(crate) fn members(&self) -> Result<Vec<Member<'a>>, Fault> {
        serde_json::Deserializer::from_str(self.raw.get())
            .deserialize_map(RawMembers)
            .map_err(|_| self.wrong_kind("an object"))?
            .into_iter()
            .map(|(raw_key, raw)| {
                let key: String = serde_json::from_str(raw_key.get())
                    .map_err(|_| self.wrong_kind("an object"))?;
                Ok(Member {
                    position: position_of(self.document, raw_key.get()),
                    value: Self {
                        document: self.document,
                        raw,
                        path: self.path.key(&key),
                    },
                    key,
                })
            })
            .collect()
    }
}

/// Raw values borrow from the document, so the distance of the two pointers is the offset.
fn position_of(document: &str, part: &str) -> Position {
    let offset = (part.as_ptr() as usize).saturating_sub(document.as_ptr() as usize);
    Position::of_offset(document, offset)
}

/// Collects the members of an object as they stand, duplicates and all.
struct RawMembers;

impl<'de> Visitor<'de> for RawMembers {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}
