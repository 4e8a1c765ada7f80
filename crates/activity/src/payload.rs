//! Arguments and responses: JSON text that is kept as it was, or the beginning of it.

use std::fmt;
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::chain::Hash;

/// JSON text. What was cut is no longer JSON and is shown as a string.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Arc<str>);

/// A payload ready to be stored: redacted, cut and fingerprinted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SealedPayload {
    /// Of the text after redaction and cutting, so that it says nothing about what was removed.
    pub digest: Hash,
    pub truncated: bool,
    /// Nothing when only the fingerprint is to be kept. Stored apart from everything else.
    #[serde(skip)]
    pub text: Option<Payload>,
    /// Whether the store holds the text; part of what the hash chain protects.
    pub kept: bool,
}

impl Payload {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(raw) => raw.serialize(serializer).map_err(S::Error::custom),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self::new(raw.get()))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Payload({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_passes_byte_for_byte_and_what_was_cut_becomes_a_string() {
        let whole = Payload::new(r#"{ "n":1.50,"n2":1e3 }"#);
        assert_eq!(serde_json::to_string(&whole).unwrap(), whole.as_str());
        let cut = Payload::new(r#"{"text": "abc"#);
        assert_eq!(
            serde_json::to_string(&cut).unwrap(),
            r#""{\"text\": \"abc""#
        );
    }

    #[test]
    fn debug_output_never_shows_a_body() {
        assert_eq!(
            format!("{:?}", Payload::new("\"hunter2\"")),
            "Payload(9 bytes)"
        );
    }
}
