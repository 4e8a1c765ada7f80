//! The tasks extension: calls that are answered before they are done, and asked about later.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use mcp::server::RequestContext;
use mcp::{ErrorObject, codes};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::answers::{Answer, raw, said};
use super::asking::{ask, elicit, elicitation};

/// The name that the extension is negotiated by.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Every task of a fixture. They are kept for as long as it lives, and say so.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    by_id: Mutex<HashMap<String, Arc<Task>>>,
    last: AtomicU64,
}

#[derive(Debug)]
struct Task {
    id: String,
    created: Timestamp,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    updated: Timestamp,
    end: Option<End>,
    /// What the client was asked, and who waits for the answer.
    questions: BTreeMap<String, (Value, oneshot::Sender<Value>)>,
    work: Option<AbortHandle>,
}

#[derive(Debug)]
enum End {
    Completed(Value),
    Failed(ErrorObject),
    Cancelled,
}

/// Who is asked when a tool has a question: whoever waits for the answer of the call, or whoever
/// looks at the task.
enum Asked<'a> {
    Caller(&'a RequestContext),
    Watcher(&'a Task),
}

// === impl Tasks ===

impl Tasks {
    /// Calls a tool that becomes a task where the client knows the extension.
    pub(super) async fn call(&self, params: &Value, context: &RequestContext) -> Answer {
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let arguments = params["arguments"].clone();
        match name.as_str() {
            // These make no sense while somebody waits.
            "failing_job" | "test_tool_with_task" => negotiated(context)?,
            _ if negotiated(context).is_err() => {
                return work(&name, &arguments, Asked::Caller(context)).await;
            }
            _ => {}
        }
        let mut arguments = arguments;
        if name == "test_tool_with_task" {
            let properties = json!({"name": {"type": "string"}});
            let question = "What is your name?";
            let given = elicit(context, "user_name", question, &properties, &["name"]).await?;
            arguments = given["content"].clone();
        }
        Ok(self.start(name, arguments))
    }

    /// Starts the work, and answers with the task that it is.
    fn start(&self, tool: String, arguments: Value) -> Value {
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let now = Timestamp::now();
        let task = Arc::new(Task {
            id: format!("task-{number}"),
            created: now,
            state: Mutex::new(State {
                updated: now,
                end: None,
                questions: BTreeMap::new(),
                work: None,
            }),
        });
        let mut created = task.describe();
        created["resultType"] = "task".into();
        let tasks = Arc::clone(&task);
        let running = tokio::spawn(async move {
            let outcome = work(&tool, &arguments, Asked::Watcher(&tasks)).await;
            tasks.end(match outcome {
                Ok(result) => End::Completed(result),
                Err(error) => End::Failed(error),
            });
        });
        task.state.lock().expect("a task").work = Some(running.abort_handle());
        let mut by_id = self.by_id.lock().expect("the tasks");
        by_id.insert(task.id.clone(), task);
        created
    }

    pub(super) fn get(&self, params: &Value, context: &RequestContext) -> Answer {
        Ok(self.find(params, context)?.detail())
    }

    pub(super) fn update(&self, params: &Value, context: &RequestContext) -> Answer {
        let task = self.find(params, context)?;
        let mut state = task.state.lock().expect("a task");
        for (key, answer) in params["inputResponses"].as_object().into_iter().flatten() {
            if let Some((_, asked)) = state.questions.remove(key) {
                let _ = asked.send(answer.clone());
            }
        }
        state.updated = Timestamp::now();
        Ok(json!({}))
    }

    pub(super) fn cancel(&self, params: &Value, context: &RequestContext) -> Answer {
        self.find(params, context)?.end(End::Cancelled);
        Ok(json!({}))
    }

    fn find(&self, params: &Value, context: &RequestContext) -> Result<Arc<Task>, ErrorObject> {
        negotiated(context)?;
        let id = params["taskId"].as_str().unwrap_or_default();
        let by_id = self.by_id.lock().expect("the tasks");
        let unknown = || ErrorObject::invalid_params(format!("Unknown task: {id}"));
        by_id.get(id).cloned().ok_or_else(unknown)
    }
}

// === impl Task ===

impl Task {
    fn describe(&self) -> Value {
        let state = self.state.lock().expect("a task");
        json!({
            "taskId": self.id,
            "status": state.status(),
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": state.updated.to_string(),
            "ttlMs": null,
            "pollIntervalMs": 100,
        })
    }

    fn detail(&self) -> Value {
        let mut detail = self.describe();
        let state = self.state.lock().expect("a task");
        match &state.end {
            Some(End::Completed(result)) => detail["result"] = result.clone(),
            Some(End::Failed(error)) => detail["error"] = json!(error),
            None if !state.questions.is_empty() => {
                let questions = state.questions.iter();
                let questions =
                    questions.map(|(key, (question, _))| (key.clone(), question.clone()));
                detail["inputRequests"] = Value::Object(questions.collect());
            }
            Some(End::Cancelled) | None => {}
        }
        detail
    }

    async fn ask(&self, key: &str, method: &str, params: &Value) -> Answer {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state.lock().expect("a task");
            let question = json!({"method": method, "params": params});
            state.questions.insert(key.to_owned(), (question, answer));
            state.updated = Timestamp::now();
        }
        answered
            .await
            .map_err(|_| ErrorObject::internal("the task was cancelled"))
    }

    /// What has ended stays as it ended.
    fn end(&self, end: End) {
        let mut state = self.state.lock().expect("a task");
        if state.end.is_some() {
            return;
        }
        if let (End::Cancelled, Some(work)) = (&end, &state.work) {
            work.abort();
        }
        state.end = Some(end);
        state.questions.clear();
        state.updated = Timestamp::now();
    }
}

