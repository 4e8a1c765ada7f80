//! Further connections to a legacy upstream, each for one client at a time.
//!
//! A legacy server learns once, when it is greeted, what its client can be asked, and over stdio it
//! does not say to which call a question belongs. So a client that can be asked anything gets a
//! connection that was greeted with its own capabilities and that nobody else uses meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::client::{ClientLine, OnBehalf};
use crate::connect::{Connected, Connector};
use crate::connection::Connection;
use crate::failure::ConnectFailure;
use crate::process::ChildGroup;
use crate::switchboard::{Surface, Switchboard};

/// How many clients can have a connection to themselves. Beyond that, one that is idle is given up
/// for whoever comes, and where none is, one has to wait.
const MOST_PLACES: usize = 8;

/// A connection that nobody used for so long is given up.
const IDLE: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    surface: Surface,
    places: Mutex<Vec<Arc<Place>>>,
    /// A place has become free.
    freed: Notify,
    /// Connections that are being closed.
    closing: TaskTracker,
}

/// For whom a connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    /// A legacy client keeps its connection from call to call. Modern clients cannot be told
    /// apart, so each of their calls has one to itself.
    session: Option<String>,
    capabilities: String,
}

#[derive(Debug)]
struct Place {
    holder: Holder,
    usage: Mutex<Usage>,
    line: tokio::sync::Mutex<Option<Arc<Line>>>,
}

#[derive(Debug)]
struct Usage {
    calls: usize,
    last: Instant,
}

/// A connection and the process behind it.
#[derive(Debug)]
struct Line {
    connection: Arc<Connection>,
    child: Mutex<Option<ChildGroup>>,
}

/// A connection while a call uses it.
#[derive(Debug)]
pub(crate) struct Lease {
    pub connection: Arc<Connection>,
    _claim: Claim,
}

/// A place that is in use. Dropping it gives it back.
#[derive(Debug)]
struct Claim {
    pool: Arc<Pool>,
    place: Arc<Place>,
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(connector: Connector, surface: Surface) -> Arc<Self> {
        Arc::new(Self {
            connector,
            surface,
            places: Mutex::default(),
            freed: Notify::new(),
            closing: TaskTracker::new(),
        })
    }

