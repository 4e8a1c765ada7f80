//! Whole numbers with a meaning and a range. A number outside its range is refused with words that
//! say what the number is for.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::{Serialize, Serializer};

/// Names a note for as long as the store exists; a purged note's id is never given out again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NoteId(i64);

/// Counts the texts a note has had, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VersionNumber(i64);

/// How many entries an answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(i64);

struct WholeNumber {
    range: RangeInclusive<i64>,
    expected: &'static str,
}

impl Visitor<'_> for WholeNumber {
    type Value = i64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.expected)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<i64, E> {
        if self.range.contains(&number) {
            Ok(number)
        } else {
            Err(E::invalid_value(Unexpected::Signed(number), &self))
        }
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<i64, E> {
        match i64::try_from(number) {
            Ok(number) => self.visit_i64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
        }
    }
}

macro_rules! whole_number {
    ($name:ident, $range:expr, $expected:literal) => {
        impl $name {
            const RANGE: RangeInclusive<i64> = $range;

            /// The number, where it is one that this type can hold.
            pub(crate) fn new(number: i64) -> Option<Self> {
                Self::RANGE.contains(&number).then_some(Self(number))
            }

            pub(crate) fn get(self) -> i64 {
                self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer
                    .deserialize_i64(WholeNumber {
                        range: Self::RANGE,
                        expected: $expected,
                    })
                    .map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_i64(self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, formatter)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let mut schema = json_schema!({ "type": "integer" });
                schema.insert("minimum".into(), (*Self::RANGE.start()).into());
                if *Self::RANGE.end() != i64::MAX {
                    schema.insert("maximum".into(), (*Self::RANGE.end()).into());
                }
                schema
            }
        }
    };
}

whole_number!(
    NoteId,
    1..=i64::MAX,
    "the id of a note, a whole number from 1 up"
);
whole_number!(
    VersionNumber,
    1..=i64::MAX,
    "a version, a whole number from 1 up"
);
whole_number!(Limit, 1..=100, "a limit, a whole number from 1 to 100");

impl VersionNumber {
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(20)
    }
}
