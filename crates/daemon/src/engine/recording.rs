//! What the log keeps of a call.

use std::time::Duration;

use activity::{
    Durability, End, Facts, Metadata, Missed, OpenRecord, Outcome, RecordType, RecordedIntent,
    Source, Start, StoreError,
};
use config::Payloads;
use mcp::{Json, RawValue};
use memchr::memmem;
use policy::{Code, Decision, DeclaredIntent, Refusal, ToolVariant};
use serde::Deserialize;

use super::flood::Cause;
use super::{CallRequest, Engine};

/// Characters of an upstream's error text that stand in the record's message; all of it is in the
/// response.
const MESSAGE_LENGTH: usize = 300;

/// Stands for what an upstream said where nothing that it says is to be kept.
const TEXT_NOT_KEPT: &str = "the tool answered with an error, whose text is not kept";

/// On whose behalf a call is made, for the log.
#[derive(Debug, Clone)]
pub struct Caller<'a> {
    pub source: Source,
    pub session_id: Option<&'a str>,
    pub client_name: Option<&'a str>,
    pub request_id: Option<String>,
}

/// A decision, and what it was made upon.
#[derive(Debug)]
pub(super) struct Decided {
    pub decision: Decision,
    pub facts: Facts,
}

#[derive(Deserialize)]
struct TextContent {
    text: String,
}

/// What is known of a call before it is sent or refused.
pub(super) fn log_entry<'a>(
    request: &'a CallRequest<'_>,
    caller: &'a Caller<'_>,
    decided: Option<&Decided>,
    variant: Option<ToolVariant>,
) -> Start<'a> {
    let decision = decided.map(|decided| &decided.decision);
    let asked = request.asked();
    let (server_name, tool_name) = match asked.name.split_once(':') {
        Some((server, tool)) => (Some(server), Some(tool)),
        None => (
            None,
            Some(asked.name.as_str()).filter(|name| !name.is_empty()),
        ),
    };
    let effective = decision.map(|decision| decision.effective);
    let warning = decision
        .and_then(Decision::warning)
        .map(ToString::to_string);
    Start {
        server_name,
        tool_name,
        arguments: asked.arguments.as_ref().map(Json::get),
        request_bytes: asked.bytes as u64,
        session_id: caller.session_id,
        client_name: caller.client_name,
        request_id: caller.request_id.as_deref(),
        metadata: Metadata {
            intent: recorded_intent(asked.intent.as_ref(), decision),
            tool_variant: variant,
            effective_tier: effective.and_then(policy::EffectiveTier::tier),
            provenance: effective.map(policy::EffectiveTier::provenance),
            warnings: warning.into_iter().collect(),
            facts: decided.map(|decided| decided.facts),
        },
        ..Start::new(RecordType::ToolCall, caller.source)
    }
}

impl Engine {
    /// Records a call that was not sent.
    pub(super) async fn record_refusal(&self, entry: Start<'_>, refusal: &Refusal, took: Duration) {
        let (code, message) = (refusal.code.as_str(), refusal.message.as_str());
        let cause = Cause::Client(entry.client_name.map(Into::into));
        if !self.flood.admits(cause, code, &self.activity) {
            return;
        }
        let (record_type, outcome) = match kind_of(refusal.code) {
            Kind::Policy => (
                RecordType::PolicyDecision,
                Outcome::Blocked { code, message },
            ),
            Kind::Request => (RecordType::ToolCall, Outcome::Blocked { code, message }),
            Kind::Upstream => (RecordType::ToolCall, Outcome::Error { code, message }),
            Kind::Stop => (RecordType::ToolCall, Outcome::Interrupted { message }),
        };
        let start = Start {
            record_type,
            ..entry
        };
        let stored = self
            .activity
            .record(start, End::new(outcome, took), Durability::Written);
        if let Err(error) = stored.await {
            self.activity.missed(Missed::Refusal);
            tracing::error!(%error, code, "a refused call is not recorded");
        }
    }

    /// Records that a call is about to be sent. What changes anything is not sent without a record
    /// on the disk; a read goes on, and says that it was not recorded.
    pub(super) async fn record_start(
        &self,
        entry: Start<'_>,
        variant: ToolVariant,
    ) -> Result<Option<OpenRecord>, Refusal> {
        let durability = match variant {
            ToolVariant::Read => Durability::Batched,
            ToolVariant::Write | ToolVariant::Destructive => Durability::Durable,
        };
        match self.activity.begin(entry, durability).await {
            Ok(record) => Ok(Some(record)),
            Err(error) if variant == ToolVariant::Read => {
                self.activity.missed(Missed::Call);
                tracing::warn!(%error, "a read is not recorded");
                Ok(None)
            }
            Err(error) => {
                self.activity.missed(Missed::Refusal);
                Err(not_recorded(variant, &error))
            }
        }
    }

