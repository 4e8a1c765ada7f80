//! A service whose tools do what a test needs, and which remembers what happened to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::try_join_all;
use mcp::modern::ParameterHeaders;
use mcp::server::{Connection, InitializeResult, OutboundError, RequestContext, Service};
use mcp::{ErrorObject, Notification, RawValue, Request, codes};
use serde::Deserialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// The tools, by name:
///
/// - `echo` answers with its arguments, byte for byte
/// - `progress` sends `count` notifications before it answers
/// - `wait` answers when a test calls [`Script::release`], or when it is cancelled
/// - `roots` asks the client for its roots and answers with what came
/// - `impatient` asks the same and does not wait for the answer
/// - `form` asks the user what `rounds` names, each round at once, and answers with the answers
/// - `sample` needs a completion, and fails with the client's refusal
/// - `log` logs on two levels before it answers
/// - `change` says that the list of tools changed
/// - `regional` wants its argument `region` repeated as a header
/// - `panic` does
///
/// No resource can be read, and every one can be subscribed to.
///
/// The notification `notifications/test/ask` makes it ask for the roots, too.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) events: watch::Sender<Events>,
    releases: Semaphore,
    asked: AtomicUsize,
}

/// How often what happened.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Events {
    pub(crate) begun: usize,
    pub(crate) finished: usize,
    pub(crate) cancelled: usize,
    pub(crate) closed: usize,
    pub(crate) notifications: Vec<String>,
    pub(crate) outbound_gone: usize,
    /// `+` and `-` before the resource.
    pub(crate) subscriptions: Vec<String>,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Count {
    count: usize,
}

#[derive(Deserialize)]
struct Form {
    #[serde(default)]
    tag: String,
    rounds: Vec<Vec<String>>,
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn text_result(text: &str) -> Box<RawValue> {
    let text = serde_json::to_string(text).unwrap();
    raw(&format!(
        r#"{{"content":[{{"type":"text","text":{text}}}]}}"#
    ))
}

// === impl Script ===

impl Script {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            events: watch::Sender::default(),
            releases: Semaphore::new(0),
            asked: AtomicUsize::new(0),
        })
    }

    /// Lets one `wait` end.
    pub(crate) fn release(&self) {
        self.releases.add_permits(1);
    }

    pub(crate) async fn until(&self, condition: impl FnMut(&Events) -> bool) {
        let mut events = self.events.subscribe();
        let waited = crate::wire::soon(events.wait_for(condition)).await;
        waited.unwrap();
    }

    async fn wait(&self, context: &RequestContext) -> Box<RawValue> {
        tokio::select! {
            permit = self.releases.acquire() => {
                permit.unwrap().forget();
                text_result("released")
            }
            () = context.cancelled.cancelled() => {
                let gone = context.outbound.notify(Notification::new("late", None)).await.is_err();
                self.events.send_modify(|events| {
                    events.cancelled += 1;
                    events.outbound_gone += usize::from(gone);
                });
                text_result("too late")
            }
        }
    }

    async fn call(
        &self,
        call: CallParams,
        context: RequestContext,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let arguments = call.arguments.unwrap_or_else(|| raw("{}"));
        Ok(match call.name.as_str() {
            "echo" => arguments,
            "progress" => {
                let Count { count } = serde_json::from_str(arguments.get()).unwrap();
                for step in 1..=count {
                    let params = format!(r#"{{"progressToken":"t","progress":{step}}}"#);
                    let progress = Notification::new("notifications/progress", Some(raw(&params)));
                    if context.outbound.notify(progress).await.is_err() {
                        break;
                    }
                }
                text_result("done")
            }
            "wait" => self.wait(&context).await,
            "roots" => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                match context.outbound.request("roots/list", None).await {
                    Ok(roots) => text_result(roots.get()),
                    Err(OutboundError::Refused(error)) => text_result(&error.message),
                    Err(OutboundError::Gone(_)) => text_result("gone"),
                }
            }
            "impatient" => {
                let question = context.outbound.request("roots/list", None);
                // Long enough for the question to become an answer on a busy machine.
                let patience = tokio::time::Duration::from_millis(500);
                let _ = tokio::time::timeout(patience, question).await;
                text_result("gave up")
            }
            "form" => {
                let form = serde_json::from_str(arguments.get()).unwrap();
                let answers = self.fill_in(form, &context).await?;
                text_result(&serde_json::to_string(&answers).unwrap())
            }
            "sample" => {
                let answer = context
                    .outbound
                    .request("sampling/createMessage", Some(raw("{}")));
                match answer.await {
                    Ok(answer) => text_result(answer.get()),
                    Err(OutboundError::Refused(error)) => return Err(error),
                    Err(OutboundError::Gone(_)) => text_result("gone"),
                }
            }
            "log" => {
                for level in ["info", "error"] {
                    let params = format!(r#"{{"level":"{level}","data":"x"}}"#);
                    let message = Notification::new("notifications/message", Some(raw(&params)));
                    let _ = context.outbound.notify(message).await;
                }
                text_result(context.log_level.map_or("none", |level| level.as_str()))
            }
            "change" => {
                let changed = Notification::new("notifications/tools/list_changed", None);
                let _ = context.outbound.notify(changed).await;
                text_result("changed")
            }
            "panic" => panic!("as asked"),
            other => text_result(&format!("no tool {other}")),
        })
    }

    async fn fill_in(
        &self,
        form: Form,
        context: &RequestContext,
    ) -> Result<BTreeMap<String, Value>, ErrorObject> {
        let mut answers = BTreeMap::new();
        for names in &form.rounds {
            let questions = names.iter().map(|name| {
                let message = format!("{}/{name}", form.tag);
                let params = json!({
                    "message": message,
                    "requestedSchema": {"type": "object", "properties": {}},
                });
                let params = to_raw_value(&params).unwrap();
                context
                    .outbound
                    .request_as(name, "elicitation/create", Some(params))
            });
            let given = try_join_all(questions).await.map_err(|error| {
                self.events.send_modify(|events| events.outbound_gone += 1);
                match error {
                    OutboundError::Refused(error) => error,
                    OutboundError::Gone(gone) => ErrorObject::internal(gone.to_string()),
                }
            })?;
            for (name, answer) in names.iter().zip(given) {
                let answer = serde_json::from_str(answer.get()).unwrap();
                answers.insert(name.clone(), answer);
            }
        }
        Ok(answers)
    }

    fn subscribed(&self, sign: char, params: &RawValue) -> Result<Box<RawValue>, ErrorObject> {
        let params: Value = serde_json::from_str(params.get()).unwrap();
        let uri = params["uri"].as_str().unwrap();
        if uri.starts_with("secret:") {
            return Err(ErrorObject::invalid_params("not this one"));
        }
        let entry = format!("{sign}{uri}");
        self.events
            .send_modify(|events| events.subscriptions.push(entry));
        Ok(raw("{}"))
    }
}

