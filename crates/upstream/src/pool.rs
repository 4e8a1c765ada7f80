//! Further connections to an upstream, all of them legacy, beside the one that all clients share.
//!
//! A legacy server learns once, when it is greeted, what its client can be asked, and over stdio it
//! does not say to which call a question belongs. So a client that can be asked anything gets a
//! connection that was greeted with its own capabilities and that no other client uses meanwhile.
//!
//! Where the shared connection is modern, legacy clients without capabilities share one legacy
//! connection of the pool: a server that speaks both eras then answers each client in its own.
//!
//! A call that waits for its client's answer may do so for minutes. Where all connections are held
//! by such calls, the one that has waited longest is ended for the client that needs a connection.

use std::collections::{BTreeMap, HashMap};
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
use crate::failure::{ConnectFailure, Loss};
use crate::health::{Finding, Times};
use crate::subscriptions;
use crate::switchboard::{ServerContext, Switchboard};

/// How many clients can have a connection to themselves. Beyond that, one that is idle is given up
/// for whoever comes, and where none is, one has to wait.
const MOST_PLACES: usize = 8;

/// A connection that was idle for this long is closed.
const IDLE: Duration = Duration::from_mins(10);

/// How long a server that speaks the modern era may take to answer `initialize`. One that does not
/// know it may leave it unanswered, and its clients wait meanwhile.
const LEGACY_GREETING: Duration = Duration::from_secs(20);

/// How long a server may take to note the subscriptions of a new connection.
const SUBSCRIBING: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Pool {
    connector: Connector,
    context: ServerContext,
    places: Mutex<Vec<Arc<Place>>>,
    /// A place has become free, or a call waits for its client.
    freed: Notify,
    /// By client, the resources that it subscribed to, and how often. A new connection is told, so
    /// that a server reports what happens on the connection that the client's calls take.
    subscribed: Mutex<HashMap<Owner, BTreeMap<String, usize>>>,
}

/// For whom a connection was made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    owner: Owner,
    capabilities: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    /// A legacy client keeps its connection from call to call.
    Session(String),
    /// Modern clients cannot be told apart, so each of their calls has a connection to itself.
    Call,
    /// All legacy clients that can be asked nothing.
    Silent,
}

