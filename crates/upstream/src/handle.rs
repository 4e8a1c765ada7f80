//! The handle of an upstream: its status, and how it is called.

mod choice;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use catalog::ToolDefinition;
use config::ServerConfig;
use mcp::client::{Era, Listing, RequestError};
use mcp::{ErrorObject, Json, LogLevel, RawValue};
use platform::Endings;
use policy::{ServerName, ToolName};
use tokio::sync::{Notify, mpsc, watch};

use crate::actor::{Actor, Orders};
use crate::backoff::Retries;
use crate::client::OnBehalf;
use crate::connect::{Connector, LaunchContext};
use crate::connection::{Connection, Outgoing};
use crate::failure::{Loss, chain};
use crate::fleet::SharedAudience;
use crate::listing::budget;
use crate::params::call_params;
use crate::pool::Pool;
use crate::queue::{Queue, Slot};
use crate::starts::Starts;
use crate::state::{State, Status};
use crate::stderr::{LogCursor, LogPage, StderrLog};
use crate::subscriptions::Subscriptions;
use crate::switchboard::{Asked, ServerContext};
use crate::variants::{Seen, Variants};

use self::choice::Chosen;

/// What all upstreams of a fleet share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub changed: watch::Sender<u64>,
    pub audience: SharedAudience,
    pub retries: Arc<Retries>,
}

/// One upstream, shared by all clients.
#[derive(Debug)]
pub struct Upstream {
    server: ServerConfig,
    status: watch::Receiver<Arc<Status>>,
    /// The connection that all share.
    connection: Arc<ArcSwapOption<Connection>>,
    /// Further connections, those that one client has to itself among them.
    pool: Arc<Pool>,
    /// Definitions of tools that are not those of the main connection.
    seen: Arc<Seen>,
    /// When the tools were last listed because of a name that was not known. Held meanwhile.
    looked: Arc<tokio::sync::Mutex<Option<Instant>>>,
    asked: Asked,
    changed: watch::Sender<u64>,
    subscriptions: Arc<Subscriptions>,
    orders: Orders,
    queue: Queue,
    log: StderrLog,
    server_limits: Arc<ArcSwap<ServerLimits>>,
    limits: config::Limits,
}

/// How long restarting waits for the actor to take note: a bound, should it be gone.
const TAKEN_NOTE: Duration = Duration::from_secs(1);

/// What the actor goes by that can change while the connection stays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerLimits {
    pub timeout: Duration,
    pub refresh_interval: Option<Duration>,
}

/// Any request, as it goes to the upstream.
#[derive(Debug)]
pub struct Forward<'a> {
    pub method: &'a str,
    /// Sent as they are, except for the progress token.
    pub params: Option<Json<'a>>,
    /// Gets the params of progress notifications, as the server sent them.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// The client that the server's questions go to; without one they are refused.
    pub client: Option<&'a OnBehalf>,
    /// Set before anything goes out; while it is not, the server knows nothing of the request.
    pub sent: Option<&'a AtomicBool>,
    /// Whether a `tools/call` has no effects and may be sent twice. Other requests always may.
    pub repeatable: bool,
}

