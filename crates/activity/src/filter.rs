//! Which records are wanted. REST, the command line and event streams all parse their filters
//! here, so that the same mistake gets the same answer everywhere.

use std::ops::RangeInclusive;

use jiff::Timestamp;
use policy::{DataSensitivity, OperationType};

use crate::id::ActivityId;
use crate::record::Record;
use crate::search::SearchText;
use crate::words::{RecordType, Source, Status, Word};

/// No identifier is higher; its time leaves the first bit free.
const LAST_ORDER: u64 = u64::MAX >> 1;

/// Every condition that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    pub record_type: Option<RecordType>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub status: Option<Status>,
    pub intent_type: Option<OperationType>,
    pub sensitivity: Option<DataSensitivity>,
    pub session_id: Option<String>,
    pub request_id: Option<String>,
    pub source: Option<Source>,
    pub client: Option<String>,
    /// Inclusive, to the millisecond.
    pub start_time: Option<Timestamp>,
    /// Inclusive, to the millisecond.
    pub end_time: Option<Timestamp>,
    pub q: Option<SearchText>,
}

/// A request that cannot be understood. The message names what would have been.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    #[error("unknown parameter '{name}'; use one of {}", known.join(", "))]
    UnknownParameter {
        name: String,
        known: Vec<&'static str>,
    },
    #[error("{name} is given more than once; give it once")]
    Repeated { name: String },
    #[error("invalid {parameter} '{value}'; use one of {}", allowed.join(", "))]
    UnknownWord {
        parameter: &'static str,
        value: String,
        allowed: Vec<&'static str>,
    },
    #[error("{parameter} is empty; give a value or leave it out")]
    Empty { parameter: &'static str },
    #[error("invalid {parameter} '{value}'; use a time like 2026-01-31T12:00:00Z")]
    Time {
        parameter: &'static str,
        value: String,
    },
    #[error("start_time is after end_time")]
    TimesReversed,
    #[error("invalid {parameter} '{value}'; use a whole number from {least} to {most}")]
    Number {
        parameter: &'static str,
        value: String,
        least: u64,
        most: u64,
    },
    #[error("invalid cursor; use next_cursor of the page before, as it is")]
    Cursor,
    #[error("cursor and offset are two ways to say where to begin; give one of them")]
    CursorAndOffset,
    #[error("invalid q '{value}'; use up to {most} words, each with a letter or a digit")]
    SearchText { value: String, most: usize },
}

impl Filter {
    pub const PARAMETERS: [&'static str; 13] = [
        "type",
        "server",
        "tool",
        "status",
        "intent_type",
        "sensitivity",
        "session_id",
        "request_id",
        "source",
        "client",
        "start_time",
        "end_time",
        "q",
    ];

