//! Further connections to a legacy upstream, each for one client at a time.
//!
//! A legacy server learns once, when it is greeted, what its client can be asked, and over stdio it
//! does not say to which call a question belongs. So a client that can be asked anything gets a
//! connection that was greeted with its own capabilities and that no other client uses meanwhile.
//!
//! A call that waits for its client's answer may do so for minutes. Where all connections are held
//! by such calls, the one that has waited longest is ended for the client that needs a connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use mcp::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{ClientLine, OnBehalf};
use crate::connect::Connector;
use crate::connection::Connection;
use crate::failure::ConnectFailure;
use crate::switchboard::{ServerContext, Switchboard};

/// How many clients can have a connection to themselves. Beyond that, one that is idle is given up
/// for whoever comes, and where none is, one has to wait.
const MOST_PLACES: usize = 8;

/// A connection that was idle for this long is closed.
const IDLE: Duration = Duration::from_mins(10);

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    context: ServerContext,
    places: Mutex<Vec<Arc<Place>>>,
    /// A place has become free, or a call waits for its client.
    freed: Notify,
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
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// Fires when the place is given up, with a connection that is just being made.
    gone: CancellationToken,
}

#[derive(Debug)]
struct Usage {
    calls: usize,
    /// The calls that wait for their client, and since when.
    parked: Vec<Instant>,
    last: Instant,
}

/// A connection while a call uses it.
#[derive(Debug)]
pub(crate) struct Lease {
    pub connection: Arc<Connection>,
    claim: Claim,
}

/// A place that is in use. Dropping it gives it back.
#[derive(Debug)]
struct Claim {
    pool: Arc<Pool>,
    place: Arc<Place>,
    parked: Option<Instant>,
}

// === impl Pool ===

impl Pool {
    pub(crate) fn new(connector: Connector, context: ServerContext) -> Arc<Self> {
        Arc::new(Self {
            connector,
            context,
            places: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// A connection for a call of this client. Waits while all are in use.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        client: &OnBehalf,
    ) -> Result<Lease, ConnectFailure> {
        let holder = Holder::of(client);
        let claim = loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Registered before the look, so that nothing is missed in between.
            freed.as_mut().enable();
            if let Some(place) = self.claim(&holder) {
                break self.claimed(place);
            }
            match self.end_of_patience() {
                Some(at) => drop(tokio::time::timeout_at(at, freed).await),
                None => freed.await,
            }
        };
        let connection = self.connection_of(&claim.place, client).await?;
        Ok(Lease { connection, claim })
    }

    /// The connection that a session has, if it has one.
    pub(crate) fn held_by(self: &Arc<Self>, session: &str) -> Option<Lease> {
        let places = self.places();
        let place = places
            .iter()
            .find(|place| place.holder.session.as_deref() == Some(session))?;
        // One that is just being made is not there yet.
        let connection = Arc::clone(place.connection.try_lock().ok()?.as_ref()?);
        place.usage().begin();
        let claim = self.claimed(Arc::clone(place));
        Some(Lease { connection, claim })
    }

    /// The session is over, and its connection with it.
    pub(crate) fn release(&self, session: &str) {
        let is_of_session = |place: &Arc<Place>| place.holder.session.as_deref() == Some(session);
        self.remove(is_of_session);
    }

    /// Closes everything, in the background.
    pub(crate) fn clear(&self) {
        self.remove(|_| true);
    }

    fn claimed(self: &Arc<Self>, place: Arc<Place>) -> Claim {
        Claim {
            pool: Arc::clone(self),
            place,
            parked: None,
        }
    }

    /// When the next place may be taken from calls that wait for their client, if any may.
    fn end_of_patience(&self) -> Option<Instant> {
        let places = self.places();
        let parked = places
            .iter()
            .filter_map(|place| place.usage().parked_since());
        parked
            .min()
            .map(|since| since + self.connector.limits.parked_time.get())
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
                .min();
            let (_, index) = idle.or_else(|| self.most_patient(&places))?;
            self.close(&places.remove(index));
        }
        let place = Arc::new(Place {
            holder: holder.clone(),
            usage: Mutex::new(Usage {
                calls: 1,
                parked: Vec::new(),
                last: Instant::now(),
            }),
            connection: tokio::sync::Mutex::default(),
            gone: CancellationToken::new(),
        });
        places.push(Arc::clone(&place));
        tokio::spawn(give_up_when_idle(
            Arc::downgrade(self),
            Arc::downgrade(&place),
        ));
        Some(place)
    }

