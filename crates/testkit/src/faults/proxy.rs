//! A running daemon that a case is let loose on, and how it is called.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::machine::Usage;
use super::setup::OTHER;
use crate::{Home, Record, Refusal, Session, TestDaemon, wait_until};

/// How long a caller waits for an answer unless a case says otherwise.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

const WARM_UP: usize = 40;
const PROBE_PAUSE: Duration = Duration::from_millis(40);

/// A running daemon with a healthy upstream beside those of the case.
#[derive(Debug)]
pub(super) struct Proxy {
    pub(super) daemon: TestDaemon,
    /// How long the start took until the daemon was ready.
    pub(super) ready_after: Duration,
    pub(super) config: Value,
    pub(super) agent: Session,
    pub(super) before: Usage,
    /// Latencies of the healthy upstream before the case, in milliseconds.
    pub(super) baseline: Vec<f64>,
    pub(super) records: Vec<Record>,
    pub(super) figures: Vec<String>,
    pub(super) probe: Option<Probe>,
    /// Processes that are known to outlive their group.
    pub(super) exempt: Vec<u32>,
    /// How far above the start the memory may be at the end, in MiB.
    pub(super) memory_slack: f64,
}

/// Calls the healthy upstream again and again while the case runs.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) latencies: Arc<Mutex<Vec<f64>>>,
    task: JoinHandle<()>,
}

/// One of the three lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Read,
    Write,
    Destructive,
}

/// What came back for a call.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) took: Duration,
    /// The text of the result, or the error of the protocol.
    pub(super) answer: Result<String, Value>,
}

impl Lane {
    pub(super) fn operation(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }

    /// The tool of ours and its arguments, for a call of `tool`.
    pub(super) fn call(self, tool: &str, arguments: &Value) -> (String, Value) {
        let operation = self.operation();
        let intent = json!({"operation_type": operation});
        let arguments = json!({"name": tool, "args": arguments, "intent": intent});
        (format!("call_tool_{operation}"), arguments)
    }
}

impl Proxy {
    pub(super) async fn of(
        daemon: TestDaemon,
        ready_after: Duration,
        config: Value,
        records: Vec<Record>,
        probes: bool,
    ) -> Self {
        let tool = format!("{OTHER}:look");
        let agent = daemon.session_with(&[&tool]).await;
        let mut baseline = Vec::new();
        for _ in 0..WARM_UP {
            baseline.push(time_call(&agent, &tool).await);
        }
        let probe = if probes {
            Some(Probe::start(daemon.session().await, tool))
        } else {
            None
        };
        Self {
            before: Usage::of(daemon.pid()),
            daemon,
            ready_after,
            config,
            agent,
            baseline,
            records,
            figures: Vec::new(),
            probe,
            exempt: Vec::new(),
            memory_slack: 64.0,
        }
    }

    /// Puts a figure into the row.
    pub(super) fn note(&mut self, figure: impl Into<String>) {
        self.figures.push(figure.into());
    }

    /// Calls a tool on a lane; an answer must come within ten seconds.
    pub(super) async fn call(&self, lane: Lane, tool: &str, arguments: Value) -> Called {
        self.call_within(ANSWER, lane, tool, arguments).await
    }

    pub(super) async fn call_within(
        &self,
        deadline: Duration,
        lane: Lane,
        tool: &str,
        arguments: Value,
    ) -> Called {
        call(&self.agent, deadline, lane, tool, arguments).await
    }

    pub(super) async fn read(&self, tool: &str) -> Called {
        self.call(Lane::Read, tool, json!({})).await
    }

    /// Calls one of mcpproxy's own tools and takes its result apart.
    pub(super) async fn own(&self, tool: &str, arguments: &Value) -> Value {
        let result = within(ANSWER, tool, self.agent.call(tool, arguments)).await;
        serde_json::from_str(&result).expect("a result is JSON")
    }

    /// What the REST API says of a server.
    pub(super) async fn server(&self, name: &str) -> Value {
        self.daemon.api(&format!("/servers/{name}")).await
    }

    pub(super) async fn ready(&self, name: &str) {
        self.until(&format!("{name} is ready"), 20, async || {
            self.server(name).await["state"] == "ready"
        })
        .await;
    }

