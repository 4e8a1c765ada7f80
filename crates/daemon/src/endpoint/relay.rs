//! What all endpoints do with a request: tell who asks, pass progress on, end with the client, and put
//! what went wrong into words.

use std::collections::BTreeMap;
use std::time::Duration;

use activity::Source;
use mcp::server::{Outbound, RequestContext};
use mcp::{ErrorObject, Json, Members, Notification, RawValue, codes};
use policy::{Code, Refusal};
use serde::Serialize;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc;
use upstream::{CallError, Forward, OnBehalf, ServerIdentity, Upstream};

use crate::engine::{CallRequest, Caller, Engine};

/// How many progress reports may wait for a slow client.
const PROGRESS_BACKLOG: usize = 16;

/// What clients of the protocol's own SDKs take for a timeout.
const REQUEST_TIMEOUT: i64 = -32001;

/// What is said of a request of which nothing more is known.
const INTERRUPTED: &str = "mcpproxy is stopping: the request may have been sent, but its answer is not \
waited for";

/// How long a request that is interrupted gets to say so in its own words.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The most characters that are repeated of an unknown tool's name.
const LONGEST_NAME: usize = 200;

pub(super) type Answer = Result<Box<RawValue>, ErrorObject>;

/// Runs a call until it ends or the client cancels it; dropping it cancels it at the upstream.
pub(super) async fn or_cancelled<T>(
    call: impl Future<Output = T>,
    context: &RequestContext,
) -> Result<T, ErrorObject> {
    tokio::select! {
        outcome = call => Ok(outcome),
        () = context.cancelled.cancelled() => {
            // The client does not wait for this answer any more.
            Err(ErrorObject::new(codes::CONNECTION_CLOSED, "cancelled"))
        }
    }
}

/// Answers a request; when the daemon stops and the request goes on, says so instead.
pub(super) async fn until_interrupted<T>(
    engine: &Engine,
    work: impl Future<Output = Result<T, ErrorObject>>,
) -> Result<T, ErrorObject> {
    let under_way = engine.under_way();
    tokio::select! {
        biased;
        answer = work => answer,
        () = async {
            under_way.interrupted().await;
            tokio::time::sleep(LAST_WORDS).await;
        } => Err(ErrorObject::new(codes::CONNECTION_CLOSED, INTERRUPTED)),
    }
}

/// Passes progress on under the token that the client chose.
pub(super) async fn relay_progress(
    mut reports: mpsc::Receiver<Box<RawValue>>,
    token: Box<RawValue>,
    outbound: &Outbound,
) {
    while let Some(report) = reports.recv().await {
        let Ok(mut members) = Members::parse(&report) else {
            continue;
        };
        members.set("progressToken", token.clone());
        let params = members.to_raw().ok();
        let notification = Notification::new("notifications/progress", params);
        if outbound.notify(notification).await.is_err() {
            return;
        }
    }
}

/// Runs `work`, which gets a place for progress if the client asked for any.
pub(super) async fn with_progress<T, F>(
    token: Option<Box<RawValue>>,
    context: &RequestContext,
    work: impl FnOnce(Option<mpsc::Sender<Box<RawValue>>>) -> F,
) -> Result<T, ErrorObject>
where
    F: Future<Output = T>,
{
    // Boxed: what is behind it is large, and moved about before it runs.
    let Some(token) = token else {
        return or_cancelled(Box::pin(work(None)), context).await;
    };
    let (sender, receiver) = mpsc::channel(PROGRESS_BACKLOG);
    let working = Box::pin(work(Some(sender)));
    let relaying = relay_progress(receiver, token, &context.outbound);
    // The sender goes with the work, so the relay ends right after it.
    let both = async { tokio::join!(working, relaying).0 };
    or_cancelled(both, context).await
}

/// Passes a request on to an upstream, and its answer back.
pub(super) async fn forward(
    upstream: &Upstream,
    method: &str,
    params: Option<Box<RawValue>>,
    client: &OnBehalf,
    context: &RequestContext,
) -> Answer {
    let token = params.as_deref().and_then(token_in_params);
    let answer = with_progress(token, context, |progress| {
        upstream.request(Forward {
            method,
            params: params.map(Json::from),
            progress,
            client: Some(client),
            sent: None,
            repeatable: false,
        })
    });
    answer.await?.map_err(|error| {
        let mut error = to_error(error);
        let status = upstream.status();
        let legacy = |identity: &ServerIdentity| !identity.protocol.is_modern();
        if context.connection.protocol.is_modern()
            && status.server.as_ref().is_some_and(legacy)
            && error.code == codes::INVALID_PARAMS
            && !is_of_protocol(method)
        {
            // The Python SDK 1.x answers a method that it does not know in the words for wrong parameters.
            error.code = codes::METHOD_NOT_FOUND;
        }
        error
    })
}

