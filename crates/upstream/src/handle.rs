//! An upstream as the rest of the house holds it: its status, and a way to call it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use config::ServerConfig;
use mcp::client::{Era, RequestError};
use mcp::{ErrorObject, LogLevel, RawValue};
use policy::{ServerName, ToolName};
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use crate::actor::{Actor, Command};
use crate::client::{OnBehalf, may_ask};
use crate::connect::{Connector, Surroundings};
use crate::connection::{Connection, Outgoing};
use crate::failure::chain;
use crate::fleet::SharedAudience;
use crate::params::call_params;
use crate::pool::{Lease, Pool};
use crate::state::{State, Status};
use crate::stderr::{LogCursor, LogPage, StderrLog};
use crate::subscriptions::Subscriptions;
use crate::switchboard::Surface;

/// One upstream, shared by all clients.
#[derive(Debug)]
pub struct Upstream {
    server: ServerConfig,
    status: watch::Receiver<Arc<Status>>,
    /// The connection that all share.
    connection: Arc<ArcSwapOption<Connection>>,
    /// The connections that one client has to itself.
    pool: Arc<Pool>,
    subscriptions: Arc<Subscriptions>,
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

/// Any request, as it goes to the upstream.
#[derive(Debug)]
pub struct Forward<'a> {
    pub method: &'a str,
    /// Sent as they are, except for the progress token.
    pub params: Option<Box<RawValue>>,
    /// Gets the params of progress notifications, as the server sent them.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// Whom the server's questions go to; without it, it has nobody to ask.
    pub client: Option<&'a OnBehalf>,
    /// Set before anything goes out; while it is not, the server knows nothing of the request.
    pub sent: Option<&'a AtomicBool>,
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
    /// As in [`Forward::sent`].
    pub sent: Option<&'a AtomicBool>,
}

/// A connection that a request may use.
enum Chosen {
    Shared(Arc<Connection>),
    Leased(Lease),
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
    /// The server needed to know something first, and the client would not tell.
    #[error("the server asked for `{method}`, and the client refused: {source}")]
    InputRefused { method: String, source: ErrorObject },
    /// The client needs a connection of its own, and there was none to be had.
    #[error("{server} could not be connected to once more for this client: {reason}")]
    NoConnection { server: ServerName, reason: String },
}

// === impl Upstream ===

impl Upstream {
    /// Starts the actor; returns at once, however slow the server is.
    pub(crate) fn start(
        server: ServerConfig,
        surroundings: Surroundings,
        changed: watch::Sender<u64>,
        audience: SharedAudience,
    ) -> Self {
        let awake = server.enabled && !surroundings.dormant;
        let first = match (server.enabled, awake) {
            (false, _) => State::Disabled,
            (true, false) => State::Stopped,
            (true, true) => State::Connecting,
        };
        let (status_sender, status) = watch::channel(Arc::new(Status::new(first)));
        let (commands, receiver) = mpsc::channel(8);
        let connection = Arc::new(ArcSwapOption::empty());
        let log_path = surroundings
            .log_dir
            .as_ref()
            .map(|directory| directory.join(format!("server-{}.log", server.name)));
        let secrets = server.secrets(&surroundings.environment);
        let log = StderrLog::new(log_path.as_deref(), awake, &secrets);
        let limits = Arc::new(ArcSwap::from_pointee(Limits::of(&server)));
        let connector = Connector {
            server: server.clone(),
            surroundings,
            log: log.clone(),
        };
        let surface = Surface {
            server: server.name.clone(),
            audience,
            tools_changed: Arc::new(Notify::new()),
            renewed: Arc::new(Notify::new()),
        };
        let pool = Pool::new(connector.clone(), surface.clone());
        let subscriptions = Arc::<Subscriptions>::default();
        let actor = Actor {
            connector,
            limits: Arc::clone(&limits),
            surface,
            status: status_sender,
            changed,
            connection: Arc::clone(&connection),
            pool: Arc::clone(&pool),
            subscriptions: Arc::clone(&subscriptions),
            commands: receiver,
        };
        if awake {
            tokio::spawn(actor.run());
        }
        Self {
            slots: Semaphore::new(server.max_concurrency.get()),
            server,
            status,
            connection,
            pool,
            subscriptions,
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
            connection: Arc::clone(&self.connection),
            pool: Arc::clone(&self.pool),
            subscriptions: Arc::clone(&self.subscriptions),
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
        let params = call_params(call.tool, call.arguments, call.meta).map_err(CallError::Meta)?;
        let forward = Forward {
            method: "tools/call",
            params: Some(params),
            progress: call.progress,
            client: None,
            sent: call.sent,
        };
        self.request(forward).await
    }

    /// Sends a request and returns its result as the server wrote it. Dropping the future cancels
    /// it at the server.
    pub async fn request(&self, forward: Forward<'_>) -> Result<Box<RawValue>, CallError> {
        let deadline = Instant::now() + self.server.timeout;
        let slot = tokio::time::timeout_at(deadline.into(), self.slots.acquire());
        let _slot = slot.await.map_err(|_| self.timed_out())?;
        let shared = self.shared()?;
        let chosen = match forward.client {
            // The way of nearly all calls: it costs nothing but this question.
            None => Chosen::Shared(shared),
            Some(client) => Box::pin(self.choose(client, forward.method, shared, deadline)).await?,
        };
        let outgoing = Outgoing {
            method: forward.method,
            params: forward.params,
            progress: forward.progress,
            timeout: deadline.saturating_duration_since(Instant::now()),
        };
        if let Some(sent) = forward.sent {
            sent.store(true, Ordering::Relaxed);
        }
        let answer = match forward.client {
            None => chosen.connection().send_alone(outgoing).await,
            // Boxed, so that other calls do not carry the larger state of this one.
            Some(client) => Box::pin(chosen.connection().send_for(client, outgoing)).await,
        };
        answer.map_err(|error| self.failed(error))
    }

    /// Passes a notification of a client on. One that cannot be passed on is lost, as on any wire.
    pub async fn notify(&self, method: &str, params: Option<Box<RawValue>>, client: &OnBehalf) {
        let held = client.session.as_deref();
        let held = held.and_then(|session| self.pool.held_by(session));
        let sent = match held {
            Some(lease) => lease.connection.client.notify(method, params).await,
            // What a client can do changed, but the shared connection never said it could.
            None if method == "notifications/roots/list_changed" => return,
            None => match self.shared() {
                Ok(shared) => shared.client.notify(method, params).await,
                Err(_) => return,
            },
        };
        if let Err(error) = sent {
            tracing::debug!(server = %self.server.name, method, ?error, "a notification was lost");
        }
    }

    /// Has the server tell of changes of a resource, for one more client.
    pub async fn subscribe(&self, uri: &str) -> Result<(), CallError> {
        let shared = self.shared()?;
        let adding = self.subscriptions.add(uri, &shared, self.server.timeout);
        adding.await.map_err(|error| self.failed(error))
    }

    /// One client less wants to hear of the resource.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), CallError> {
        let shared = self.connection.load_full();
        let timeout = self.server.timeout;
        let removing = self.subscriptions.remove(uri, shared.as_deref(), timeout);
        removing.await.map_err(|error| self.failed(error))
    }

