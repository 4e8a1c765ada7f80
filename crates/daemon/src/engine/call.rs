//! The one path of a call: locate, decide, record, send, record.

use std::sync::Arc;
use std::time::Instant;

use catalog::ToolDefinition;
use mcp::RawValue;
use policy::{Call, Code, IntentDeclaration, Refusal, ToolId, decide};
use tokio::sync::mpsc;
use upstream::{CallError, ToolCall, Upstream};

use super::locate::{Located, unavailable};
use super::recording::{Decided, log_entry};
use super::replay::facts_of;
use super::{CallRequest, Caller, Engine};

/// Where the params of progress notifications go while a call is under way.
pub(crate) type Progress = mpsc::Sender<Box<RawValue>>;

/// A call that may be sent.
struct Admitted {
    tool: ToolId,
    upstream: Arc<Upstream>,
    decided: Decided,
}

/// A call that may not, and what was decided about it if it came that far.
struct Rejected {
    refusal: Refusal,
    decided: Option<Decided>,
}

impl Engine {
    /// Runs a call, whichever door it came through, and returns the upstream's result untouched.
    /// Dropping the future cancels the call at the upstream.
    pub async fn call(
        &self,
        request: &CallRequest,
        caller: &Caller,
        progress: Option<Progress>,
    ) -> Result<Box<RawValue>, Refusal> {
        let started = Instant::now();
        let admitted = match self.admit(request).await {
            Ok(admitted) => admitted,
            Err(Rejected { refusal, decided }) => {
                let entry = log_entry(request, caller, decided.as_ref());
                self.record_refusal(entry, &refusal, started.elapsed())
                    .await;
                return Err(refusal);
            }
        };
        let entry = log_entry(request, caller, Some(&admitted.decided));
        let record = self.record_start(entry, request.variant).await?;
        let call = ToolCall {
            tool: admitted.tool.tool(),
            arguments: request.arguments.as_deref(),
            meta: request.meta.as_deref(),
            progress,
        };
        // Boxed: the doors move this future about before it runs, each move a copy of its state,
        // and most of that would be room for what the upstream's client needs.
        let answer = Box::pin(admitted.upstream.call_tool(call)).await;
        let answer = answer.map_err(|error| failed(&admitted.tool, error));
        if let Some(record) = record {
            self.record_end(record, &answer, started.elapsed()).await;
        }
        answer
    }

    async fn admit(&self, request: &CallRequest) -> Result<Admitted, Rejected> {
        let undecided = |refusal| Rejected {
            refusal,
            decided: None,
        };
        let tool = request.tool().map_err(undecided)?;
        let located = self.locate(&tool).await;
        let Located {
            upstream,
            definition,
        } = located.map_err(|refusal| {
            // Of a call that goes nowhere, an intent that does not hold is the first thing to mend.
            undecided(self.intent_refusal(request).unwrap_or(refusal))
        })?;
        let decided = self.decide(request, &tool, &definition);
        if let Some(refusal) = decided.decision.refusal().cloned() {
            let decided = Some(decided);
            return Err(Rejected { refusal, decided });
        }
        if let Some(warning) = decided.decision.warning() {
            tracing::warn!(%tool, tool_variant = request.variant.as_str(), "{warning}");
        }
        Ok(Admitted {
            tool,
            upstream,
            decided,
        })
    }

    fn decide(&self, request: &CallRequest, tool: &ToolId, definition: &ToolDefinition) -> Decided {
        let known = self.known(definition);
        let config = self.config.load();
        let overrides = config.tool_overrides.compiled();
        let call = Call {
            variant: request.variant,
            tool,
            intent: request.intent.as_ref(),
            annotations: definition.annotations.as_ref(),
            override_tier: overrides.tier_for(tool).map(|(tier, _)| tier),
            audited_tier: Some(known.audit.tier),
            distrusted: config.distrust.matches(tool.server()),
            pinned: known.standing.pinned,
            hold: known.standing.hold,
        };
        Decided {
            decision: decide(&call, &config.intent_declaration),
            facts: facts_of(&call, true),
        }
    }

    fn intent_refusal(&self, request: &CallRequest) -> Option<Refusal> {
        let mode = self.config.load().intent_declaration.mode;
        IntentDeclaration::check(request.intent.as_ref(), request.variant, mode).err()
    }
}

fn failed(tool: &ToolId, error: CallError) -> Refusal {
    match error {
        CallError::Unavailable { state, .. } => unavailable(tool, &state),
        CallError::Timeout { after } => {
            let seconds = after.as_secs_f64();
            let message =
                format!("Tool '{tool}' did not answer within {seconds} s; it may still be running");
            Refusal::new(Code::Timeout, message)
                .with("tool", tool.as_str())
                .with("timeout_seconds", seconds)
        }
        CallError::Rpc(error) => {
            let message = format!(
                "Tool '{tool}' failed: {} (code {})",
                error.message, error.code
            );
            let refusal = Refusal::new(Code::UpstreamError, message)
                .with("tool", tool.as_str())
                .with("upstream_code", error.code);
            let data = error
                .data
                .and_then(|data| serde_json::from_str(data.get()).ok());
            match data {
                Some(serde_json::Value::Null) | None => refusal,
                Some(data) => refusal.with("upstream_data", data),
            }
        }
        error @ CallError::Wire(_) => Refusal::new(
            Code::UpstreamError,
            format!("Tool '{tool}' failed: {error}"),
        )
        .with("tool", tool.as_str()),
        error @ CallError::Meta(_) => Refusal::new(Code::InvalidArgs, error.to_string()),
    }
}
