//! Whether a connected server is alive: it is pinged when calls wait and nothing comes from it.
//!
//! Silence alone proves nothing, because many servers do one thing at a time and answer no ping
//! while they are busy with a long call. So:
//!
//! - any byte from the server is a sign of life;
//! - a server that does not answer a ping while calls wait, or lets three calls in a row time out, is
//!   *degraded*, which shows in its state;
//! - its connection is given up if it is known to answer pings during calls and then is silent for
//!   `limits.silence`, or if three calls in a row timed out without any sign of life, or a request
//!   could not even be sent, and a ping fails as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp::client::{Client, RequestError, RequestOptions};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Calls that time out in a row before the server is suspected.
const TIMEOUTS: usize = 3;

/// What is known of a server's liveness on one connection.
#[derive(Debug, Default)]
pub(crate) struct Health {
    calls: Mutex<Calls>,
    /// Whether the server has answered a ping while a call waited.
    answers_during_calls: AtomicBool,
    /// Something happened that calls for a ping at once.
    suspected: AtomicBool,
    suspicion: Notify,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: usize,
    /// Since when at least one call has waited.
    since: Option<Instant>,
    /// Timeouts since a call was last answered, and when the first of them was.
    timeouts: usize,
    first_timeout: Option<Instant>,
}

/// A call that waits for the server. Dropping it ends the wait.
#[derive(Debug)]
pub(crate) struct Pending<'a> {
    health: &'a Health,
    counted: bool,
}

/// What an examination of the server found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    Alive,
    /// No call waits, so there was nothing to find out.
    Idle,
    Degraded(Ailment),
    Lost(Dead),
}

/// What is wrong with a server whose connection is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Ailment {
    #[error(
        "the server has sent nothing for {} s and does not answer a ping; calls that wait for it: \
         {waiting}",
        .silent.as_secs()
    )]
    Silent { silent: Duration, waiting: usize },
    #[error("the last {timeouts} calls timed out, although the server answers pings")]
    TimingOut { timeouts: usize },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Dead {
    #[error(
        "the server sent nothing for {} s while calls waited, and did not answer a ping",
        .0.as_secs()
    )]
    Silent(Duration),
    #[error("{TIMEOUTS} calls in a row timed out, and the server did not answer a ping")]
    TimedOut,
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
}

/// The times of an examination.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub ping_after: Duration,
    pub ping_timeout: Duration,
    pub silence: Duration,
}

// === impl Health ===

impl Health {
    /// Counts a call that waits for the server.
    pub(crate) fn pending(&self) -> Pending<'_> {
        let mut pending = Pending {
            health: self,
            counted: false,
        };
        pending.park(false);
        pending
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.calls().waiting > 0
    }

    /// Notes that a call timed out.
    pub(crate) fn timed_out(&self) {
        let mut calls = self.calls();
        calls.timeouts += 1;
        calls.first_timeout.get_or_insert_with(Instant::now);
        let suspected = calls.timeouts >= TIMEOUTS;
        drop(calls);
        if suspected {
            self.suspect();
        }
    }

    /// Notes that a call was answered.
    pub(crate) fn answered(&self) {
        let mut calls = self.calls();
        calls.timeouts = 0;
        calls.first_timeout = None;
    }

    /// Has the server pinged at once.
    pub(crate) fn suspect(&self) {
        self.suspected.store(true, Ordering::Release);
        self.suspicion.notify_one();
    }

    /// Waits a while, or until the server is suspected, and then looks whether it is alive.
    pub(crate) async fn examined(&self, client: &Client, times: Times) -> Finding {
        // Often enough that silence is noticed a little after it has lasted long enough.
        let pause = (times.ping_after / 4).max(Duration::from_millis(20));
        let _ = tokio::time::timeout(pause, self.suspicion.notified()).await;
        if self.suspected.swap(false, Ordering::AcqRel) {
            return self.ping(client, times, true).await;
        }
        match self.silence(client) {
            None => Finding::Idle,
            Some((silent, _)) if silent >= times.ping_after => {
                self.ping(client, times, false).await
            }
            Some(_) => self.alive(),
        }
    }

    async fn ping(&self, client: &Client, times: Times, suspected: bool) -> Finding {
        let asked = Instant::now();
        let options = RequestOptions {
            timeout: Some(times.ping_timeout),
            ..RequestOptions::default()
        };
        let answer = client.request("ping", None, options).await;
        match answer {
            // A server that does not know the method is alive, too.
            Ok(_) | Err(RequestError::Rpc(_)) => {
                if self.is_waited_for() {
                    self.answers_during_calls.store(true, Ordering::Relaxed);
                }
                return self.alive();
            }
            Err(RequestError::Timeout { .. }) if client.last_heard() >= asked => {
                return self.alive();
            }
            Err(RequestError::Timeout { .. }) => {}
            // Some HTTP servers answer what they do not know with a status of their own.
            Err(RequestError::Http(failure)) if failure.status.is_client_error() => {
                return self.alive();
            }
            Err(error) => return Finding::Lost(Dead::Unreachable(crate::failure::chain(&error))),
        }
        let first_timeout = self.calls().first_timeout;
        let (silent, waiting) = self.silence(client).unwrap_or_default();
        let known_to_answer = self.answers_during_calls.load(Ordering::Relaxed);
        if suspected && first_timeout.is_some_and(|first| client.last_heard() < first) {
            Finding::Lost(Dead::TimedOut)
        } else if silent >= times.silence && known_to_answer {
            Finding::Lost(Dead::Silent(silent))
        } else {
            Finding::Degraded(Ailment::Silent { silent, waiting })
        }
    }

    /// The finding for a server that gave a sign of life.
    fn alive(&self) -> Finding {
        let timeouts = self.calls().timeouts;
        if timeouts >= TIMEOUTS {
            return Finding::Degraded(Ailment::TimingOut { timeouts });
        }
        Finding::Alive
    }

    /// How long the server has been silent while calls waited, and how many wait.
    fn silence(&self, client: &Client) -> Option<(Duration, usize)> {
        let calls = self.calls();
        let since = calls.since?.max(client.last_heard());
        Some((since.elapsed(), calls.waiting))
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Pending ===

impl Pending<'_> {
    /// Says whether the call waits for its client, and thus not for the server.
    pub(crate) fn park(&mut self, parked: bool) {
        if self.counted != parked {
            return;
        }
        self.counted = !parked;
        let mut calls = self.health.calls();
        if parked {
            calls.waiting -= 1;
            if calls.waiting == 0 {
                calls.since = None;
            }
        } else {
            calls.waiting += 1;
            calls.since.get_or_insert_with(Instant::now);
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.park(true);
    }
}

// === impl Times ===

impl From<&config::Limits> for Times {
    fn from(limits: &config::Limits) -> Self {
        Self {
            ping_after: limits.ping_after.get(),
            ping_timeout: limits.ping_timeout.get(),
            silence: limits.silence.get(),
        }
    }
}