    /// Has a legacy server log from this level on. A modern one is told with each request.
    pub async fn log_from(&self, level: LogLevel) -> Result<(), CallError> {
        let shared = self.shared()?;
        if shared.client.era() == Era::Modern {
            return Ok(());
        }
        let telling = shared.set_log_level(level).await;
        telling.map_err(|error| self.failed(error))
    }

    /// A legacy client is gone, and what was kept for it is given up.
    pub fn release(&self, session: &str) {
        self.pool.release(session);
    }

    fn shared(&self) -> Result<Arc<Connection>, CallError> {
        let connection = self.connection.load_full();
        connection.ok_or_else(|| CallError::Unavailable {
            server: self.name().clone(),
            state: self.status().state.clone(),
        })
    }

    /// A modern server is told with each request whom it is for, and a client that can be asked
    /// nothing is like any other. Only the rest needs a connection of its own.
    async fn choose(
        &self,
        client: &OnBehalf,
        method: &str,
        shared: Arc<Connection>,
        deadline: Instant,
    ) -> Result<Chosen, CallError> {
        if shared.client.era() == Era::Modern || !client.is_interactive() {
            return Ok(Chosen::Shared(shared));
        }
        if !may_ask(method) {
            let held = client.session.as_deref();
            let held = held.and_then(|session| self.pool.held_by(session));
            return Ok(held.map_or(Chosen::Shared(shared), Chosen::Leased));
        }
        let leasing = tokio::time::timeout_at(deadline.into(), self.pool.lease(client));
        match leasing.await {
            Ok(Ok(lease)) => Ok(Chosen::Leased(lease)),
            Ok(Err(failure)) => Err(CallError::NoConnection {
                server: self.name().clone(),
                reason: chain(&failure),
            }),
            Err(_) => Err(self.timed_out()),
        }
    }

    fn timed_out(&self) -> CallError {
        CallError::Timeout {
            after: self.server.timeout,
        }
    }

    fn failed(&self, error: RequestError) -> CallError {
        match error {
            RequestError::Rpc(error) => CallError::Rpc(error),
            RequestError::Timeout { .. } => self.timed_out(),
            RequestError::Params(error) => CallError::Meta(error),
            RequestError::InputRefused { method, source } => {
                CallError::InputRefused { method, source }
            }
            other => CallError::Wire(other),
        }
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
// === impl Chosen ===

impl Chosen {
    fn connection(&self) -> &Connection {
        match self {
            Self::Shared(connection) => connection,
            Self::Leased(lease) => &lease.connection,
        }
    }
}

fn failure_suffix(state: &State) -> String {
    state
        .failure()
        .map(|failure| format!(": {failure}"))
        .unwrap_or_default()
}