/// A call of one tool.
#[derive(Debug)]
pub struct ToolCall<'a> {
    pub tool: &'a ToolName,
    /// The arguments, sent exactly as they are.
    pub arguments: Option<&'a Json<'a>>,
    /// The members of `_meta` that the client sent; its progress token is replaced by our own.
    pub meta: Option<&'a Json<'a>>,
    /// Gets the params of progress notifications, as the server sent them.
    pub progress: Option<mpsc::Sender<Box<RawValue>>>,
    /// As in [`Forward::client`].
    pub client: Option<&'a OnBehalf>,
    /// As in [`Forward::sent`].
    pub sent: Option<&'a AtomicBool>,
    /// Whether the call has no effects and may be sent twice.
    pub repeatable: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The upstream is not connected.
    #[error("{server} {}{}", condition(.state), failure_suffix(.state))]
    Unavailable { server: ServerName, state: State },
    /// So many calls wait already that this one was turned away.
    #[error(
        "{server} is busy: {running} calls are under way and {waiting} wait; this one was not sent, \
         try again in {} s",
        .retry_after.as_secs()
    )]
    Busy {
        server: ServerName,
        running: usize,
        waiting: usize,
        retry_after: Duration,
    },
    /// The call waited for its turn and was not sent.
    #[error(
        "{server} was busy with other calls for {} s; this one was not sent",
        .after.as_secs_f64()
    )]
    NotSent { server: ServerName, after: Duration },
    /// The call was sent.
    #[error("no answer within {} s; it may still be running", .after.as_secs_f64())]
    Timeout { after: Duration },
    /// The connection was lost while the call was under way.
    #[error(
        "the connection to {server} was lost: {reason}; the call may have been carried out; see \
         `mcpproxy upstream logs {server}`"
    )]
    Lost { server: ServerName, reason: String },
    /// The answer is over `limits.upstream_message_bytes`.
    #[error(
        "the answer of {server} has more than {limit} bytes, which is the most that \
         `limits.upstream_message_bytes` allows; the call may have been carried out"
    )]
    TooLarge { server: ServerName, limit: usize },
    /// The call waited for its client's answer, and its connection was needed.
    #[error(
        "the question of {server} was not answered in time, and its connection was needed for \
         another client; the call was cancelled"
    )]
    Unanswered { server: ServerName },
    /// The server answered with a JSON-RPC error.
    #[error(transparent)]
    Rpc(ErrorObject),
    /// The request or the answer was lost on the way.
    #[error("{}", chain(.0))]
    Wire(#[source] RequestError),
    /// `_meta` was not an object.
    #[error("_meta is not an object")]
    Meta,
    /// The server needed to know something first, and the client would not tell.
    #[error("the server asked for `{method}`, and the client refused: {source}")]
    InputRefused { method: String, source: ErrorObject },
    /// The tools were wanted as the client gets them.
    #[error("the tools of {server} could not be listed: {reason}")]
    Listing { server: ServerName, reason: String },
    /// The client needs a connection of its own, and there was none to be had.
    #[error("{server} could not be connected to once more for this client: {reason}")]
    NoConnection { server: ServerName, reason: String },
}

// === impl Upstream ===

impl Upstream {
    /// Starts the actor; returns at once, however slow the server is.
    pub(crate) fn start(
        server: ServerConfig,
        launch_context: LaunchContext,
        limits: &config::Limits,
        shared: Shared,
        known_tools: Vec<Arc<ToolDefinition>>,
    ) -> Self {
        let enabled = server.enabled;
        let (first, known_tools) = if enabled {
            (State::Connecting, known_tools)
        } else {
            (State::Disabled, Vec::new())
        };
        let (status_sender, status) = watch::channel(Arc::new(Status::new(first, known_tools)));
        let orders = Orders::default();
        let connection = Arc::new(ArcSwapOption::empty());
        let log_path = launch_context
            .log_dir
            .as_ref()
            .map(|directory| directory.join(format!("server-{}.log", server.name)));
        let log = StderrLog::new(
            log_path.as_deref(),
            enabled,
            launch_context.redactor.clone(),
        );
        let server_limits = Arc::new(ArcSwap::from_pointee(ServerLimits::of(&server)));
        let connector = Connector {
            server: server.clone(),
            launch_context,
            log: log.clone(),
            limits: *limits,
            endings: Endings::default(),
            starts: Starts::new(limits),
            failed_starts: Starts::new(limits),
            probe_is_fatal: Arc::default(),
        };
        let asked = Asked::new(connector.launch_context.eras.clone(), server.clone());
        let seen = Arc::<Seen>::default();
        let changed = shared.changed.clone();
        let context = ServerContext {
            server: server.name.clone(),
            asked: asked.clone(),
            audience: shared.audience,
            tools_changed: Arc::new(Notify::new()),
            renewed: Arc::new(Notify::new()),
        };
        let pool = Pool::new(connector.clone(), context.clone());
        let subscriptions = Arc::<Subscriptions>::default();
        let actor = Actor {
            connector,
            limits: Arc::clone(&server_limits),
            context,
            status: status_sender,
            changed: shared.changed,
            connection: Arc::clone(&connection),
            pool: Arc::clone(&pool),
            seen: Arc::clone(&seen),
            subscriptions: Arc::clone(&subscriptions),
            orders: orders.clone(),
            retries: shared.retries,
            current: std::sync::Mutex::default(),
        };
        if enabled {
            tokio::spawn(actor.run());
        }
        Self {
            queue: Queue::new(server.max_concurrency.get(), limits.queued_calls),
            server,
            status,
            connection,
            pool,
            seen,
            looked: Arc::default(),
            asked,
            changed,
            subscriptions,
            orders,
            log,
            server_limits,
            limits: *limits,
        }
    }

