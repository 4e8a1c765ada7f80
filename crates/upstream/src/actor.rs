//! The life of one upstream: connect, list, serve, lose, wait, connect again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use mcp::Notification;
use tokio::sync::{mpsc, watch};

use crate::backoff;
use crate::connect::{Connected, Connector};
use crate::connection::Connection;
use crate::failure::ConnectFailure;
use crate::handle::Limits;
use crate::listing::list_tools;
use crate::pool::Pool;
use crate::state::{ServerIdentity, State, Status, ToolList};
use crate::subscriptions::Subscriptions;
use crate::switchboard::{Surface, Switchboard};

/// Announcements of changed tools that come this close together are answered by one listing.
const COALESCE: Duration = Duration::from_millis(200);

/// How often the tools are listed anyway, for servers that never announce a change. It also
/// notices an HTTP server that went away without a word.
const REFRESH: Duration = Duration::from_mins(5);

/// What can be asked of a running actor.
#[derive(Debug)]
pub(crate) enum Command {
    /// Drop the connection, if any, and connect at once.
    Restart,
    /// End for good.
    Stop,
}

pub(crate) struct Actor {
    pub connector: Connector,
    pub limits: Arc<ArcSwap<Limits>>,
    pub surface: Surface,
    pub status: watch::Sender<Arc<Status>>,
    pub changed: watch::Sender<u64>,
    pub connection: Arc<ArcSwapOption<Connection>>,
    pub pool: Arc<Pool>,
    pub subscriptions: Arc<Subscriptions>,
    pub commands: mpsc::Receiver<Command>,
}

/// Why a connection is no longer served.
enum Ended {
    Lost(ConnectFailure),
    Asked(Command),
}

// === impl Actor ===

impl Actor {
    pub(crate) async fn run(mut self) {
        let mut attempt = 0;
        loop {
            self.publish(|status| status.state = State::Connecting);
            let started = Instant::now();
            let ended = self.live_once().await;
            if started.elapsed() >= backoff::STEADY {
                attempt = 0;
            }
            let command = match ended {
                Ended::Asked(command) => Some(command),
                Ended::Lost(failure) => {
                    attempt += 1;
                    self.wait_after(&failure, attempt).await
                }
            };
            if command.is_some() {
                self.pool.clear().await;
            }
            match command {
                None => {}
                Some(Command::Restart) => attempt = 0,
                Some(Command::Stop) => break,
            }
        }
        self.publish(|status| {
            status.state = State::Stopped;
            status.stale = true;
        });
    }

    /// One connection from its start to its end.
    async fn live_once(&mut self) -> Ended {
        let switchboard = Switchboard::shared(self.surface.clone());
        let connected = tokio::select! {
            connected = self.connector.connect(&switchboard) => connected,
            command = next_command(&mut self.commands) => return Ended::Asked(command),
        };
        let Connected { client, child } = match connected {
            Ok(connected) => connected,
            Err(failure) => return Ended::Lost(failure),
        };
        let pid = child.as_ref().and_then(crate::process::ChildGroup::id);
        let connection = Arc::new(Connection::new(client, switchboard));
        let ended = self.serve(&connection, pid).await;
        self.connection.store(None);
        self.publish(|status| {
            status.stale = true;
            status.pid = None;
        });
        connection.client.close().await;
        if let Some(child) = child {
            child.stop().await;
        }
        ended
    }

    async fn serve(&mut self, connection: &Arc<Connection>, pid: Option<u32>) -> Ended {
        let client = &connection.client;
        let handshake = client.handshake();
        let identity = ServerIdentity::of(&handshake);
        let first_listing = self.relist(connection);
        let listed = tokio::select! {
            listed = first_listing => listed,
            reason = client.closed() => return Ended::Lost(ConnectFailure::Lost(reason)),
        };
        if let Err(failure) = listed {
            return Ended::Lost(failure);
        }
        self.subscriptions.renew(connection).await;
        self.connection.store(Some(Arc::clone(connection)));
        let again = self.status.borrow().connections > 0;
        self.publish(|status| {
            status.state = State::Ready;
            status.server = Some(identity);
            status.pid = pid;
            status.connections += 1;
        });
        let tools = self.status.borrow().tools.all().len();
        tracing::info!(server = %self.connector.server.name, tools, "upstream ready");
        if again {
            self.announce_all(&handshake);
        }
        loop {
            let interval = self.limits.load().refresh_interval.unwrap_or(REFRESH);
            let surface = self.surface.clone();
            let mut announced = false;
            tokio::select! {
                reason = client.closed() => return Ended::Lost(ConnectFailure::Lost(reason)),
                command = next_command(&mut self.commands) => return Ended::Asked(command),
                () = surface.tools_changed.notified() => {
                    announced = true;
                    tokio::time::sleep(COALESCE).await;
                }
                () = surface.renewed.notified() => {
                    if let Some(level) = connection.forget_log_level().await
                        && let Err(error) = connection.set_log_level(level).await
                    {
                        tracing::debug!(?error, "the new session keeps its own log level");
                    }
                    self.subscriptions.renew(connection).await;
                }
                () = tokio::time::sleep(interval) => {}
            }
            let before = self.status.borrow().tools.clone();
            // A failed listing keeps the tools that are known; a lost connection shows by itself.
            if let Err(error) = self.relist(connection).await {
                let error = self.connector.log.redacted(&crate::failure::chain(&error));
                tracing::warn!(server = %self.connector.server.name, error, "tools could not be listed again");
            }
            if announced || !before.is_identical_to(&self.status.borrow().tools) {
                self.announce("tools");
            }
        }
    }

    /// Whoever knows this server from before may have missed something.
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
        self.surface.announce(&Notification::new(method, None));
    }

    async fn relist(&self, connection: &Connection) -> Result<(), ConnectFailure> {
        let server = &self.connector.server;
        let timeout = self.limits.load().timeout;
        let tools = list_tools(&connection.client, &server.name, timeout).await?;
        self.publish(|status| {
            // An unchanged list keeps its identity, so that nobody downstream indexes it again.
            if !status.tools.is_same_as(&tools) {
                status.tools = ToolList::new(tools);
            }
            status.stale = false;
        });
        Ok(())
    }

    /// Tells of the failure and waits until it makes sense to try again, or somebody asks.
    async fn wait_after(&mut self, failure: &ConnectFailure, attempt: u32) -> Option<Command> {
        let mut failure = failure.describe(&self.connector.server.name);
        // Servers quote what they were sent, credentials included.
        failure.message = self.connector.log.redacted(&failure.message);
        let server = &self.connector.server.name;
        if failure.permanent {
            tracing::error!(%server, error = failure.message, advice = failure.advice, "upstream failed");
            self.publish(|status| status.state = State::Failed { failure });
            return Some(next_command(&mut self.commands).await);
        }
        let pause = backoff::pause(attempt, backoff::jitter());
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
                retry_at: Instant::now() + pause,
            };
        });
        tokio::time::timeout(pause, next_command(&mut self.commands))
            .await
            .ok()
    }

    fn publish(&self, change: impl FnOnce(&mut Status)) {
        self.status
            .send_modify(|status| change(Arc::make_mut(status)));
        self.changed.send_modify(|count| *count += 1);
    }
}

/// A dropped handle is as good as a request to stop.
async fn next_command(commands: &mut mpsc::Receiver<Command>) -> Command {
    commands.recv().await.unwrap_or(Command::Stop)
}
