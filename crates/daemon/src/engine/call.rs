//! The one path of a call: resolve, decide, record, send, record.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use activity::{Facts, Given};
use mcp::{ErrorObject, Json, RawValue};
use policy::{
    Annotations, Call, Code, DeclaredIntent, IntentDeclaration, IntentMode, Refusal, Tier, ToolId,
    ToolVariant, decide,
};
use tokio::sync::mpsc;
use upstream::{CallError, Forward, OnBehalf, ToolCall};

use super::recording::{Decided, log_entry};
use super::request::{CallRequest, DirectCall, LaneCall};
use super::tools::{Resolved, unavailable};
use super::{Caller, Engine};

/// How much of an upstream's error is passed on, in bytes of its text and of its data.
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

/// A request that names a tool.
#[derive(Clone, Copy)]
enum Acceptable<'a> {
    Lane(&'a LaneCall<'a>),
    Direct(&'a DirectCall<'a>),
}

/// A call that may be sent.
struct Admitted<'a> {
    call: Acceptable<'a>,
    resolved: Resolved,
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
        request: &CallRequest<'_>,
        caller: &Caller<'_>,
        progress: Option<Progress>,
    ) -> Result<Box<RawValue>, Refusal> {
        let answer = self.call_for(request, caller, progress, None).await;
        answer.map_err(|failed| failed.refusal)
    }

    /// Like [`Engine::call`], with a client whom the upstream can ask on the way.
    pub(crate) async fn call_for(
        &self,
        request: &CallRequest<'_>,
        caller: &Caller<'_>,
        progress: Option<Progress>,
        client: Option<&OnBehalf>,
    ) -> Result<Box<RawValue>, Failed> {
        let _under_way = self.under_way.begin();
        let started = Instant::now();
        let name = &request.asked().name;
        let admitting = self.under_way.or_interrupted(self.admit(request, client));
        let admitted = match admitting.await {
            Some(Ok(admitted)) => admitted,
            rejected => {
                let rejected = rejected.and_then(Result::err).unwrap_or_else(|| Rejected {
                    refusal: interrupted(name, false),
                    decided: None,
                    variant: request.variant(),
                });
                let decided = rejected.decided.as_ref();
                let entry = log_entry(request, caller, decided, rejected.variant);
                self.record_refusal(entry, &rejected.refusal, started.elapsed())
                    .await;
                return Err(rejected.refusal.into());
            }
        };
        let variant = admitted.variant;
        let entry = log_entry(request, caller, Some(&admitted.decided), Some(variant));
        let record = self.record_start(entry, variant).await?;
        let sent = AtomicBool::new(false);
        // Boxed: the endpoints move this future before it runs, each move copies its state, and most
        // of that state belongs to the upstream's client.
        let sending = Box::pin(admitted.send(progress, client, &sent));
        let mut error = None;
        let answer = match self.under_way.or_interrupted(sending).await {
            Some(answer) => answer.map_err(|failure| {
                if let CallError::Rpc(answered) = &failure {
                    error = Some(answered.clone());
                }
                failed(admitted.call.tool(), failure)
            }),
            None => Err(interrupted(name, sent.load(Ordering::Relaxed))),
        };
        if let Some(record) = record {
            self.record_end(record, &answer, started.elapsed()).await;
        }
        answer.map_err(|refusal| Failed { refusal, error })
    }

    async fn admit<'a>(
        &self,
        request: &'a CallRequest<'a>,
        client: Option<&OnBehalf>,
    ) -> Result<Admitted<'a>, Rejected> {
        let undecided = |refusal| Rejected {
            refusal,
            decided: None,
            variant: request.variant(),
        };
        let call = match request {
            CallRequest::Lane(call) => Acceptable::Lane(call),
            CallRequest::Direct(call) => Acceptable::Direct(call),
            CallRequest::Refused(call) => return Err(undecided(call.refusal.clone())),
        };
        let resolved = self.resolve(call.tool(), client).await.map_err(|refusal| {
            // An agent has to correct its intent before the name of the tool matters.
            undecided(self.intent_refusal(call).unwrap_or(refusal))
        })?;
        let variant = match call {
            Acceptable::Lane(call) => call.variant,
            Acceptable::Direct(_) => resolved.state.call_with,
        };
        let decided = call.decide(variant, &resolved);
        if let Some(refusal) = decided.decision.refusal().cloned() {
            return Err(Rejected {
                refusal,
                decided: Some(decided),
                variant: Some(variant),
            });
        }
        if let Some(warning) = decided.decision.warning() {
            tracing::warn!(tool = %call.tool(), tool_variant = variant.as_str(), "{warning}");
        }
        Ok(Admitted {
            call,
            resolved,
            decided,
            variant,
        })
    }

    fn intent_refusal(&self, call: Acceptable<'_>) -> Option<Refusal> {
        let Acceptable::Lane(call) = call else {
            return None;
        };
        let mode = self.in_force().config.intent_declaration.mode;
        IntentDeclaration::check(call.asked.intent.as_ref(), call.variant, mode).err()
    }
}