    /// The same upstream, connected as it is, for callers that come from now on. Calls that are
    /// under way keep the limits they began with.
    pub(crate) fn with_limits(&self, server: ServerConfig) -> Self {
        self.server_limits
            .store(Arc::new(ServerLimits::of(&server)));
        Self {
            queue: Queue::new(server.max_concurrency.get(), self.limits.queued_calls),
            server_limits: Arc::clone(&self.server_limits),
            limits: self.limits,
            server,
            status: self.status.clone(),
            connection: Arc::clone(&self.connection),
            pool: Arc::clone(&self.pool),
            seen: Arc::clone(&self.seen),
            looked: Arc::clone(&self.looked),
            asked: self.asked.clone(),
            changed: self.changed.clone(),
            subscriptions: Arc::clone(&self.subscriptions),
            orders: self.orders.clone(),
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

    /// Like [`Upstream::settled`], for a caller that needs the upstream: one that has just been
    /// lost is waited for as well, and one that is down is tried again sooner.
    pub async fn available(&self, deadline: Instant) -> Arc<Status> {
        if matches!(self.status().state, State::Waiting { .. }) {
            self.orders.wanted.notify_one();
        }
        let mut status = self.status.clone();
        let waiting = status.wait_for(|status| !status.state.is_passing());
        let _ = tokio::time::timeout_at(deadline.into(), waiting).await;
        self.status()
    }

    /// Has the upstream connected again, and returns as soon as that has begun: the outcome shows
    /// in its status. A disabled upstream has nothing to restart.
    pub async fn restart(&self) {
        let attempts = self.status().attempts;
        self.orders.restart.notify_one();
        let mut status = self.status.clone();
        let begun =
            status.wait_for(|status| status.attempts > attempts || !status.state.is_settled());
        let _ = tokio::time::timeout(TAKEN_NOTE, begun).await;
    }

    /// Ends the connection and the process, and waits until they are gone.
    pub(crate) async fn stop(&self) {
        self.orders.stop.cancel();
        let mut status = self.status.clone();
        // The actor drops its end of the channel when everything is down.
        while status.changed().await.is_ok() {}
    }

    /// Calls a tool and returns its result as the server wrote it. Dropping the future cancels
    /// the call at the server.
    pub async fn call_tool(&self, call: ToolCall<'_>) -> Result<Box<RawValue>, CallError> {
        let params = call_params(call.tool, call.arguments, call.meta).ok_or(CallError::Meta)?;
        let forward = Forward {
            method: "tools/call",
            params: Some(params),
            progress: call.progress,
            client: call.client,
            sent: call.sent,
            repeatable: call.repeatable,
        };
        self.request(forward).await
    }

    /// Sends a request and returns its result as the server wrote it. Dropping the future cancels
    /// it at the server.
    ///
    /// The timeout is one for waiting and running. A call that has not had its turn when only a
    /// quarter of that is left is not sent any more: it would hardly be answered in time.
    pub async fn request(&self, forward: Forward<'_>) -> Result<Box<RawValue>, CallError> {
        let timeout = self.server.timeout;
        let began = Instant::now();
        let sent_by = began + timeout * 3 / 4;
        let (mut chosen, mut slot) = match forward.client {
            None if !self.asked.get() => {
                let slot = self.slot(began, sent_by).await?;
                (Chosen::Shared(self.shared()?), slot)
            }
            client => Box::pin(self.turn_for(client, began, sent_by)).await?,
        };
        let sent = Instant::now();
        let outgoing = Outgoing {
            method: forward.method,
            params: forward.params,
            progress: forward.progress,
            timeout: timeout.saturating_sub(sent - began),
            repeatable: forward.repeatable,
        };
        let connection = chosen.connection();
        if let Some(sent) = forward.sent {
            sent.store(true, Ordering::Relaxed);
        }
        let answer = match forward.client {
            None => connection.send_alone(outgoing).await,
            // Boxed, so that other calls do not carry the larger state of this one.
            Some(client) => {
                let taken_away = chosen.taken_away();
                let sending = connection.send_for(client, outgoing, |parked| {
                    slot.park(parked);
                    chosen.park(parked);
                });
                let sending = Box::pin(async {
                    tokio::select! {
                        biased;
                        answer = sending => Some(answer),
                        () = taken_away => None,
                    }
                });
                let Some(answer) = sending.await else {
                    return Err(CallError::Unanswered {
                        server: self.name().clone(),
                    });
                };
                answer
            }
        };
        self.queue.took(sent.elapsed());
        if let (Chosen::Leased(_), Some(main)) = (&chosen, self.connection.load_full()) {
            // What is wrong on another connection may be wrong with the server, whose state is that
            // of the main one.
            main.note(&answer);
        }
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(Box::pin(self.failed(error, Some(&connection))).await),
        }
    }

    /// Begins to collect a list of the upstream page by page, within the limits.
    pub fn listing(&self) -> Listing {
        Listing::begin(budget(&self.limits))
    }

    /// Passes a notification of a client on. One that cannot be passed on is lost, as on any wire.
    pub async fn notify(&self, method: &str, params: Option<Box<RawValue>>, client: &OnBehalf) {
        let sent = match self.pool.held_by(client) {
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
    ///
    /// The shared connection outlives all others, so it is subscribed in any case. The connection that
    /// the client's own calls take is subscribed as well: over stdio it is another process.
    pub async fn subscribe(&self, uri: &str, client: &OnBehalf) -> Result<(), CallError> {
        let shared = self.shared()?;
        let adding = self.subscriptions.add(uri, &shared, self.server.timeout);
        if let Err(error) = adding.await {
            return Err(self.failed(error, Some(&shared)).await);
        }
        self.pool.subscribe(client, uri).await;
        Ok(())
    }

    /// One client less wants to hear of the resource.
    pub async fn unsubscribe(&self, uri: &str, client: &OnBehalf) -> Result<(), CallError> {
        self.pool.unsubscribe(client, uri).await;
        let shared = self.connection.load_full();
        let timeout = self.server.timeout;
        let removing = self.subscriptions.remove(uri, shared.as_deref(), timeout);
        match removing.await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error, shared.as_ref()).await),
        }
    }

