//! A point in time, to the millisecond that the store keeps.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    pub(crate) fn now() -> Self {
        let now = Timestamp::now();
        // The clock reads finer than the store keeps; a note must not change by being stored.
        Self::from_milliseconds(now.as_millisecond()).unwrap_or(Self(now))
    }

    pub(crate) fn from_milliseconds(milliseconds: i64) -> Result<Self, jiff::Error> {
        Timestamp::from_millisecond(milliseconds).map(Self)
    }

    pub(crate) fn as_milliseconds(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0.strftime("%Y-%m-%d %H:%M UTC"))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let timestamp = Timestamp::deserialize(deserializer)?;
        Self::from_milliseconds(timestamp.as_millisecond()).map_err(de::Error::custom)
    }
}

impl JsonSchema for Moment {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}
