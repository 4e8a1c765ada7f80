//! The members of a JSON object with their values left raw and their order kept.
//!
//! For the few places where a proxy has to exchange one member of an object that is not its own,
//! such as a progress token, and must leave the others as they are.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::Json;
use crate::strict_json::Name;

#[derive(Debug, Clone, Default)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

#[derive(Debug, Clone)]
enum Value<'a> {
    Theirs(&'a RawValue),
    Ours(Box<RawValue>),
}

// === impl Members ===

impl<'a> Members<'a> {
    /// Reads an object; anything else is an error.
    pub fn parse(raw: &'a RawValue) -> Result<Self, serde_json::Error> {
        serde_json::from_str(raw.get())
    }

    /// Reads an object that is known to be JSON; anything else is an error.
    pub fn of(json: &'a Json<'_>) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json.get())
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(value.as_raw())
    }

    /// The members in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(name, value)| (&**name, value.as_raw()))
    }

    /// The names in their order. One that was written with escapes is owned.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Cow<'a, str>> {
        self.0.iter().map(|(name, _)| name)
    }

    /// Exchanges the member where it stands, or adds it at the end. Afterwards there is only one
    /// of this name, even if an object was read that repeats it.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        let value = Value::Ours(value);
        match self.0.iter().position(|(key, _)| key == name) {
            Some(first) => {
                let mut index = 0;
                self.0.retain(|(key, _)| {
                    index += 1;
                    index - 1 <= first || key != name
                });
                self.0[first].1 = value;
            }
            None => self.0.push((Cow::Owned(name.to_owned()), value)),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| key != name);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn collect<'de: 'a, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut members = Vec::with_capacity(map.size_hint().unwrap_or(4));
        while let Some(name) = map.next_key_seed(Name)? {
            members.push((name, Value::Theirs(map.next_value()?)));
        }
        Ok(Self(members))
    }

    pub fn to_raw(&self) -> Result<Box<RawValue>, serde_json::Error> {
        to_raw_value(self)
    }
}

impl Value<'_> {
    fn as_raw(&self) -> &RawValue {
        match self {
            Self::Theirs(raw) => raw,
            Self::Ours(raw) => raw,
        }
    }
}

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value.as_raw())?;
        }
        map.end()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Members::collect(map)
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_member_is_exchanged_and_the_others_keep_their_bytes_and_places() {
        let raw =
            RawValue::from_string(r#"{"b": 1.0,"token":"x","a":[ 1, 2 ]}"#.to_owned()).unwrap();
        let mut members = Members::parse(&raw).unwrap();
        members.set("token", to_raw_value(&7).unwrap());
        members.set("new", to_raw_value(&true).unwrap());
        members.remove("b");
        assert_eq!(
            members.to_raw().unwrap().get(),
            r#"{"token":7,"a":[ 1, 2 ],"new":true}"#
        );
        assert_eq!(members.get("a").unwrap().get(), "[ 1, 2 ]");
    }

    #[test]
    fn a_member_that_is_exchanged_is_there_once_afterwards() {
        let raw = RawValue::from_string(r#"{"a":1,"t":1,"b":2,"\u0074":3}"#.to_owned()).unwrap();
        let mut members = Members::parse(&raw).unwrap();
        members.set("t", to_raw_value(&7).unwrap());
        assert_eq!(members.to_raw().unwrap().get(), r#"{"a":1,"t":7,"b":2}"#);
    }

    #[test]
    fn only_an_object_has_members() {
        let raw = RawValue::from_string("[1]".to_owned()).unwrap();
        assert!(Members::parse(&raw).is_err());
    }
}
