//! The life of one upstream: connect, list, serve, lose, wait, connect again.
//!
//! Orders are heard at every await: whatever the server leaves unanswered, it does not delay its
//! own end. What an order interrupts is dropped, and ends in the background within a bounded time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use mcp::Notification;
use mcp::client::{ListingOverrun, RequestError, RequestOptions};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::backoff::{self, Retries};
use crate::connect::Connector;
use crate::connection::Connection;
use crate::failure::{ConnectFailure, Failure, ListingError, Loss};
use crate::handle::ServerLimits;
use crate::health::{Finding, Times};
use crate::listing::list_tools;
use crate::pool::Pool;
use crate::state::{ServerIdentity, State, Status, ToolList};
use crate::subscriptions::Subscriptions;
use crate::switchboard::{ServerContext, Switchboard};
use crate::variants::Seen;

/// Announcements of changed tools that come this close together are answered by one listing.
const COALESCE: Duration = Duration::from_millis(200);

/// Listings that announcements ask for are at least this far apart.
const LISTING_PACE: Duration = Duration::from_secs(1);

/// How often the tools are listed anyway, for servers that never announce a change. It also
/// notices an HTTP server that went away without a word.
const REFRESH: Duration = Duration::from_mins(5);

/// What can be asked of a running actor. Clones ask the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Orders {
    /// End for good.
    pub stop: CancellationToken,
    /// Drop the connection, if any, and connect at once.
    pub restart: Arc<Notify>,
    /// A caller wants the upstream: do not wait for as long as might be.
    pub wanted: Arc<Notify>,
    /// A caller wants the tools listed again.
    pub relist: Arc<Notify>,
}

pub(crate) struct Actor {
    pub connector: Connector,
    pub limits: Arc<ArcSwap<ServerLimits>>,
    pub context: ServerContext,
    pub status: watch::Sender<Arc<Status>>,
    pub changed: watch::Sender<u64>,
    pub connection: Arc<ArcSwapOption<Connection>>,
    pub pool: Arc<Pool>,
    pub seen: Arc<Seen>,
    pub subscriptions: Arc<Subscriptions>,
    pub orders: Orders,
    pub retries: Arc<Retries>,
    /// The connection that is up, whether or not it takes calls yet.
    pub current: Mutex<Option<Arc<Connection>>>,
}

/// What comes after a connection or a pause.
enum Next {
    Stop,
    Restart,
    Retry,
    Lost(ConnectFailure),
}

/// What is wrong with a server that is connected.
#[derive(Debug, Default)]
struct Complaints {
    health: Option<Failure>,
    listing: Option<Failure>,
}

// === impl Actor ===

impl Actor {
    pub(crate) async fn run(self) {
        let mut attempt = 0;
        loop {
            self.publish(|status| {
                status.state = State::Connecting;
                status.attempts += 1;
            });
            let began = Instant::now();
            let mut next = tokio::select! {
                biased;
                () = self.orders.stop.cancelled() => Next::Stop,
                () = self.orders.restart.notified() => Next::Restart,
                failure = self.live_once(attempt) => Next::Lost(failure),
            };
            self.end_connection();
            if let Next::Lost(failure) = next {
                if began.elapsed() >= backoff::STEADY {
                    attempt = 0;
                }
                attempt += 1;
                next = self.wait_after(&failure, attempt, began).await;
            }
            match next {
                Next::Stop => break,
                Next::Restart => {
                    attempt = 0;
                    self.connector.starts.reset();
                    self.pool.clear();
                    self.publish(|status| status.state = State::Connecting);
                }
                Next::Retry | Next::Lost(_) => {}
            }
            // The old process may hold what the new one needs.
            tokio::select! {
                biased;
                () = self.orders.stop.cancelled() => break,
                () = self.connector.endings.wait() => {}
            }
        }
        self.pool.clear();
        self.connector.endings.wait().await;
        self.publish(|status| {
            status.state = State::Stopped;
            status.stale = true;
        });
    }

    /// One connection from its start, after this number of failures in a row, to its end, which it returns.
    async fn live_once(&self, failures: u32) -> ConnectFailure {
        let switchboard = Switchboard::shared(self.context.clone());
        let connected = match self.connector.connect(&switchboard).await {
            Ok(connected) => connected,
            Err(failure) => return failure,
        };
        let connection = Arc::new(Connection::new(connected, switchboard));
        *self.current() = Some(Arc::clone(&connection));
        tokio::select! {
            biased;
            loss = connection.lost() => ConnectFailure::Lost(loss),
            failure = self.serve(&connection, failures) => failure,
        }
    }