    /// Has a legacy server log from this level on. A modern one is told with each request.
    pub async fn log_from(&self, level: LogLevel) -> Result<(), CallError> {
        let shared = self.shared()?;
        if shared.client.era() == Era::Modern {
            return Ok(());
        }
        match shared.set_log_level(level).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error, Some(&shared)).await),
        }
    }

    /// A legacy client is gone, and what was kept for it is given up.
    pub fn release(&self, session: &str) {
        self.pool.release(session);
    }

    fn shared(&self) -> Result<Arc<Connection>, CallError> {
        let connection = self.connection.load_full();
        connection.ok_or_else(|| {
            self.orders.wanted.notify_one();
            self.unavailable()
        })
    }

    fn unavailable(&self) -> CallError {
        CallError::Unavailable {
            server: self.name().clone(),
            state: self.status().state.clone(),
        }
    }

    /// A slot for a call, after those that came before it.
    async fn slot(&self, began: Instant, sent_by: Instant) -> Result<Slot<'_>, CallError> {
        if let Some(slot) = self.queue.try_slot() {
            return Ok(slot);
        }
        let place = self.queue.enter().map_err(|full| CallError::Busy {
            server: self.name().clone(),
            running: full.running,
            waiting: full.waiting,
            retry_after: full.retry_after,
        })?;
        self.before(sent_by, began, place.slot()).await
    }

    /// Waits for something that a call needs before it can be sent.
    async fn before<T>(
        &self,
        sent_by: Instant,
        began: Instant,
        wait: impl Future<Output = Option<T>>,
    ) -> Result<T, CallError> {
        let stopped = self.orders.stop.cancelled();
        tokio::select! {
            biased;
            () = stopped => Err(self.unavailable()),
            done = tokio::time::timeout_at(sent_by.into(), wait) => match done {
                Ok(Some(done)) => Ok(done),
                Ok(None) => Err(self.unavailable()),
                Err(_) => Err(CallError::NotSent {
                    server: self.name().clone(),
                    after: began.elapsed(),
                }),
            },
        }
    }

    /// What a caller is told of a request that failed.
    async fn failed(&self, error: RequestError, connection: Option<&Arc<Connection>>) -> CallError {
        let server = || self.name().clone();
        match error {
            RequestError::Rpc(error) => CallError::Rpc(error),
            // Less than the whole timeout if the call waited before it was sent, more if progress extended it.
            RequestError::Timeout { after } => CallError::Timeout {
                after: Duration::from_secs(after.as_secs()).max(self.server.timeout),
            },
            RequestError::Params(_) => CallError::Meta,
            RequestError::InputRefused { method, source } => {
                CallError::InputRefused { method, source }
            }
            RequestError::TooLarge { .. } => CallError::TooLarge {
                server: server(),
                limit: self.limits.upstream_message_bytes,
            },
            RequestError::NotSent(_) => {
                self.orders.wanted.notify_one();
                self.unavailable()
            }
            RequestError::Closed(reason) => {
                // How the process ended is known a moment later.
                let loss = match connection {
                    Some(connection) => connection.why_lost().await,
                    None => None,
                };
                let loss = loss.unwrap_or_else(|| Arc::new(Loss::Closed(reason)));
                CallError::Lost {
                    server: server(),
                    reason: self.log.redacted(&loss.to_string()),
                }
            }
            other => CallError::Wire(other),
        }
    }
}

impl CallError {
    /// Whether the server may have got the call, so that it may have had an effect.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Unavailable { .. }
            | Self::Busy { .. }
            | Self::NotSent { .. }
            | Self::Meta
            | Self::Listing { .. }
            | Self::NoConnection { .. } => false,
            Self::Wire(RequestError::Transport(error)) => !error.is_connect(),
            Self::Timeout { .. }
            | Self::Rpc(_)
            | Self::Lost { .. }
            | Self::TooLarge { .. }
            | Self::Unanswered { .. }
            | Self::Wire(_)
            | Self::InputRefused { .. } => true,
        }
    }
}

impl ServerLimits {
    fn of(server: &ServerConfig) -> Self {
        Self {
            timeout: server.timeout,
            refresh_interval: server.refresh_interval,
        }
    }
}
/// The state as the end of a sentence.
fn condition(state: &State) -> String {
    match state {
        State::Failed { .. } => "has failed".to_owned(),
        other => format!("is {}", other.as_str()),
    }
}

fn failure_suffix(state: &State) -> String {
    state
        .failure()
        .map(|failure| format!(": {failure}"))
        .unwrap_or_default()
}
