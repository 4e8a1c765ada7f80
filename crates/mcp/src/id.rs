//! Request ids and progress tokens: opaque values that a peer chose and must get back unchanged.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The id of a JSON-RPC request.
///
/// A number keeps the text it arrived as, because `1` and `1.0` are the same number but not the
/// same bytes, and a peer may compare bytes. A string is kept decoded, because a peer may escape
/// it differently when it echoes it. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    Number(Arc<str>),
    String(Arc<str>),
}

/// The token a requester put into `_meta.progressToken`; the same shapes as a request id.
pub type ProgressToken = RequestId;

impl RequestId {
    /// Appends the id as JSON.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(text) => out.extend_from_slice(text.as_bytes()),
            Self::String(text) => encode_string(text, out),
        }
    }

    /// The number, if this is an integer that fits; how our own ids are recognised again.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(text) => text.parse().ok(),
            Self::String(_) => None,
        }
    }

    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        let text = raw.get();
        match text.as_bytes().first()? {
            b'"' => serde_json::from_str::<String>(text)
                .ok()
                .map(|decoded| Self::String(decoded.into())),
            b'-' | b'0'..=b'9' => Some(Self::Number(text.into())),
            _ => None,
        }
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) | Self::String(text) => formatter.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_raw(&raw).ok_or_else(|| de::Error::custom("expected a string or a number"))
    }
}

impl serde::Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::new();
        self.encode_into(&mut bytes);
        let text = String::from_utf8(bytes).map_err(serde::ser::Error::custom)?;
        RawValue::from_string(text)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn encode_string(text: &str, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail, and a str is always serialisable.
    let _ = serde_json::to_writer(out, text);
}