    /// Takes the connection out of use and ends it in the background.
    fn end_connection(&self) {
        self.connection.store(None);
        let Some(connection) = self.current().take() else {
            return;
        };
        self.publish(|status| {
            status.stale = true;
            status.pid = None;
        });
        connection.end(&self.connector.endings);
    }

    fn current(&self) -> std::sync::MutexGuard<'_, Option<Arc<Connection>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(&self, connection: &Arc<Connection>, failures: u32) -> ConnectFailure {
        let handshake = connection.client.handshake();
        let identity = ServerIdentity::of(&handshake);
        self.seen.clear();
        if let Err(failure) = self.relist(connection).await {
            return failure.into();
        }
        let listed = Instant::now();
        self.subscriptions.renew(connection).await;
        self.connection.store(Some(Arc::clone(connection)));
        let again = self.status.borrow().connections > 0;
        self.publish(|status| {
            status.state = State::Ready;
            status.server = Some(identity);
            status.pid = connection.pid;
            status.connections += 1;
        });
        if failures > 0 {
            self.retries.recovered();
        }
        let tools = self.status.borrow().tools.all().len();
        tracing::info!(server = %self.connector.server.name, tools, "upstream ready");
        if again {
            self.announce_all(&handshake);
        }
        let complaints = Mutex::default();
        tokio::select! {
            loss = self.watch_health(connection, &complaints) => loss,
            loss = self.keep_listed(connection, &complaints, listed) => loss,
        }
    }

    /// Looks after the server until it is as good as gone.
    async fn watch_health(
        &self,
        connection: &Connection,
        complaints: &Mutex<Complaints>,
    ) -> ConnectFailure {
        let times = Times::from(&self.connector.limits);
        let client = &connection.client;
        let mut degraded = None;
        loop {
            match connection.health.examined(client, times).await {
                Finding::Lost(dead) => {
                    return ConnectFailure::Lost(connection.give_up(Loss::Dead(dead)));
                }
                Finding::Degraded(ailment) => {
                    degraded.get_or_insert_with(tokio::time::Instant::now);
                    let server = &self.connector.server.name;
                    let failure = Failure {
                        message: ailment.to_string(),
                        advice: format!(
                            "wait, or run `mcpproxy upstream restart {server}`; see \
                             `mcpproxy upstream logs {server}`"
                        ),
                        permanent: false,
                    };
                    self.complain(complaints, |all| all.health = Some(failure));
                }
                Finding::Idle if degraded.is_none_or(|since| client.last_heard() < since) => {}
                Finding::Alive | Finding::Idle => {
                    if degraded.take().is_some() {
                        self.complain(complaints, |all| all.health = None);
                    }
                }
            }
        }
    }

    /// Lists the tools again whenever the server says so, and now and then.
    async fn keep_listed(
        &self,
        connection: &Connection,
        complaints: &Mutex<Complaints>,
        mut listed: Instant,
    ) -> ConnectFailure {
        loop {
            let interval = self.limits.load().refresh_interval.unwrap_or(REFRESH);
            let mut announced = false;
            tokio::select! {
                () = self.context.tools_changed.notified() => {
                    announced = true;
                    let earliest = listed + LISTING_PACE;
                    let pause = earliest.saturating_duration_since(Instant::now());
                    tokio::time::sleep(pause.max(COALESCE)).await;
                }
                () = self.context.renewed.notified() => {
                    if let Some(level) = connection.forget_log_level().await
                        && let Err(error) = connection.set_log_level(level).await
                    {
                        tracing::debug!(?error, "the new session keeps its own log level");
                    }
                    self.subscriptions.renew(connection).await;
                }
                () = self.orders.relist.notified() => {}
                () = tokio::time::sleep(interval) => {}
            }
            let before = self.status.borrow().tools.clone();
            let relisted = self.relist(connection).await;
            listed = Instant::now();
            self.publish(|status| status.listings += 1);
            match relisted {
                Ok(()) => self.complain(complaints, |all| all.listing = None),
                Err(error) if is_loss(&error, connection) => {
                    return ConnectFailure::Lost(connection.give_up(Loss::Listing(error)));
                }
                // The tools that are known stay.
                Err(error) => {
                    let server = &self.connector.server.name;
                    let failure = self.redacted(Failure {
                        message: Loss::Listing(error).to_string(),
                        advice: format!(
                            "the tools that were known stay in use; see `mcpproxy upstream logs {server}`"
                        ),
                        permanent: false,
                    });
                    self.complain(complaints, |all| all.listing = Some(failure));
                }
            }
            if announced || !before.is_identical_to(&self.status.borrow().tools) {
                self.announce("tools");
            }
        }
    }

    /// Changes what is wrong with a server that is connected, and publishes it.
    fn complain(&self, complaints: &Mutex<Complaints>, change: impl FnOnce(&mut Complaints)) {
        let mut complaints = complaints.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut complaints);
        let failure = complaints.health.as_ref().or(complaints.listing.as_ref());
        if self.status.borrow().state.failure() == failure {
            return;
        }
        let server = &self.connector.server.name;
        if let Some(failure) = failure {
            tracing::warn!(%server, error = failure.message, "upstream degraded");
        } else {
            tracing::info!(%server, "upstream ready again");
        }
        let state = failure
            .cloned()
            .map_or(State::Ready, |failure| State::Degraded { failure });
        self.publish(|status| status.state = state);
    }

    /// Tells clients that know this server from before what they may have missed.
    fn announce_all(&self, handshake: &mcp::client::Handshake) {
        self.announce("tools");
        if handshake.offers_prompts() {
            self.announce("prompts");
        }
        if handshake.offers_resources() {
            self.announce("resources");
        }
    }

    fn announce(&self, list: &str) {
        let method = format!("notifications/{list}/list_changed");
        self.context.announce(&Notification::new(method, None));
    }

    async fn relist(&self, connection: &Connection) -> Result<(), ListingError> {
        let server = &self.connector.server;
        let options = RequestOptions {
            timeout: Some(self.limits.load().timeout),
            ..RequestOptions::default()
        };
        let listing = list_tools(
            &connection.client,
            &server.name,
            options,
            &self.connector.limits,
        );
        let tools = listing.await?;
        self.publish(|status| {
            // An unchanged list keeps its identity, so that nothing downstream indexes it again.
            if !status.tools.is_same_as(&tools) {
                status.tools = ToolList::new(tools);
            }
            status.stale = false;
        });
        Ok(())
    }

    /// Tells of the failure and waits until it makes sense to try again, or there is an order.
    async fn wait_after(&self, failure: &ConnectFailure, attempt: u32, began: Instant) -> Next {
        let server = &self.connector.server.name;
        let failure = self.redacted(failure.describe(server));
        self.connector.starts.note(&failure.message);
        if failure.permanent {
            tracing::error!(%server, error = failure.message, advice = failure.advice, "upstream failed");
            self.publish(|status| status.state = State::Failed { failure });
            return tokio::select! {
                biased;
                () = self.orders.stop.cancelled() => Next::Stop,
                () = self.orders.restart.notified() => Next::Restart,
            };
        }
        let was_connected = self.status.borrow().connections > 0;
        let retry = self.retries.plan(attempt, was_connected);
        let pause = retry.at.saturating_duration_since(Instant::now());
        tracing::warn!(
            %server,
            error = failure.message,
            attempt,
            retry_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            "upstream not connected"
        );
        self.publish(|status| {
            status.state = State::Waiting {
                failure,
                attempt,
                retry_at: retry.at,
            };
        });
        let on_demand = async {
            self.orders.wanted.notified().await;
            tokio::time::sleep_until((began + backoff::ON_DEMAND).into()).await;
        };
        tokio::select! {
            biased;
            () = self.orders.stop.cancelled() => Next::Stop,
            () = self.orders.restart.notified() => Next::Restart,
            () = self.retries.wait(retry) => Next::Retry,
            () = on_demand => Next::Retry,
        }
    }

    /// A failure as it may be shown: servers quote what they were sent, credentials included.
    fn redacted(&self, mut failure: Failure) -> Failure {
        failure.message = self.connector.log.redacted(&failure.message);
        failure
    }

    fn publish(&self, change: impl FnOnce(&mut Status)) {
        self.status
            .send_modify(|status| change(Arc::make_mut(status)));
        self.changed.send_modify(|count| *count += 1);
    }
}

/// Whether a listing failed because the server is no longer there. One that is busy with a call
/// may have no time for a list.
fn is_loss(error: &ListingError, connection: &Connection) -> bool {
    match error {
        ListingError::Request(RequestError::Timeout { .. })
        | ListingError::Overrun(ListingOverrun::Time { .. }) => !connection.health.is_waited_for(),
        ListingError::Request(error) => !matches!(error, RequestError::Rpc(_)),
        ListingError::Overrun(_) | ListingError::Shape(_) => false,
    }
}