impl State {
    fn status(&self) -> &'static str {
        match &self.end {
            Some(End::Completed(_)) => "completed",
            Some(End::Failed(_)) => "failed",
            Some(End::Cancelled) => "cancelled",
            None if self.questions.is_empty() => "working",
            None => "input_required",
        }
    }
}

impl Asked<'_> {
    async fn confirm(&self, key: &str, message: &str) -> Answer {
        let properties = json!({"confirm": {"type": "boolean"}});
        let params = elicitation(message, &properties, &["confirm"]);
        match self {
            Self::Caller(context) => ask(context, key, "elicitation/create", &params).await,
            Self::Watcher(task) => task.ask(key, "elicitation/create", &params).await,
        }
    }
}

/// What the tools do, whoever waits for it.
async fn work(tool: &str, arguments: &Value, asked: Asked<'_>) -> Answer {
    match tool {
        "slow_compute" => {
            let seconds = arguments["seconds"].as_f64().unwrap_or_default();
            let time = Duration::try_from_secs_f64(seconds)
                .map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
            sleep(time).await;
            Ok(said(&format!("Computed {}", arguments["label"])))
        }
        "failing_job" => {
            let mut result = said("The job failed");
            result["isError"] = true.into();
            Ok(result)
        }
        "protocol_error_job" => Err(ErrorObject::internal("The job broke")),
        "confirm_delete" => {
            let question = format!("Delete {}?", arguments["filename"]);
            let answer = asked.confirm("confirm", &question).await?;
            Ok(said(&format!("Confirmed: {answer}")))
        }
        "multi_input" => {
            let (one, two) = tokio::try_join!(
                asked.confirm("first", "Is this right?"),
                asked.confirm("second", "Is that right?"),
            )?;
            Ok(said(&format!("{one} {two}")))
        }
        "test_tool_with_task" => Ok(said(&format!("Hello, {}!", arguments["name"]))),
        other => Err(ErrorObject::invalid_params(format!(
            "Unknown tool: {other}"
        ))),
    }
}

/// Refuses clients that did not say that they know the extension.
fn negotiated(context: &RequestContext) -> Result<(), ErrorObject> {
    let declared = context.connection.client.capabilities.get();
    let declared: Value = serde_json::from_str(declared).unwrap_or_default();
    if declared["extensions"].get(TASKS).is_some() {
        return Ok(());
    }
    let message = format!("The client must declare the extension {TASKS}");
    let mut error = ErrorObject::new(codes::MISSING_CLIENT_CAPABILITY, message);
    error.data = Some(raw(
        &json!({"requiredCapabilities": {"extensions": {TASKS: {}}}}),
    )?);
    Err(error)
}