impl Service for Script {
    async fn initialize(&self, connection: &Connection) -> Result<InitializeResult, ErrorObject> {
        if connection.client.name == "unwelcome" {
            return Err(ErrorObject::invalid_params("not you"));
        }
        Ok(InitializeResult {
            capabilities: raw(
                r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}"#,
            ),
            server_info: raw(r#"{"name":"script","version":"1"}"#),
            instructions: None,
        })
    }

    async fn request(
        &self,
        request: Request,
        context: RequestContext,
    ) -> Result<Box<RawValue>, ErrorObject> {
        let params = request.params.unwrap_or_else(|| raw("{}"));
        match request.method.as_str() {
            "tools/list" => Ok(raw(
                r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#,
            )),
            "tools/call" => {
                self.events.send_modify(|events| events.begun += 1);
                let call = serde_json::from_str(params.get())
                    .map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
                let result = self.call(call, context).await;
                self.events.send_modify(|events| events.finished += 1);
                result
            }
            "resources/read" => Err(ErrorObject::new(
                codes::RESOURCE_NOT_FOUND,
                "Resource not found",
            )),
            "resources/subscribe" => self.subscribed('+', &params),
            "resources/unsubscribe" => self.subscribed('-', &params),
            method => Err(ErrorObject::method_not_found(method)),
        }
    }

    async fn notification(&self, notification: Notification, connection: Arc<Connection>) {
        if notification.method == "notifications/test/ask" {
            let answer = connection.outbound().request("roots/list", None).await;
            assert!(answer.is_ok());
        }
        self.events
            .send_modify(|events| events.notifications.push(notification.method));
    }

    fn parameter_headers(&self, tool: &str) -> Option<Arc<ParameterHeaders>> {
        let schema = raw(
            r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
        );
        (tool == "regional").then(|| Arc::new(ParameterHeaders::of_schema(&schema).unwrap()))
    }

    fn closed(&self, _connection: &Connection) {
        self.events.send_modify(|events| events.closed += 1);
    }
}

/// What authentication would have found out about a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Principal(pub(crate) String);
