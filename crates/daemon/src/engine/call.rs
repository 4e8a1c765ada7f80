//! The one path of a call: locate, decide, record, send, record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catalog::ToolDefinition;
use mcp::{ErrorObject, RawValue};
use policy::{
    Call, Code, IntentDeclaration, IntentMode, Refusal, Tier, ToolId, ToolVariant, decide,
};
use tokio::sync::mpsc;
use upstream::{CallError, Forward, OnBehalf, ToolCall, Upstream};

use super::locate::{Located, unavailable};
use super::recording::{Decided, log_entry};
use super::redecide::facts_of;
use super::{CallRequest, Caller, Engine};

/// What is told of an upstream's error, in bytes of its text and of its data.
const MOST_ERROR_TEXT: usize = 10_000;
const MOST_ERROR_DATA: usize = 100_000;

/// Where the params of progress notifications go while a call is under way.
pub(crate) type Progress = mpsc::Sender<Box<RawValue>>;

/// Why a call brought no result.
#[derive(Debug)]
pub(crate) struct Failed {
    pub refusal: Refusal,
    /// The error that the upstream answered with, for endpoints that pass it on as it is.
    pub error: Option<ErrorObject>,
}

/// A call that may be sent.
struct Admitted {
    tool: ToolId,
    upstream: Arc<Upstream>,
    decided: Decided,
    variant: ToolVariant,
}

/// A call that may not, and what was decided about it if it came that far.
struct Rejected {
    refusal: Refusal,
    decided: Option<Decided>,
    variant: Option<ToolVariant>,
}

impl Engine {
    /// Runs a call, whichever endpoint it came through, and returns the upstream's result untouched.
    /// Dropping the future cancels the call at the upstream.
    pub async fn call(
        &self,
        request: &CallRequest,
        caller: &Caller,
        progress: Option<Progress>,
    ) -> Result<Box<RawValue>, Refusal> {
        let answer = self.call_for(request, caller, progress, None).await;
        answer.map_err(|failed| failed.refusal)
    }

    /// Like [`Engine::call`], with a client whom the upstream can ask on the way.
    pub(crate) async fn call_for(
        &self,
        request: &CallRequest,
        caller: &Caller,
        progress: Option<Progress>,
        client: Option<&OnBehalf>,
    ) -> Result<Box<RawValue>, Failed> {
        let _under_way = self.under_way.begin();
        let started = Instant::now();
        let admitting = self.under_way.or_interrupted(self.admit(request));
        let admitted = match admitting.await {
            Some(Ok(admitted)) => admitted,
            None => {
                let refusal = interrupted(&request.name, false);
                let entry = log_entry(request, caller, None, request.variant);
                self.record_refusal(entry, &refusal, started.elapsed())
                    .await;
                return Err(refusal.into());
            }
            Some(Err(rejected)) => {
                let decided = rejected.decided.as_ref();
                let entry = log_entry(request, caller, decided, rejected.variant);
                self.record_refusal(entry, &rejected.refusal, started.elapsed())
                    .await;
                return Err(rejected.refusal.into());
            }
        };
        let variant = admitted.variant;
        let effective = admitted.decided.decision.effective.tier();
        // The lane is the caller's word; that a tool only reads has to be known of the tool.
        let repeatable = effective == Some(Tier::ReadOnly);
        let entry = log_entry(request, caller, Some(&admitted.decided), Some(variant));
        let record = self.record_start(entry, variant).await?;
        // Boxed: the endpoints move this future about before it runs, each move a copy of its state,
        // and most of that would be room for what the upstream's client needs.
        let sent = AtomicBool::new(false);
        let answer = match &request.params {
            None => {
                let call = ToolCall {
                    tool: admitted.tool.tool(),
                    arguments: request.arguments.as_deref(),
                    meta: request.meta.as_deref(),
                    progress,
                    sent: Some(&sent),
                    repeatable,
                };
                let calling = Box::pin(admitted.upstream.call_tool(call));
                self.under_way.or_interrupted(calling).await
            }
            Some(params) => {
                let forward = Forward {
                    method: "tools/call",
                    params: Some(params.clone()),
                    progress,
                    client,
                    sent: Some(&sent),
                    repeatable,
                };
                let calling = Box::pin(admitted.upstream.request(forward));
                self.under_way.or_interrupted(calling).await
            }
        };
        let mut error = None;
        let answer = match answer {
            Some(answer) => answer.map_err(|failure| {
                if let CallError::Rpc(answered) = &failure {
                    error = Some(answered.clone());
                }
                failed(&admitted.tool, failure)
            }),
            None => Err(interrupted(&request.name, sent.load(Ordering::Relaxed))),
        };
        if let Some(record) = record {
            self.record_end(record, &answer, started.elapsed()).await;
        }
        answer.map_err(|refusal| Failed { refusal, error })
    }

    /// Records a call that its endpoint has refused already.
    pub(crate) async fn refused(&self, request: &CallRequest, caller: &Caller, refusal: &Refusal) {
        let entry = log_entry(request, caller, None, request.variant);
        self.record_refusal(entry, refusal, Duration::ZERO).await;
    }