    /// Records how a call ended, before its answer goes out.
    pub(super) async fn record_end(
        &self,
        record: OpenRecord,
        answer: &Result<Box<RawValue>, Refusal>,
        took: Duration,
    ) {
        let failure = match answer {
            Ok(result) => upstream_error(result).map(|text| (Code::UpstreamError, text)),
            Err(refusal) => Some((refusal.code, refusal.message.clone())),
        };
        let keeps_text = self.in_force.load().config.activity.payloads == Payloads::Full;
        let outcome = match &failure {
            None => Outcome::Success,
            Some((Code::Interrupted, text)) => Outcome::Interrupted { message: text },
            Some((code, text)) => Outcome::Error {
                code: code.as_str(),
                message: match code {
                    Code::UpstreamError if !keeps_text => TEXT_NOT_KEPT,
                    _ => text,
                },
            },
        };
        let mut end = End::new(outcome, took);
        if let Ok(result) = answer {
            end.response = Some(result.get());
            end.response_bytes = result.get().len() as u64;
        }
        if let Err(error) = record.finish(end, Durability::Written).await {
            tracing::error!(%error, "the end of a call is not recorded yet");
        }
    }
}

/// What a refusal is about, which decides what it is recorded as.
enum Kind {
    /// The policy forbids the call.
    Policy,
    /// The request does not name a call that could be made.
    Request,
    /// The call could be made, and the upstream is not there.
    Upstream,
    /// The daemon stops.
    Stop,
}

fn kind_of(code: Code) -> Kind {
    match code {
        Code::IntentMismatch
        | Code::MissingIntent
        | Code::MissingOperationType
        | Code::InvalidOperationType
        | Code::ServerMismatch
        | Code::InvalidSensitivity
        | Code::ReasonTooLong
        | Code::ToolQuarantined => Kind::Policy,
        Code::InvalidToolName
        | Code::InvalidArgs
        | Code::UnknownServer
        | Code::UnknownTool
        | Code::ActivityUnavailable => Kind::Request,
        Code::ServerUnavailable | Code::Timeout | Code::UpstreamError => Kind::Upstream,
        Code::Interrupted => Kind::Stop,
    }
}

/// The intent that held or, for a refused call, what could be understood of the declared one.
fn recorded_intent(
    declared: Option<&DeclaredIntent>,
    decision: Option<&Decision>,
) -> Option<RecordedIntent> {
    if let Some(intent) = decision.and_then(Decision::intent) {
        return Some(RecordedIntent {
            operation_type: Some(intent.operation_type),
            data_sensitivity: intent.data_sensitivity,
            reason: intent.reason.clone(),
        });
    }
    declared.map(|declared| RecordedIntent {
        operation_type: declared
            .operation_type
            .as_deref()
            .and_then(|text| text.parse().ok()),
        data_sensitivity: declared
            .data_sensitivity
            .as_deref()
            .and_then(|text| text.parse().ok()),
        reason: declared
            .reason
            .as_deref()
            .map(|reason| shortened(reason, 1_000)),
    })
}

/// Whether a result can say that it is an error: by a member `isError` whose value is not `false`, or
/// by one that is spelled with escapes.
fn may_be_error(result: &str) -> bool {
    const MEMBER: &str = "\"isError\"";
    let is_false = |place: usize| {
        let value = result[place + MEMBER.len()..].trim_ascii_start();
        let value = value.strip_prefix(':').map(str::trim_ascii_start);
        value.is_some_and(|value| value.starts_with("false"))
    };
    !memmem::find_iter(result.as_bytes(), MEMBER).all(is_false)
        || memmem::find(result.as_bytes(), b"\\u00").is_some()
}

/// The text of a result that says it is an error, whatever else is wrong with it.
fn upstream_error(result: &RawValue) -> Option<String> {
    if !may_be_error(result.get()) {
        return None;
    }
    let result = Json::from(result);
    let (mut is_error, mut content) = (false, None);
    for (name, value) in result.members()? {
        match &*name {
            "isError" => is_error = value.get() == "true",
            "content" => content = Some(value),
            _ => {}
        }
    }
    if !is_error {
        return None;
    }
    let blocks: Option<Vec<&RawValue>> = content
        .as_ref()
        .and_then(|content| serde_json::from_str(content.get()).ok());
    let text = blocks.unwrap_or_default().into_iter().find_map(|block| {
        let block: TextContent = serde_json::from_str(block.get()).ok()?;
        Some(shortened(&block.text, MESSAGE_LENGTH))
    });
    Some(text.unwrap_or_default())
}

fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn not_recorded(variant: ToolVariant, error: &StoreError) -> Refusal {
    let cause = std::error::Error::source(error).map(|cause| format!(" ({cause})"));
    let cause = cause.unwrap_or_default();
    let message = format!(
        "The call is not made because it cannot be recorded: {error}{cause}. {variant} needs the activity \
         log; free some disk space, or look at the output of the daemon"
    );
    Refusal::new(Code::ActivityUnavailable, message).with("tool_variant", variant.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_says_it_is_an_error_is_one_whatever_else_is_wrong_with_it() {
        for (result, text) in [
            (
                r#"{"isError":true,"content":[{"type":"text","text":"no"}]}"#,
                "no",
            ),
            (
                r#"{"isError":true,"content":[{"text":7},{"text":"no"}]}"#,
                "no",
            ),
            (r#"{"isError":true,"content":null}"#, ""),
            (r#"{"content":"x","isError": true }"#, ""),
            (r#"{"is\u0045rror":true}"#, ""),
        ] {
            let result = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(upstream_error(&result).as_deref(), Some(text), "{result}");
        }
        for result in [
            r#"{"isError":false}"#,
            r#"{"content":[{"text":"isError: true \u0041"}]}"#,
            r#"{"structuredContent":{"isError":true}}"#,
        ] {
            let result = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(upstream_error(&result), None, "{result}");
        }
    }
}