// === impl Acceptable ===

impl<'a> Acceptable<'a> {
    fn tool(self) -> &'a ToolId {
        match self {
            Self::Lane(call) => &call.tool,
            Self::Direct(call) => &call.tool,
        }
    }

    fn decide(self, variant: ToolVariant, resolved: &Resolved) -> Decided {
        let (state, config) = (&resolved.state, &resolved.in_force.config);
        let mut rules = config.intent_declaration;
        let intent = match self {
            Self::Lane(call) => call.asked.intent.as_ref(),
            Self::Direct(_) => {
                // An endpoint without lanes has no place to declare an intent either.
                rules.mode = IntentMode::Inferred;
                None
            }
        };
        let call = Call {
            variant,
            tool: self.tool(),
            intent,
            annotations: state.definition().annotations.as_ref(),
            override_tier: state.override_tier,
            audited_tier: Some(state.audit().tier),
            distrusted: state.distrusted,
            pinned: state.pinned,
            hold: state.hold,
        };
        Decided {
            decision: decide(&call, &rules),
            facts: facts_of(&call, matches!(self, Self::Lane(_))),
        }
    }
}

// === impl Admitted ===

impl Admitted<'_> {
    async fn send(
        &self,
        progress: Option<Progress>,
        client: Option<&OnBehalf>,
        sent: &AtomicBool,
    ) -> Result<Box<RawValue>, CallError> {
        let upstream = &self.resolved.upstream;
        // The lane is the caller's word; that a tool only reads has to be known of the tool.
        let repeatable = self.decided.decision.effective.tier() == Some(Tier::ReadOnly);
        match self.call {
            Acceptable::Lane(call) => {
                let call = ToolCall {
                    tool: call.tool.tool(),
                    arguments: call.asked.arguments.as_ref(),
                    meta: call.meta.as_ref(),
                    progress,
                    client,
                    sent: Some(sent),
                    repeatable,
                };
                upstream.call_tool(call).await
            }
            Acceptable::Direct(call) => {
                let forward = Forward {
                    method: "tools/call",
                    params: Some(Json::from(&*call.params)),
                    progress,
                    client,
                    sent: Some(sent),
                    repeatable,
                };
                upstream.request(forward).await
            }
        }
    }
}

/// What a call was decided upon, for its record.
pub(super) fn facts_of(call: &Call<'_>, lane_chosen: bool) -> Facts {
    let intent = call.intent;
    let word = |word: fn(&DeclaredIntent) -> Option<&str>| intent.and_then(word);
    Facts {
        declared_tier: call.annotations.and_then(Annotations::declared_tier),
        audited_tier: call.audited_tier,
        pinned: call.pinned,
        hold: call.hold,
        lane_chosen,
        intent_given: intent.is_some(),
        operation_type: Given::of(word(|intent| intent.operation_type.as_deref()), |text| {
            text.parse::<policy::OperationType>().ok()
        }),
        data_sensitivity: Given::of(word(|intent| intent.data_sensitivity.as_deref()), |text| {
            text.parse::<policy::DataSensitivity>().ok()
        }),
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

/// The refusal of a call that the end of the daemon cut short.
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
        error @ (CallError::NoConnection { .. } | CallError::Listing { .. }) => {
            Refusal::new(Code::ServerUnavailable, error.to_string())
                .with("server", tool.server().as_str())
        }
        error @ (CallError::Wire(_)
        | CallError::Lost { .. }
        | CallError::TooLarge { .. }
        | CallError::Unanswered { .. }
        | CallError::InputRefused { .. }) => {
            let mut message = format!("Tool '{tool}' failed: {error}");
            if wants_credentials(&error) {
                let advice = upstream::how_to_authorize(tool.server());
                message.push_str(&format!("; the server wants a login or a header: {advice}"));
            }
            Refusal::new(Code::UpstreamError, message).with("tool", tool.as_str())
        }
        error @ CallError::Meta => Refusal::new(Code::InvalidArgs, error.to_string()),
    }
}

/// Whether the server answered 401 or 403: a token that was good when it was connected has expired.
fn wants_credentials(error: &CallError) -> bool {
    let CallError::Wire(cause) = error else {
        return false;
    };
    let status = cause.http_status().map(|status| status.as_u16());
    matches!(status, Some(401 | 403))
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