    async fn admit(&self, request: &CallRequest) -> Result<Admitted, Rejected> {
        let undecided = |refusal| Rejected {
            refusal,
            decided: None,
            variant: request.variant,
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
        let by_tier = || self.standing(&definition).call_with;
        let variant = request.variant.unwrap_or_else(by_tier);
        let decided = self.decide(request, variant, &definition);
        if let Some(refusal) = decided.decision.refusal().cloned() {
            return Err(Rejected {
                refusal,
                decided: Some(decided),
                variant: Some(variant),
            });
        }
        if let Some(warning) = decided.decision.warning() {
            tracing::warn!(%tool, tool_variant = variant.as_str(), "{warning}");
        }
        Ok(Admitted {
            tool,
            upstream,
            decided,
            variant,
        })
    }

    fn decide(
        &self,
        request: &CallRequest,
        variant: ToolVariant,
        definition: &ToolDefinition,
    ) -> Decided {
        let known = self.known(definition);
        let config = self.config.load();
        let overrides = config.tool_overrides.compiled();
        let tool = &definition.id;
        let call = Call {
            variant,
            tool,
            intent: request.intent.as_ref(),
            annotations: definition.annotations.as_ref(),
            override_tier: overrides.tier_for(tool).map(|(tier, _)| tier),
            audited_tier: Some(known.audit.tier),
            distrusted: config.distrust.matches(tool.server()),
            pinned: known.standing.pinned,
            hold: known.standing.hold,
        };
        let mut rules = config.intent_declaration;
        if request.variant.is_none() {
            // An endpoint without lanes has no place to declare an intent either.
            rules.mode = IntentMode::Inferred;
        }
        Decided {
            decision: decide(&call, &rules),
            facts: facts_of(&call, request.variant.is_some()),
        }
    }

    fn intent_refusal(&self, request: &CallRequest) -> Option<Refusal> {
        let mode = self.config.load().intent_declaration.mode;
        let variant = request.variant?;
        IntentDeclaration::check(request.intent.as_ref(), variant, mode).err()
    }
}

// === impl Failed ===

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self {
            refusal,
            error: None,
        }
    }
}

/// What is said of a call that the end of the daemon cut short.
fn interrupted(name: &str, sent: bool) -> Refusal {
    let message = if sent {
        format!(
            "mcpproxy is stopping: '{name}' was sent and may still run, but its answer is not waited for. \
             Look at what it did before you call it again"
        )
    } else {
        format!("mcpproxy is stopping: '{name}' was not sent. Call it again when mcpproxy is back")
    };
    Refusal::new(Code::Interrupted, message).with("sent", sent)
}

fn failed(tool: &ToolId, error: CallError) -> Refusal {
    let sent = error.may_have_run();
    refusal_of(tool, error).with("sent", sent)
}

fn refusal_of(tool: &ToolId, error: CallError) -> Refusal {
    match error {
        CallError::Unavailable { state, .. } => unavailable(tool.server(), &state),
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
                bounded(error.message),
                error.code
            );
            let refusal = Refusal::new(Code::UpstreamError, message)
                .with("tool", tool.as_str())
                .with("upstream_code", error.code);
            let data = error
                .data
                .filter(|data| data.get().len() <= MOST_ERROR_DATA)
                .and_then(|data| serde_json::from_str(data.get()).ok());
            match data {
                Some(serde_json::Value::Null) | None => refusal,
                Some(data) => refusal.with("upstream_data", data),
            }
        }
        CallError::Busy {
            running,
            waiting,
            retry_after,
            server,
        } => {
            let seconds = retry_after.as_secs();
            let message = format!(
                "Server '{server}' is busy: {running} calls are under way and {waiting} wait. The \
                 call was not sent; try again in about {seconds} s"
            );
            Refusal::new(Code::ServerUnavailable, message)
                .with("server", server.as_str())
                .with("retry_after_seconds", seconds)
        }
        CallError::NotSent { server, after } => {
            let seconds = after.as_secs_f64().ceil();
            let message = format!(
                "Server '{server}' was busy with other calls for {seconds} s. The call was not \
                 sent, so it can be made again"
            );
            Refusal::new(Code::ServerUnavailable, message).with("server", server.as_str())
        }
        error @ CallError::NoConnection { .. } => {
            Refusal::new(Code::ServerUnavailable, error.to_string())
                .with("server", tool.server().as_str())
        }
        error @ (CallError::Wire(_)
        | CallError::Lost { .. }
        | CallError::TooLarge { .. }
        | CallError::Unanswered { .. }
        | CallError::InputRefused { .. }) => Refusal::new(
            Code::UpstreamError,
            format!("Tool '{tool}' failed: {error}"),
        )
        .with("tool", tool.as_str()),
        error @ CallError::Meta(_) => Refusal::new(Code::InvalidArgs, error.to_string()),
    }
}

/// The text of an error, which servers may make as long as a result.
fn bounded(mut text: String) -> String {
    let bytes = text.len();
    if bytes > MOST_ERROR_TEXT {
        text.truncate(text.floor_char_boundary(MOST_ERROR_TEXT));
        text.push_str(&format!(" […] [cut; it has {bytes} bytes]"));
    }
    text
}
