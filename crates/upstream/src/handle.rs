//! An upstream as the rest of the house holds it: its status, and a way to call it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use config::{ResolvedTransport, ServerConfig};
use mcp::client::{Client, RequestError, RequestOptions};
use mcp::{ErrorObject, RawValue};
use policy::{ServerName, ToolName};
use tokio::sync::{Semaphore, mpsc, watch};

use crate::actor::{Actor, Command};
use crate::connect::Surroundings;
use crate::failure::chain;
use crate::params::call_params;
use crate::state::{State, Status};
use crate::stderr::{LogCursor, LogPage, StderrLog};

/// One upstream, shared by all clients.
#[derive(Debug)]
pub struct Upstream {
    server: ServerConfig,
    status: watch::Receiver<Arc<Status>>,
    client: Arc<ArcSwapOption<Client>>,
    commands: mpsc::Sender<Command>,
    slots: Semaphore,
    log: StderrLog,
    limits: Arc<ArcSwap<Limits>>,
}

/// What the actor goes by that can change while the connection stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub timeout: Duration,
    pub refresh_interval: Option<Duration>,
}

/// A call of one tool.
#[derive(Debug)]
pub struct ToolCall<'a> {
    pub tool: &'a ToolName,
    /// The arguments, sent exactly as they are.
    pub arguments: Option<&'a RawValue>,
    /// The members of `_meta` that the client sent; its progress token is replaced by our own.
    pub meta: Option<&'a RawValue>,
    /// Gets the params of progress notifications, as the server sent them.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The upstream is not connected.
    #[error("{server} is {}{}", .state.as_str(), failure_suffix(.state))]
    Unavailable { server: ServerName, state: State },
    #[error("no answer within {} s", .after.as_secs_f64())]
    Timeout { after: Duration },
    /// The server answered with a JSON-RPC error.
    #[error(transparent)]
    Rpc(ErrorObject),
    /// The request or the answer was lost on the way.
    #[error("{}", chain(.0))]
    Wire(#[source] RequestError),
    /// `_meta` was not an object.
    #[error("_meta is not an object")]
    Meta(#[source] serde_json::Error),
}

// === impl Upstream ===

impl Upstream {
    /// Starts the actor; returns at once, however slow the server is.
    pub(crate) fn start(
        server: ServerConfig,
        surroundings: Surroundings,
        changed: watch::Sender<u64>,
    ) -> Self {
        let awake = server.enabled && !surroundings.dormant;
        let first = match (server.enabled, awake) {
            (false, _) => State::Disabled,
            (true, false) => State::Stopped,
            (true, true) => State::Connecting,
        };
        let (status_sender, status) = watch::channel(Arc::new(Status::new(first)));
        let (commands, receiver) = mpsc::channel(8);
        let client = Arc::new(ArcSwapOption::empty());
        let log_path = surroundings
            .log_dir
            .as_ref()
            .map(|directory| directory.join(format!("server-{}.log", server.name)));
        let resolved = server.resolve(&surroundings.environment).ok();
        let secrets = resolved.iter().flat_map(ResolvedTransport::secrets);
        let log = StderrLog::new(log_path.as_deref(), awake, secrets);
        let limits = Arc::new(ArcSwap::from_pointee(Limits::of(&server)));
        let actor = Actor {
            limits: Arc::clone(&limits),
            server: server.clone(),
            surroundings,
            log: log.clone(),
            status: status_sender,
            changed,
            client: Arc::clone(&client),
            commands: receiver,
        };
        if awake {
            tokio::spawn(actor.run());
        }
        Self {
            slots: Semaphore::new(server.max_concurrency.get()),
            server,
            status,
            client,
            commands,
            log,
            limits,
        }
    }

    /// The same upstream, connected as it is, for callers that come from now on. Calls that are
    /// under way keep the limits they began with.
    pub(crate) fn with_limits(&self, server: ServerConfig) -> Self {
        self.limits.store(Arc::new(Limits::of(&server)));
        Self {
            slots: Semaphore::new(server.max_concurrency.get()),
            limits: Arc::clone(&self.limits),
            server,
            status: self.status.clone(),
            client: Arc::clone(&self.client),
            commands: self.commands.clone(),
            log: self.log.clone(),
        }
    }

    pub fn name(&self) -> &ServerName {
        &self.server.name
    }

    pub fn config(&self) -> &ServerConfig {
        &self.server
    }

    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status.borrow())
    }

    /// What the server wrote to stderr: the last lines, or those after a cursor.
    pub fn log(&self, after: Option<LogCursor>, most: usize) -> LogPage {
        self.log.page(after, most)
    }

    /// Waits while the upstream is being connected, at most until the deadline.
    pub async fn settled(&self, deadline: Instant) -> Arc<Status> {
        let mut status = self.status.clone();
        let waiting = status.wait_for(|status| status.state.is_settled());
        // Past the deadline, or with the actor gone, what is published is the answer.
        let _ = tokio::time::timeout_at(deadline.into(), waiting).await;
        self.status()
    }

    pub async fn restart(&self) {
        // A disabled upstream has no actor to listen, and nothing to restart.
        let _ = self.commands.send(Command::Restart).await;
    }

    /// Ends the connection and the process, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        let _ = self.commands.send(Command::Stop).await;
        let mut status = self.status.clone();
        // The actor drops its end of the channel when everything is down.
        while status.changed().await.is_ok() {}
    }

    /// Calls a tool and returns its result as the server wrote it. Dropping the future cancels
    /// the call at the server.
    pub async fn call_tool(&self, call: ToolCall<'_>) -> Result<Box<RawValue>, CallError> {
        let deadline = Instant::now() + self.server.timeout;
        let timed_out = || CallError::Timeout {
            after: self.server.timeout,
        };
        let slot = tokio::time::timeout_at(deadline.into(), self.slots.acquire());
        let _slot = slot.await.map_err(|_| timed_out())?;
        let Some(client) = self.client.load_full() else {
            return Err(CallError::Unavailable {
                server: self.name().clone(),
                state: self.status().state.clone(),
            });
        };
        let options = RequestOptions {
            timeout: Some(deadline.saturating_duration_since(Instant::now())),
            ..RequestOptions::default()
        };
        let answer = match call.progress {
            None => {
                let params = call_params(call.tool, call.arguments, call.meta, None)
                    .map_err(CallError::Meta)?;
                client.request("tools/call", Some(params), options).await
            }
            Some(sink) => {
                let (token, mut progress) = client.progress(PROGRESS_BACKLOG);
                let params = call_params(call.tool, call.arguments, call.meta, Some(&token))
                    .map_err(CallError::Meta)?;
                let request = client.request("tools/call", Some(params), options);
                tokio::pin!(request);
                loop {
                    tokio::select! {
                        biased;
                        Some(update) = progress.next() => {
                            // A client that stopped listening still wants its answer.
                            let _ = sink.send(update).await;
                        }
                        answer = &mut request => break answer,
                    }
                }
            }
        };
        answer.map_err(|error| match error {
            RequestError::Rpc(error) => CallError::Rpc(error),
            RequestError::Timeout { .. } => timed_out(),
            other => CallError::Wire(other),
        })
    }
}

impl Limits {
    fn of(server: &ServerConfig) -> Self {
        Self {
            timeout: server.timeout,
            refresh_interval: server.refresh_interval,
        }
    }
}

/// How many progress notifications may wait for a slow client before they slow the server down.
const PROGRESS_BACKLOG: usize = 64;

fn failure_suffix(state: &State) -> String {
    state
        .failure()
        .map(|failure| format!(": {failure}"))
        .unwrap_or_default()
}