/// A connection as it is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    holder: Holder,
    /// What the server is told that its client can be asked.
    capabilities: Option<&'a RawValue>,
    session_line: Option<Arc<dyn ClientLine>>,
    /// The connection that all clients share, where it is a modern one: whether the server knows
    /// the legacy era as well has to be found out.
    modern: Option<&'a Connection>,
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
            subscribed: Mutex::default(),
        })
    }

    /// A connection for a call. Waits while all are in use.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        wanted: Wanted<'_>,
    ) -> Result<Lease, ConnectFailure> {
        let claim = loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // Registered before the look, so that nothing is missed in between.
            freed.as_mut().enable();
            if let Some(place) = self.claim(&wanted.holder) {
                break self.claimed(place);
            }
            match self.end_of_patience() {
                Some(at) => drop(tokio::time::timeout_at(at, freed).await),
                None => freed.await,
            }
        };
        let connection = self.connection_of(&claim.place, wanted).await?;
        Ok(Lease { connection, claim })
    }

    /// The connection that a client has, if it has one.
    pub(crate) fn held_by(self: &Arc<Self>, client: &OnBehalf) -> Option<Lease> {
        match Owner::of(client) {
            Owner::Call => None,
            owner => self.held(&owner),
        }
    }

    /// The connection of the legacy clients that can be asked nothing, if there is one.
    pub(crate) fn held_by_silent(self: &Arc<Self>) -> Option<Lease> {
        self.held(&Owner::Silent)
    }

    fn held(self: &Arc<Self>, owner: &Owner) -> Option<Lease> {
        let places = self.places();
        let place = places.iter().find(|place| place.holder.owner == *owner)?;
        // One that is just being made is not there yet.
        let connection = Arc::clone(place.connection.try_lock().ok()?.as_ref()?);
        if connection.client.is_closed() {
            return None;
        }
        place.usage().begin();
        let claim = self.claimed(Arc::clone(place));
        Some(Lease { connection, claim })
    }

    /// The session is over, and its connection with it.
    pub(crate) fn release(&self, session: &str) {
        let owner = Owner::Session(session.to_owned());
        self.subscribed().remove(&owner);
        self.remove(|place| place.holder.owner == owner);
    }

    /// Notes that a client wants to hear of a resource, and tells the server on the connection that
    /// the client has, if it has one.
    pub(crate) async fn subscribe(self: &Arc<Self>, client: &OnBehalf, uri: &str) {
        let owner = Owner::of(client);
        if owner == Owner::Call {
            return;
        }
        let count = {
            let mut subscribed = self.subscribed();
            let count = subscribed.entry(owner).or_default();
            let count = count.entry(uri.to_owned()).or_default();
            *count += 1;
            *count
        };
        if count == 1
            && let Some(lease) = self.held_by(client)
        {
            tell(&lease.connection, "resources/subscribe", uri).await;
        }
    }

    /// Undoes [`Pool::subscribe`].
    pub(crate) async fn unsubscribe(self: &Arc<Self>, client: &OnBehalf, uri: &str) {
        let owner = Owner::of(client);
        let was_last = {
            let mut subscribed = self.subscribed();
            let Some(uris) = subscribed.get_mut(&owner) else {
                return;
            };
            let Some(count) = uris.get_mut(uri) else {
                return;
            };
            *count -= 1;
            let was_last = *count == 0;
            if was_last {
                uris.remove(uri);
            }
            was_last
        };
        if was_last && let Some(lease) = self.held_by(client) {
            tell(&lease.connection, "resources/unsubscribe", uri).await;
        }
    }

    fn subscribed(&self) -> MutexGuard<'_, HashMap<Owner, BTreeMap<String, usize>>> {
        self.subscribed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
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
            let free = holder.owner != Owner::Call || place.usage().calls == 0;
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
        wanted: Wanted<'_>,
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
        // Another call may have found it out while this one waited.
        if wanted.modern.is_some_and(Connection::is_modern_only) {
            return Err(ConnectFailure::ModernOnly);
        }
        // Connecting is rare, and its state must not be part of every call's.
        let connecting = self.connect(&wanted).boxed();
        let connection = tokio::select! {
            () = place.gone.cancelled() => return Err(ConnectFailure::GivenUp),
            connection = connecting => Arc::new(connection?),
        };
        tokio::spawn(end_when_dead(
            Arc::clone(&connection),
            Times::from(&self.connector.limits),
        ));
        *slot = Some(Arc::clone(&connection));
        self.renew_subscriptions(&wanted.holder.owner, &connection)
            .await;
        Ok(connection)
    }

    async fn connect(&self, wanted: &Wanted<'_>) -> Result<Connection, ConnectFailure> {
        let context = self.context.clone();
        let switchboard = match wanted.holder.owner {
            Owner::Silent => Switchboard::among_silent(context),
            Owner::Session(_) | Owner::Call => Switchboard::private(context),
        };
        switchboard.set_session_line(wanted.session_line.clone());
        let connecting = self
            .connector
            .connect_for(wanted.capabilities, &switchboard);
        let connected = match wanted.modern {
            None => connecting.await?,
            Some(modern) => {
                let patience = LEGACY_GREETING.min(self.connector.server.timeout / 4);
                let connected = tokio::time::timeout(patience, connecting).await;
                let connected =
                    connected.unwrap_or(Err(ConnectFailure::HandshakeTimeout(patience)));
                connected.inspect_err(|failure| {
                    if failure.may_be_due_to_the_era()
                        || matches!(failure, ConnectFailure::HandshakeTimeout(_))
                    {
                        let server = &self.context.server;
                        tracing::info!(%server, "the server does not know the legacy era");
                        modern.note_modern_only();
                    }
                })?
            }
        };
        tracing::debug!(server = %self.context.server, "connected once more, for legacy clients");
        Ok(Connection::new(connected, switchboard))
    }

    /// Tells a new connection what its client subscribed to before.
    async fn renew_subscriptions(&self, owner: &Owner, connection: &Connection) {
        let uris: Vec<String> = match self.subscribed().get(owner) {
            Some(uris) => uris.keys().cloned().collect(),
            None => return,
        };
        let telling = async {
            for uri in &uris {
                tell(connection, "resources/subscribe", uri).await;
            }
        };
        // The calls of the client wait for this, so all of them together have as long as one.
        let _ = tokio::time::timeout(SUBSCRIBING, telling).await;
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

/// Tells a process of a subscription. The shared connection has it as well, so a refusal here is no
/// failure of the request. Over HTTP both lead to the same server, and clients would hear of each change twice.
async fn tell(connection: &Connection, method: &str, uri: &str) {
    if connection.pid.is_none() {
        return;
    }
    if let Err(error) = subscriptions::tell(connection, method, uri, SUBSCRIBING).await {
        tracing::debug!(
            method,
            uri,
            ?error,
            "a subscription is on the shared connection only"
        );
    }
}

/// Gives a connection up whose server is as good as gone, so that the next call gets a new one.
async fn end_when_dead(connection: Arc<Connection>, times: Times) {
    let dead = async {
        loop {
            let examined = connection.health.examined(&connection.client, times);
            if let Finding::Lost(dead) = examined.await {
                return dead;
            }
        }
    };
    tokio::select! {
        biased;
        _ = connection.lost() => {}
        dead = dead => drop(connection.give_up(Loss::Dead(dead))),
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

// === impl Owner, Wanted, Place, Usage ===

impl Owner {
    fn of(client: &OnBehalf) -> Self {
        match &client.session {
            None => Self::Call,
            Some(session) if client.is_interactive() => Self::Session(session.clone()),
            Some(_) => Self::Silent,
        }
    }
}

impl<'a> Wanted<'a> {
    /// A connection for the calls of this client.
    pub(crate) fn by(client: &'a OnBehalf, modern: Option<&'a Connection>) -> Self {
        match Owner::of(client) {
            Owner::Silent => Self::by_silent(modern),
            owner => Self {
                holder: Holder {
                    owner,
                    capabilities: client.capabilities.get().to_owned(),
                },
                capabilities: Some(&client.capabilities),
                session_line: client.session_line.clone(),
                modern,
            },
        }
    }

    /// The connection that legacy clients share which can be asked nothing.
    pub(crate) fn by_silent(modern: Option<&'a Connection>) -> Self {
        Self {
            holder: Holder {
                owner: Owner::Silent,
                capabilities: String::new(),
            },
            capabilities: None,
            session_line: None,
            modern,
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
