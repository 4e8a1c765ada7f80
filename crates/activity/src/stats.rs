//! Sums over many records: what happened in a period, and how tools are used.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::filter::FilterError;
use crate::words::{Status, Word, words};

words! {
    /// How far back a sum reaches.
    Period {
        Hour = "1h",
        Day = "24h",
        Week = "7d",
        Month = "30d",
    }
}

words! {
    /// What a sum is divided by.
    GroupBy {
        Server = "server",
        Tool = "tool",
        Status = "status",
        IntentType = "intent_type",
        Client = "client",
        Hour = "hour",
    }
}

/// Calls and refusals of a period that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    pub period: Period,
    pub group_by: GroupBy,
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    pub until: Timestamp,
    pub total: Counts,
    /// Largest first; by hour, oldest first.
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// `server:tool` when grouped by tool; nothing for records without a value.
    pub key: Option<String>,
    #[serde(flatten)]
    pub counts: Counts,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    pub records: u64,
    pub success: u64,
    pub error: u64,
    pub blocked: u64,
    pub cancelled: u64,
    pub interrupted: u64,
    /// Of those that ran to an end: success, error and cancelled.
    pub duration_ms: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

/// How the tools were used, most used first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    pub period: Period,
    #[schema(value_type = String, format = DateTime)]
    pub since: Timestamp,
    pub tools: Vec<ToolUsage>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ToolUsage {
    pub server_name: Option<String>,
    pub tool_name: Option<String>,
    /// Those that were sent; what was refused counts in none of these numbers.
    pub calls: u64,
    pub errors: u64,
    /// Never too low, and at most an eighth too high.
    pub p95_duration_ms: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

impl Period {
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse_word("period", text)
    }

    pub fn length(self) -> SignedDuration {
        SignedDuration::from_hours(match self {
            Self::Hour => 1,
            Self::Day => 24,
            Self::Week => 7 * 24,
            Self::Month => 30 * 24,
        })
    }

    pub(crate) fn since(self, now: Timestamp) -> Timestamp {
        now.checked_sub(self.length()).unwrap_or(Timestamp::MIN)
    }
}

impl GroupBy {
    /// `intent` is accepted for `intent_type`, as the command line calls it.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse_word(
            "group_by",
            if text == "intent" {
                "intent_type"
            } else {
                text
            },
        )
    }
}

fn parse_word<W: Word>(parameter: &'static str, text: &str) -> Result<W, FilterError> {
    W::parse(text).ok_or_else(|| FilterError::UnknownWord {
        parameter,
        value: text.to_owned(),
        allowed: W::ALL.iter().map(|word| word.as_str()).collect(),
    })
}

impl Counts {
    /// Adds so many records that ended with this status.
    pub(crate) fn add(&mut self, status: Status, records: u64) {
        self.records += records;
        match status {
            Status::Pending => {}
            Status::Success => self.success += records,
            Status::Error => self.error += records,
            Status::Blocked => self.blocked += records,
            Status::Cancelled => self.cancelled += records,
            Status::Interrupted => self.interrupted += records,
        }
    }
}

/// The bucket of a histogram into which a duration falls. Eight buckets per doubling keep the
/// error under an eighth while all durations of a century fit into some 330 buckets.
pub(crate) fn duration_bucket(duration_ms: u64) -> u64 {
    if duration_ms < 8 {
        return duration_ms;
    }
    let doublings = u64::from(duration_ms.ilog2()) - 3;
    (doublings * 8) + (duration_ms >> doublings)
}

/// The longest duration that falls into the bucket.
pub(crate) fn longest_in_bucket(bucket: u64) -> u64 {
    if bucket < 8 {
        return bucket;
    }
    let doublings = ((bucket - 8) / 8).min(60);
    let step = (bucket - 8) % 8 + 8;
    ((u128::from(step) + 1) << doublings)
        .saturating_sub(1)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_parsed_with_the_allowed_ones_named() {
        assert_eq!(Period::parse("7d"), Ok(Period::Week));
        assert_eq!(GroupBy::parse("intent"), Ok(GroupBy::IntentType));
        assert_eq!(
            Period::parse("1y").unwrap_err().to_string(),
            "invalid period '1y'; use one of 1h, 24h, 7d, 30d"
        );
    }

    proptest! {
        #[test]
        fn a_bucket_is_never_too_low_and_at_most_an_eighth_too_high(duration in 0_u64..1 << 50) {
            let longest = longest_in_bucket(duration_bucket(duration));
            prop_assert!(longest >= duration);
            prop_assert!(longest - duration <= duration / 8);
            prop_assert!(duration_bucket(duration) <= duration_bucket(duration + 1));
        }
    }
}
