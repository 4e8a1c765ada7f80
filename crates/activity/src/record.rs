//! One record per thing that happened: how a caller reports it, and how it is read back.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use policy::{DataSensitivity, OperationType, Provenance, Tier, ToolVariant};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::facts::Facts;
use crate::id::ActivityId;
use crate::payload::{Payload, SealedPayload};
use crate::words::{RecordType, Source, Status};

/// A record as it is listed, shown and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    #[schema(value_type = String)]
    pub id: ActivityId,
    #[serde(rename = "type")]
    pub record_type: RecordType,
    pub source: Source,
    #[schema(value_type = Option<String>)]
    pub server_name: Option<Arc<str>>,
    #[schema(value_type = Option<String>)]
    pub tool_name: Option<Arc<str>>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub arguments: Option<Payload>,
    #[schema(value_type = Option<serde_json::Value>)]
    pub response: Option<Payload>,
    pub response_truncated: bool,
    /// Only the beginning of the arguments is kept; `request_bytes` tells how large the request was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arguments_truncated: bool,
    /// There were arguments, but only their fingerprint and size are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub arguments_not_kept: bool,
    /// There was a response, but only its fingerprint and size are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub response_not_kept: bool,
    pub status: Status,
    #[schema(value_type = Option<String>)]
    pub error_code: Option<Arc<str>>,
    #[schema(value_type = Option<String>)]
    pub error_message: Option<Arc<str>>,
    /// Nothing for what has not ended, or was interrupted and ended nobody knows when.
    pub duration_ms: Option<u64>,
    #[serde(with = "milliseconds")]
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    #[schema(value_type = Option<String>)]
    pub session_id: Option<Arc<str>>,
    #[schema(value_type = Option<String>)]
    pub client_name: Option<Arc<str>>,
    #[schema(value_type = Option<String>)]
    pub request_id: Option<Arc<str>>,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub metadata: Metadata,
}

/// What was declared and what was known about the tool when the call was decided.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Metadata {
    pub intent: Option<RecordedIntent>,
    pub tool_variant: Option<ToolVariant>,
    pub effective_tier: Option<Tier>,
    pub provenance: Option<Provenance>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What a decided call was decided upon; records of other things have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub facts: Option<Facts>,
}

/// The intent as far as it could be understood; a refused call may have declared less than a
/// whole one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedIntent {
    pub operation_type: Option<OperationType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_sensitivity: Option<DataSensitivity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What is known when something begins.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    pub record_type: RecordType,
    pub source: Source,
    pub server_name: Option<&'a str>,
    pub tool_name: Option<&'a str>,
    /// JSON text; for changes of servers and config, what changed.
    pub arguments: Option<&'a str>,
    /// The size of the request as it arrived.
    pub request_bytes: u64,
    pub session_id: Option<&'a str>,
    pub client_name: Option<&'a str>,
    pub request_id: Option<&'a str>,
    pub metadata: Metadata,
}

/// What is known when it has ended.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    pub outcome: Outcome<'a>,
    pub duration: Duration,
    /// JSON text.
    pub response: Option<&'a str>,
    /// The size of the response as it arrived, before any cut.
    pub response_bytes: u64,
}

/// The ways in which something can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'a> {
    Success,
    Error { code: &'a str, message: &'a str },
    Blocked { code: &'a str, message: &'a str },
    Cancelled { message: &'a str },
    Interrupted { message: &'a str },
}

/// The first half of a record as a store keeps it: owned, redacted, with its identifier.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Started {
    pub id: ActivityId,
    pub record_type: RecordType,
    pub source: Source,
    pub server_name: Option<Arc<str>>,
    pub tool_name: Option<Arc<str>>,
    pub session_id: Option<Arc<str>>,
    pub client_name: Option<Arc<str>>,
    pub request_id: Option<Arc<str>>,
    pub request_bytes: u64,
    pub metadata: Metadata,
    pub arguments: Option<SealedPayload>,
}

/// The second half of a record as a store keeps it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Ended {
    pub status: Status,
    pub error_code: Option<Arc<str>>,
    pub error_message: Option<Arc<str>>,
    pub duration_ms: u64,
    pub response_bytes: u64,
    pub response: Option<SealedPayload>,
}