    /// A connection for a call of this client. Waits while all are in use.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        client: &OnBehalf,
    ) -> Result<Lease, ConnectFailure> {
        let holder = Holder::of(client);
        let claim = loop {
            let freed = self.freed.notified();
            if let Some(place) = self.claim(&holder) {
                break Claim {
                    pool: Arc::clone(self),
                    place,
                };
            }
            freed.await;
        };
        let line = self.line_of(&claim.place, client).await?;
        Ok(Lease {
            connection: Arc::clone(&line.connection),
            _claim: claim,
        })
    }

    /// The connection that a session has, if it has one.
    pub(crate) fn held_by(self: &Arc<Self>, session: &str) -> Option<Lease> {
        let places = self.places();
        let place = places
            .iter()
            .find(|place| place.holder.session.as_deref() == Some(session))?;
        // One that is just being made is not there yet.
        let line = place.line.try_lock().ok()?;
        let connection = Arc::clone(&line.as_ref()?.connection);
        place.usage().begin();
        let claim = Claim {
            pool: Arc::clone(self),
            place: Arc::clone(place),
        };
        Some(Lease {
            connection,
            _claim: claim,
        })
    }

    /// The session is over, and its connection with it.
    pub(crate) fn release(&self, session: &str) {
        let is_of_session = |place: &Arc<Place>| place.holder.session.as_deref() == Some(session);
        self.remove(is_of_session);
    }

    /// Closes everything, and waits until it is closed.
    pub(crate) async fn clear(&self) {
        self.remove(|_| true);
        self.closing.close();
        self.closing.wait().await;
        self.closing.reopen();
    }

    fn places(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more call, if there is one for it.
    fn claim(self: &Arc<Self>, holder: &Holder) -> Option<Arc<Place>> {
        let mut places = self.places();
        let own = places.iter().find(|place| {
            let free = holder.session.is_some() || place.usage().calls == 0;
            place.holder == *holder && free
        });
        if let Some(own) = own {
            own.usage().begin();
            return Some(Arc::clone(own));
        }
        if places.len() >= MOST_PLACES {
            let idle = places.iter().enumerate();
            let idle = idle
                .filter_map(|(index, place)| {
                    let usage = place.usage();
                    (usage.calls == 0).then_some((usage.last, index))
                })
                .min()?;
            let given_up = places.remove(idle.1);
            self.close(given_up);
        }
        let place = Arc::new(Place {
            holder: holder.clone(),
            usage: Mutex::new(Usage {
                calls: 1,
                last: Instant::now(),
            }),
            line: tokio::sync::Mutex::default(),
        });
        places.push(Arc::clone(&place));
        tokio::spawn(give_up_when_idle(
            Arc::downgrade(self),
            Arc::downgrade(&place),
        ));
        Some(place)
    }

    /// The connection of a place, made anew where there is none or the old one is gone.
    async fn line_of(&self, place: &Place, client: &OnBehalf) -> Result<Arc<Line>, ConnectFailure> {
        let mut slot = place.line.lock().await;
        if let Some(line) = &*slot
            && !line.is_closed()
        {
            return Ok(Arc::clone(line));
        }
        if let Some(gone) = slot.take() {
            self.closing.spawn(async move { gone.close().await });
        }
        let line = Arc::new(
            self.connect(&client.capabilities, client.session_line.clone())
                .await?,
        );
        *slot = Some(Arc::clone(&line));
        Ok(line)
    }

    async fn connect(
        &self,
        capabilities: &RawValue,
        session_line: Option<Arc<dyn ClientLine>>,
    ) -> Result<Line, ConnectFailure> {
        let switchboard = Switchboard::private(self.surface.clone());
        switchboard.set_session_line(session_line);
        let connecting = Box::pin(self.connector.connect_for(capabilities, &switchboard));
        let Connected { client, child } = connecting.await?;
        tracing::debug!(server = %self.surface.server, "connected once more, for one client");
        Ok(Line {
            connection: Arc::new(Connection::new(client, switchboard)),
            child: Mutex::new(child),
        })
    }

    fn remove(&self, which: impl Fn(&Arc<Place>) -> bool) {
        let mut places = self.places();
        let (gone, kept) = std::mem::take(&mut *places).into_iter().partition(which);
        *places = kept;
        drop(places);
        let gone: Vec<_> = gone;
        for place in gone {
            self.close(place);
        }
        self.freed.notify_waiters();
    }

    fn close(&self, place: Arc<Place>) {
        self.closing.spawn(async move {
            if let Some(line) = place.line.lock().await.take() {
                line.close().await;
            }
        });
    }
}

async fn give_up_when_idle(pool: Weak<Pool>, place: Weak<Place>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let (Some(pool), Some(place)) = (pool.upgrade(), place.upgrade()) else {
            return;
        };
        let is_idle = |usage: &Usage| usage.calls == 0 && usage.last.elapsed() >= IDLE;
        if is_idle(&place.usage()) {
            pool.remove(|other| Arc::ptr_eq(other, &place));
            return;
        }
    }
}

// === impl Holder, Place, Usage, Line ===

impl Holder {
    fn of(client: &OnBehalf) -> Self {
        Self {
            session: client.session.clone(),
            capabilities: client.capabilities.get().to_owned(),
        }
    }
}

impl Place {
    fn usage(&self) -> MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Usage {
    fn begin(&mut self) {
        self.calls += 1;
        self.last = Instant::now();
    }

    fn end(&mut self) {
        self.calls -= 1;
        self.last = Instant::now();
    }
}

impl Line {
    fn is_closed(&self) -> bool {
        self.connection.client.is_closed()
    }

    async fn close(&self) {
        self.connection.client.close().await;
        let child = self
            .child
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(child) = child {
            child.stop().await;
        }
    }
}

// === impl Claim ===

impl Drop for Claim {
    fn drop(&mut self) {
        self.place.usage().end();
        self.pool.freed.notify_waiters();
    }
}