    /// Parses name and value pairs; any other name is an error.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, FilterError> {
        let mut filter = Self::default();
        for (name, value) in pairs {
            if !filter.set(name, value)? {
                let (name, known) = (name.to_owned(), Self::PARAMETERS.to_vec());
                return Err(FilterError::UnknownParameter { name, known });
            }
        }
        filter.check()?;
        Ok(filter)
    }

    /// Sets one condition; false if there is none of that name.
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<bool, FilterError> {
        match name {
            "type" => self.record_type = Some(word("type", value)?),
            "server" => self.server = Some(text("server", value)?),
            "tool" => self.tool = Some(text("tool", value)?),
            "status" => self.status = Some(word("status", value)?),
            "intent_type" => self.intent_type = Some(word("intent_type", value)?),
            "sensitivity" => self.sensitivity = Some(word("sensitivity", value)?),
            "session_id" => self.session_id = Some(text("session_id", value)?),
            "request_id" => self.request_id = Some(text("request_id", value)?),
            "source" => self.source = Some(word("source", value)?),
            "client" => self.client = Some(text("client", value)?),
            "start_time" => self.start_time = Some(time("start_time", value)?),
            "end_time" => self.end_time = Some(time("end_time", value)?),
            "q" => self.q = Some(SearchText::parse(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks what concerns more than one condition.
    pub(crate) fn check(&self) -> Result<(), FilterError> {
        match (self.start_time, self.end_time) {
            (Some(start), Some(end)) if start > end => Err(FilterError::TimesReversed),
            _ => Ok(()),
        }
    }

    /// Whether the record is wanted; the same answer as a store gives.
    pub fn matches(&self, record: &Record) -> bool {
        self.matches_fields(record) && self.q.as_ref().is_none_or(|q| q.matches(record))
    }

    /// Whether the record is wanted as far as can be told without its words.
    pub(crate) fn matches_fields(&self, record: &Record) -> bool {
        fn is<T: PartialEq>(wanted: Option<&T>, actual: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == actual)
        }
        fn has<T: PartialEq + Copy>(wanted: Option<T>, actual: Option<T>) -> bool {
            wanted.is_none() || wanted == actual
        }
        let intent = record.metadata.intent.as_ref();
        is(self.record_type.as_ref(), &record.record_type)
            && is(self.status.as_ref(), &record.status)
            && is(self.source.as_ref(), &record.source)
            && has(self.server.as_deref(), record.server_name.as_deref())
            && has(self.tool.as_deref(), record.tool_name.as_deref())
            && has(self.client.as_deref(), record.client_name.as_deref())
            && has(self.session_id.as_deref(), record.session_id.as_deref())
            && has(self.request_id.as_deref(), record.request_id.as_deref())
            && has(
                self.intent_type,
                intent.and_then(|intent| intent.operation_type),
            )
            && has(
                self.sensitivity,
                intent.and_then(|intent| intent.data_sensitivity),
            )
            && self.orders().contains(&record.id.order())
    }

    /// The identifiers that its times allow, by their upper halves.
    pub(crate) fn orders(&self) -> RangeInclusive<u64> {
        let first = self.start_time.map_or(0, ActivityId::first_order_at);
        let last = self.end_time.map_or(LAST_ORDER, ActivityId::last_order_at);
        first..=last
    }

    /// Whether every record of its times is wanted.
    pub(crate) fn is_only_a_time(&self) -> bool {
        let times = Self {
            start_time: self.start_time,
            end_time: self.end_time,
            ..Self::default()
        };
        *self == times
    }
}

fn word<W: Word>(parameter: &'static str, value: &str) -> Result<W, FilterError> {
    W::parse(value).ok_or_else(|| FilterError::UnknownWord {
        parameter,
        value: value.to_owned(),
        allowed: W::ALL.iter().map(|word| word.as_str()).collect(),
    })
}

fn text(parameter: &'static str, value: &str) -> Result<String, FilterError> {
    if value.is_empty() {
        Err(FilterError::Empty { parameter })
    } else {
        Ok(value.to_owned())
    }
}

fn time(parameter: &'static str, value: &str) -> Result<Timestamp, FilterError> {
    value.parse().map_err(|_| FilterError::Time {
        parameter,
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(name: &str, value: &str) -> String {
        Filter::from_pairs([(name, value)]).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_value_is_answered_with_the_good_ones() {
        assert_eq!(
            message("status", "failed"),
            "invalid status 'failed'; use one of pending, success, error, blocked, cancelled, \
             interrupted"
        );
        assert_eq!(
            message("intent_type", "delete"),
            "invalid intent_type 'delete'; use one of read, write, destructive"
        );
        assert_eq!(
            message("start_time", "yesterday"),
            "invalid start_time 'yesterday'; use a time like 2026-01-31T12:00:00Z"
        );
        assert!(message("stat", "x").starts_with("unknown parameter 'stat'; use one of type, "));
        assert!(message("server", "").starts_with("server is empty"));
        for name in ["type", "sensitivity", "source"] {
            assert!(message(name, "nonsense").contains("use one of"), "{name}");
        }
    }

    #[test]
    fn every_documented_parameter_is_understood() {
        for name in Filter::PARAMETERS {
            let value = match name {
                "type" => "tool_call",
                "status" => "success",
                "intent_type" => "read",
                "sensitivity" => "public",
                "source" => "cli",
                "start_time" | "end_time" => "2026-01-31T12:00:00Z",
                _ => "text",
            };
            let filter = Filter::from_pairs([(name, value)]).unwrap();
            assert_ne!(filter, Filter::default(), "{name}");
        }
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_a_mistake() {
        let pairs = [
            ("start_time", "2026-02-01T00:00:00Z"),
            ("end_time", "2026-01-01T00:00:00Z"),
        ];
        assert_eq!(Filter::from_pairs(pairs), Err(FilterError::TimesReversed));
    }
}