/// Whether the protocol has the method among those that servers answer.
fn is_of_protocol(method: &str) -> bool {
    const PREFIXES: [&str; 5] = ["completion/", "prompts/", "resources/", "tasks/", "tools/"];
    PREFIXES.iter().any(|prefix| method.starts_with(prefix))
}

/// Calls a tool on the one path, and answers as the upstream did. `name` is the tool's name at this endpoint.
pub(super) async fn call_tool(
    engine: &Engine,
    name: &str,
    call: &CallRequest<'_>,
    client: &OnBehalf,
    context: &RequestContext,
) -> Answer {
    let caller = caller(context);
    let token = match call {
        CallRequest::Direct(call) => token_in_params(&call.params),
        CallRequest::Lane(_) | CallRequest::Refused(_) => None,
    };
    let answer = with_progress(token, context, |progress| {
        engine.call_for(call, &caller, progress, Some(client))
    });
    match answer.await? {
        Ok(result) => Ok(result),
        Err(failed) => match failed.error {
            Some(error) => Err(error),
            None if is_unknown(&failed.refusal) => Err(unknown_tool(name, &failed.refusal)),
            None => refused(&failed.refusal),
        },
    }
}

fn is_unknown(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        Code::UnknownTool | Code::UnknownServer | Code::InvalidToolName
    )
}

/// What the protocol has for a tool that is not there. The refusal's own words are for `/mcp`: they name tools
/// of other servers, in a form that these endpoints do not have.
fn unknown_tool(name: &str, refusal: &Refusal) -> ErrorObject {
    let name: String = name.chars().take(LONGEST_NAME).collect();
    let mut error = ErrorObject::invalid_params(format!("Unknown tool: {name}"));
    error.data = raw(&json!({"code": refusal.code})).ok();
    error
}

/// What the client is told where an upstream did not answer.
pub(super) fn to_error(error: CallError) -> ErrorObject {
    match error {
        CallError::Rpc(error) | CallError::InputRefused { source: error, .. } => error,
        CallError::Timeout { .. } | CallError::NotSent { .. } => {
            ErrorObject::new(REQUEST_TIMEOUT, error.to_string())
        }
        CallError::Meta => ErrorObject::invalid_params(format!("Invalid params: {error}")),
        CallError::Busy { retry_after, .. } => {
            let mut busy = ErrorObject::new(codes::CONNECTION_CLOSED, error.to_string());
            busy.data = raw(&json!({"retry_after_seconds": retry_after.as_secs()})).ok();
            busy
        }
        CallError::Unavailable { .. }
        | CallError::Lost { .. }
        | CallError::TooLarge { .. }
        | CallError::Unanswered { .. }
        | CallError::Wire(_)
        | CallError::NoConnection { .. }
        | CallError::Listing { .. } => {
            ErrorObject::new(codes::CONNECTION_CLOSED, error.to_string())
        }
    }
}

/// Who called, for the log.
pub(super) fn caller(context: &RequestContext) -> Caller<'_> {
    let connection = &context.connection;
    Caller {
        source: Source::Mcp,
        // A modern client has no session; the id made up for its request would only mislead.
        session_id: (!connection.protocol.is_modern()).then(|| connection.session.as_str()),
        client_name: Some(connection.client.name.as_str()).filter(|name| !name.is_empty()),
        request_id: Some(context.request_id.to_string()),
    }
}

pub(super) fn progress_token(meta: &Json<'_>) -> Option<Box<RawValue>> {
    member(meta, "progressToken")?.to_raw().ok()
}

fn token_in_params(params: &RawValue) -> Option<Box<RawValue>> {
    progress_token(&member(&params.into(), "_meta")?)
}

fn member<'a>(object: &'a Json<'_>, wanted: &str) -> Option<Json<'a>> {
    let mut members = object.members()?;
    members.find_map(|(name, value)| (name == wanted).then_some(value))
}

/// A refusal as agents get it: text for the model, the same as data for programs. A call that was
/// interrupted was not refused: that is an error of the protocol.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    if refusal.code == Code::Interrupted {
        let mut error = ErrorObject::new(codes::CONNECTION_CLOSED, refusal.message.clone());
        error.data = raw(refusal).ok();
        return Err(error);
    }
    raw(&json!({
        "content": [{"type": "text", "text": refusal.message}],
        "structuredContent": refusal,
        "isError": true
    }))
}

/// The answer to `tools/list`, with each definition as it is.
pub(super) fn tools_list<T: Serialize>(tools: impl Iterator<Item = T>) -> Answer {
    let tools: Vec<T> = tools.collect();
    raw(&BTreeMap::from([("tools", tools)]))
}

pub(super) fn raw(value: &impl Serialize) -> Answer {
    to_raw_value(value).map_err(|error| ErrorObject::internal(error.to_string()))
}