    /// The place whose calls have all waited for their client longest, if that is long enough.
    fn most_patient(&self, places: &[Arc<Place>]) -> Option<(Instant, usize)> {
        let long_enough = self.connector.limits.parked_time.get();
        let parked = places.iter().enumerate().filter_map(|(index, place)| {
            let since = place.usage().parked_since()?;
            (since.elapsed() >= long_enough).then_some((since, index))
        });
        parked.min()
    }

    /// The connection of a place: a new one where there is none or the old one is gone.
    async fn connection_of(
        &self,
        place: &Place,
        client: &OnBehalf,
    ) -> Result<Arc<Connection>, ConnectFailure> {
        let mut slot = tokio::select! {
            () = place.gone.cancelled() => return Err(ConnectFailure::GivenUp),
            slot = place.connection.lock() => slot,
        };
        if let Some(connection) = &*slot
            && !connection.client.is_closed()
        {
            return Ok(Arc::clone(connection));
        }
        if let Some(gone) = slot.take() {
            gone.end(&self.connector.endings);
        }
        let connecting = self.connect(&client.capabilities, client.session_line.clone());
        let connection = tokio::select! {
            () = place.gone.cancelled() => return Err(ConnectFailure::GivenUp),
            connection = connecting => Arc::new(connection?),
        };
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn connect(
        &self,
        capabilities: &RawValue,
        session_line: Option<Arc<dyn ClientLine>>,
    ) -> Result<Connection, ConnectFailure> {
        let switchboard = Switchboard::private(self.context.clone());
        switchboard.set_session_line(session_line);
        // Connecting is rare, and its state must not be part of every call's.
        let connecting = self.connector.connect_for(capabilities, &switchboard);
        let connected = connecting.boxed().await?;
        tracing::debug!(server = %self.context.server, "connected once more, for one client");
        Ok(Connection::new(connected, switchboard))
    }

    fn remove(&self, which: impl Fn(&Arc<Place>) -> bool) {
        let mut places = self.places();
        let (gone, kept) = std::mem::take(&mut *places).into_iter().partition(which);
        *places = kept;
        drop(places);
        let gone: Vec<_> = gone;
        for place in &gone {
            self.close(place);
        }
        self.freed.notify_waiters();
    }

    /// Ends the connection of a place, also one that is just being made, and the calls on it.
    fn close(&self, place: &Arc<Place>) {
        place.gone.cancel();
        let (place, endings) = (Arc::clone(place), self.connector.endings.clone());
        self.connector.endings.spawn(async move {
            if let Some(connection) = place.connection.lock().await.take() {
                connection.end(&endings);
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

// === impl Holder, Place, Usage ===

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

    /// Since when all calls wait for their client, if they do.
    fn parked_since(&self) -> Option<Instant> {
        let all = self.calls > 0 && self.parked.len() == self.calls;
        self.parked.iter().max().copied().filter(|_| all)
    }
}

// === impl Lease ===

impl Lease {
    /// Notes whether the call waits for its client.
    pub(crate) fn park(&mut self, parked: bool) {
        self.claim.park(parked);
    }

    /// Waits until the place is taken away from its call.
    pub(crate) fn taken_away(&self) -> impl Future<Output = ()> + use<> {
        self.claim.place.gone.clone().cancelled_owned()
    }
}

// === impl Claim ===

impl Claim {
    fn park(&mut self, parked: bool) {
        if self.parked.is_some() == parked {
            return;
        }
        let mut usage = self.place.usage();
        if let Some(since) = self.parked.take() {
            let index = usage.parked.iter().position(|other| *other == since);
            if let Some(index) = index {
                usage.parked.swap_remove(index);
            }
            return;
        }
        let now = Instant::now();
        usage.parked.push(now);
        self.parked = Some(now);
        drop(usage);
        self.pool.freed.notify_waiters();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.park(false);
        self.place.usage().end();
        self.pool.freed.notify_waiters();
    }
}