impl Start<'_> {
    /// Something of this type, with nothing else known yet.
    pub fn new(record_type: RecordType, source: Source) -> Self {
        Self {
            record_type,
            source,
            server_name: None,
            tool_name: None,
            arguments: None,
            request_bytes: 0,
            session_id: None,
            client_name: None,
            request_id: None,
            metadata: Metadata::default(),
        }
    }
}

impl<'a> End<'a> {
    /// An end without a response.
    pub fn new(outcome: Outcome<'a>, duration: Duration) -> Self {
        Self {
            outcome,
            duration,
            response: None,
            response_bytes: 0,
        }
    }
}

impl<'a> Outcome<'a> {
    pub fn status(self) -> Status {
        match self {
            Self::Success => Status::Success,
            Self::Error { .. } => Status::Error,
            Self::Blocked { .. } => Status::Blocked,
            Self::Cancelled { .. } => Status::Cancelled,
            Self::Interrupted { .. } => Status::Interrupted,
        }
    }

    pub(crate) fn code(self) -> Option<&'a str> {
        match self {
            Self::Error { code, .. } | Self::Blocked { code, .. } => Some(code),
            Self::Success | Self::Cancelled { .. } | Self::Interrupted { .. } => None,
        }
    }

    pub(crate) fn message(self) -> Option<&'a str> {
        match self {
            Self::Success => None,
            Self::Error { message, .. }
            | Self::Blocked { message, .. }
            | Self::Cancelled { message }
            | Self::Interrupted { message } => Some(message),
        }
    }
}

impl Started {
    /// The size of its texts, its arguments apart.
    pub(crate) fn text_bytes(&self) -> usize {
        let names = [
            &self.server_name,
            &self.tool_name,
            &self.session_id,
            &self.client_name,
            &self.request_id,
        ];
        let intent = self.metadata.intent.as_ref();
        let reason = intent.and_then(|intent| intent.reason.as_ref());
        let names = names.into_iter().flatten().map(|name| name.len());
        let texts = reason.into_iter().chain(&self.metadata.warnings);
        names.sum::<usize>() + texts.map(String::len).sum::<usize>()
    }
}

impl Ended {
    /// The size of its texts, its response apart.
    pub(crate) fn text_bytes(&self) -> usize {
        let texts = [&self.error_code, &self.error_message];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }

    /// The end that is given to what was running when the process died.
    pub(crate) fn interrupted() -> Self {
        Self {
            status: Status::Interrupted,
            error_code: None,
            error_message: Some("mcpproxy stopped before this ended".into()),
            duration_ms: 0,
            response_bytes: 0,
            response: None,
        }
    }
}

impl Record {
    /// Both halves as one record; without the second it is pending.
    pub fn from_halves(started: &Started, ended: Option<&Ended>) -> Self {
        let text = |sealed: &Option<SealedPayload>| sealed.as_ref()?.text.clone();
        let cut = |sealed: Option<&SealedPayload>| sealed.is_some_and(|sealed| sealed.truncated);
        let dropped =
            |sealed: &Option<SealedPayload>| sealed.as_ref().is_some_and(|sealed| !sealed.kept);
        Self {
            id: started.id,
            record_type: started.record_type,
            source: started.source,
            server_name: started.server_name.clone(),
            tool_name: started.tool_name.clone(),
            arguments: text(&started.arguments),
            response: ended.and_then(|ended| text(&ended.response)),
            response_truncated: cut(ended.and_then(|ended| ended.response.as_ref())),
            arguments_truncated: cut(started.arguments.as_ref()),
            arguments_not_kept: dropped(&started.arguments),
            response_not_kept: ended.is_some_and(|ended| dropped(&ended.response)),
            status: ended.map_or(Status::Pending, |ended| ended.status),
            error_code: ended.and_then(|ended| ended.error_code.clone()),
            error_message: ended.and_then(|ended| ended.error_message.clone()),
            duration_ms: ended
                .filter(|ended| ended.status != Status::Interrupted)
                .map(|ended| ended.duration_ms),
            timestamp: started.id.timestamp(),
            session_id: started.session_id.clone(),
            client_name: started.client_name.clone(),
            request_id: started.request_id.clone(),
            request_bytes: started.request_bytes,
            response_bytes: ended.map_or(0, |ended| ended.response_bytes),
            metadata: started.metadata.clone(),
        }
    }
}

/// Timestamps always carry three digits of a second, so that they sort as text.
mod milliseconds {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        timestamp: &Timestamp,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{timestamp:.3}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(deserializer)
    }
}