    /// Waits until a condition holds.
    pub(super) async fn until(
        &self,
        what: &str,
        seconds: u64,
        condition: impl AsyncFnMut() -> bool,
    ) {
        wait_until(what, Duration::from_secs(seconds), condition).await;
    }

    /// The records of the log that match, newest first.
    pub(super) async fn log(&self, query: &str) -> Vec<Value> {
        let page = self
            .daemon
            .api(&format!("/activity?limit=100&{query}"))
            .await;
        page["activities"].as_array().expect("records").clone()
    }

    /// Sends any request to the REST API with the key.
    pub(super) async fn rest(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let url = self.daemon.url(&format!("/api/v1{path}"));
        let mut request = crate::http_client()
            .request(method, url)
            .bearer_auth(self.daemon.key());
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = within(ANSWER, path, request.send())
            .await
            .expect("an answer");
        let status = answer.status().as_u16();
        (status, answer.json().await.unwrap_or_default())
    }

    /// Kills the daemon; its home is as it was left behind.
    pub(super) async fn killed(mut self) -> Home {
        self.probe.take();
        self.daemon.killed().await
    }

    /// Stops the daemon in order, without looking at anything.
    pub(super) async fn stopped(mut self) -> Home {
        self.probe.take();
        let (home, status) = self.daemon.stop().await;
        assert!(status.success(), "the daemon ended with {status}");
        home
    }
}

impl Probe {
    fn start(session: Session, tool: String) -> Self {
        let latencies: Arc<Mutex<Vec<f64>>> = Arc::default();
        let shared = Arc::clone(&latencies);
        let task = tokio::spawn(async move {
            loop {
                let milliseconds = time_call(&session, &tool).await;
                shared.lock().expect("the latencies").push(milliseconds);
                tokio::time::sleep(PROBE_PAUSE).await;
            }
        });
        Self { latencies, task }
    }

    /// Ends it; why a call failed, if one did.
    pub(super) async fn end(mut self) -> Option<String> {
        self.task.abort();
        let panic = (&mut self.task).await.err()?.try_into_panic().ok()?;
        Some(super::case::text_of(panic.as_ref()).to_owned())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Called {
    /// The result of a call that succeeded.
    #[track_caller]
    pub(super) fn ok(&self) -> Value {
        let result = self.result();
        assert_ne!(result["isError"], true, "{}", shown(&result));
        result
    }

    #[track_caller]
    pub(super) fn result(&self) -> Value {
        match &self.answer {
            Ok(text) => serde_json::from_str(text).expect("a result is JSON"),
            Err(error) => panic!("an error of the protocol: {error}"),
        }
    }

    /// The refusal of a call that was not carried out or failed.
    #[track_caller]
    pub(super) fn refused(&self) -> Refusal {
        Refusal::of(self.answer.as_ref().expect("a result"))
    }

    /// Whether anything but success came back.
    pub(super) fn failed(&self) -> bool {
        let is_error = |text: &String| {
            let result: Value = serde_json::from_str(text).unwrap_or_default();
            result["isError"] == true
        };
        self.answer.as_ref().map_or(true, is_error)
    }

    pub(super) fn ms(&self) -> f64 {
        self.took.as_secs_f64() * 1e3
    }
}

/// Calls a tool on a lane of `/mcp`.
pub(super) async fn call(
    session: &Session,
    deadline: Duration,
    lane: Lane,
    tool: &str,
    arguments: Value,
) -> Called {
    let (name, arguments) = lane.call(tool, &arguments);
    let params = json!({"name": name, "arguments": arguments}).to_string();
    let began = Instant::now();
    let request = session.request("tools/call", &params);
    let answer = within(deadline, &format!("the call of {tool}"), request).await;
    Called {
        took: began.elapsed(),
        answer: answer.result,
    }
}

/// Waits for a future and panics when it takes too long.
pub(super) async fn within<T>(
    deadline: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> T {
    let outcome = tokio::time::timeout(deadline, future).await;
    outcome.unwrap_or_else(|_| panic!("not within {deadline:?}: {what}"))
}

/// The beginning of a value, for messages.
pub(super) fn shown(value: &Value) -> String {
    value.to_string().chars().take(400).collect()
}

/// Calls a read-only tool that must succeed; the time it took in milliseconds.
async fn time_call(session: &Session, tool: &str) -> f64 {
    let called = call(session, ANSWER, Lane::Read, tool, json!({})).await;
    called.ok();
    called.ms()
}
