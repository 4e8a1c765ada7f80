//! Records like those of a busy month.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use activity::sqlite::SqliteStore;
use activity::{
    Activity, Durability, End, Facts, Given, Metadata, Outcome, Payloads, Period, RecordType,
    RecordedIntent, Settings, Source, Start,
};
use anyhow::{Context, Result};
use jiff::{SignedDuration, Timestamp};
use policy::{DataSensitivity, OperationType, Provenance, Tier};
use redact::Redactor;

const RESPONSE: &str = r#"{"content":[{"type":"text","text":"line one\nline two\nline three"}]}"#;

/// The time that is given to records while the log is filled.
static NOW: AtomicI64 = AtomicI64::new(0);

/// The texts of one call.
pub(super) struct Call {
    number: u64,
    server: String,
    tool: String,
    arguments: String,
    session: String,
    request: String,
}

pub(crate) fn settings() -> Result<Settings> {
    Ok(Settings {
        redactor: Redactor::new(["a-configured-secret", "another-configured-secret"])?,
        max_response_bytes: 65_536,
        max_argument_bytes: 65_536,
        payloads: Payloads::Full,
    })
}

/// Fills the log as if its records had come evenly over the last thirty days.
pub(crate) async fn fill(store: &Arc<SqliteStore>, records: u64) -> Result<()> {
    let clock = || Timestamp::from_millisecond(NOW.load(Ordering::Relaxed)).unwrap_or_default();
    let past = Activity::with_clock(Arc::clone(store) as _, settings()?, clock);
    let (now, month) = (Timestamp::now(), Period::Month.length().as_millis());
    for number in 0..records {
        let back = month * i128::from(records - number) / i128::from(records);
        let time = now.checked_sub(SignedDuration::from_millis_i128(back));
        NOW.store(time.context("a time")?.as_millisecond(), Ordering::Relaxed);
        let call = Call::new(number);
        past.record(call.start(), call.end(), Durability::Batched)
            .await?;
    }
    // Sums are asked for when everything that is derived is there.
    past.usage(Period::Day).await?;
    Ok(())
}

impl Call {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            server: format!("server-{}", number % 97 % 12),
            tool: format!("tool_{}", number % 97),
            arguments: format!(
                r#"{{"path":"/home/user/project/src/file-{}.rs","limit":{}}}"#,
                number % 5_000,
                number % 50
            ),
            session: format!("session-{}", number / 200),
            request: format!("request-{number}"),
        }
    }

    pub(super) fn start(&self) -> Start<'_> {
        let operation = match self.number % 10 {
            0 => OperationType::Destructive,
            1 | 2 => OperationType::Write,
            _ => OperationType::Read,
        };
        let often = self.number.is_multiple_of(3);
        Start {
            server_name: Some(&self.server),
            tool_name: Some(&self.tool),
            arguments: Some(&self.arguments),
            request_bytes: 180,
            session_id: Some(&self.session),
            client_name: Some(if often { "cursor" } else { "claude-code" }),
            request_id: Some(&self.request),
            metadata: Metadata {
                intent: Some(RecordedIntent {
                    operation_type: Some(operation),
                    data_sensitivity: often.then_some(DataSensitivity::Private),
                    reason: Some("the user asked for it".to_owned()),
                }),
                tool_variant: Some(operation.variant()),
                effective_tier: Some(Tier::ReadOnly),
                provenance: Some(Provenance::Declared),
                warnings: Vec::new(),
                facts: Some(Facts {
                    declared_tier: Some(Tier::ReadOnly),
                    audited_tier: Some(Tier::ReadOnly),
                    pinned: None,
                    hold: None,
                    lane_chosen: true,
                    intent_given: true,
                    operation_type: Given::Understood,
                    data_sensitivity: Given::Absent,
                }),
            },
            ..Start::new(RecordType::ToolCall, Source::Mcp)
        }
    }

    pub(super) fn end(&self) -> End<'static> {
        let outcome = match self.number % 40 {
            0 => Outcome::Error {
                code: "UPSTREAM_ERROR",
                message: "the upstream said no",
            },
            1 => Outcome::Blocked {
                code: "SERVER_MISMATCH",
                message: "use call_tool_write",
            },
            _ => Outcome::Success,
        };
        End {
            outcome,
            duration: Duration::from_millis(self.number % 300),
            response: Some(RESPONSE),
            response_bytes: RESPONSE.len() as u64,
        }
    }
}
