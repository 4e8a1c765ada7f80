//! Further connections to an upstream, beside the one that all clients share.
//!
//! A client that has a connection of its own keeps it from request to request: over stdio it is a process,
//! whose memory no other client sees, and a legacy server was greeted with what this client can do.
//!
//! Clients without one share connections: the main one, which the actor keeps, and those of the pool for
//! the other era and for clients that can be asked nothing.
//!
//! A call that waits for its client's answer may do so for minutes. Where all places are taken, the one
//! whose calls have all waited longest is ended for the client that needs a connection.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use config::Transport;
use futures_util::FutureExt;
use mcp::client::Era;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{ALL_CAPABILITIES, ClientLine, NO_CAPABILITIES, OnBehalf};
use crate::connect::{Connector, Greeting};
use crate::connection::Connection;
use crate::failure::{ConnectFailure, Loss};
use crate::health::{Finding, Times};
use crate::subscriptions;
use crate::switchboard::{ServerContext, Switchboard};

/// How many clients can have a process to themselves.
const MOST_PROCESSES: usize = 8;

/// How long the process of a client is kept that has left.
const LINGER: Duration = Duration::from_mins(1);

/// A connection that several clients share is closed when it was idle for this long.
const IDLE: Duration = Duration::from_mins(10);

/// A modern client does not say that it leaves. It has left when nothing was heard of it for this long.
const IDLE_CLIENT: Duration = Duration::from_mins(30);

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
    /// By client, the resources that it subscribed to, and how often. A new connection is told, so
    /// that a server reports what happens on the connection that the client's calls take.
    subscribed: Mutex<HashMap<Owner, BTreeMap<String, usize>>>,
}

/// For whom a connection was made, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Holder {
    owner: Owner,
    era: Era,
    capabilities: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Owner {
    /// A legacy client.
    Session(String),
    /// A modern client. Its requests have nothing else in common.
    Client {
        principal: Cow<'static, str>,
        name: String,
    },
    /// Clients of another era than that of the main connection.
    Shared,
    /// Clients that can be asked nothing, of a server that asks.
    Silent,
}

/// A connection as it is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    holder: Holder,
    greeting: Greeting<'a>,
    session_line: Option<Arc<dyn ClientLine>>,
    /// The main connection, where it is a modern one and a legacy one is wanted: whether the server
    /// knows that era as well has to be found out.
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
    /// Whether the client said that it left.
    left: bool,
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
            subscribed: Mutex::default(),
        })
    }

    /// A connection for a request.
    pub(crate) async fn lease(
        self: &Arc<Self>,
        wanted: Wanted<'_>,
    ) -> Result<Lease, ConnectFailure> {
        let place = self.claim(&wanted.holder)?;
        let claim = Claim::new(place);
        let connection = self.connection_of(&claim.place, wanted).await?;
        Ok(Lease { connection, claim })
    }

    /// The connection that a client has, if it has one.
    pub(crate) fn held_by(self: &Arc<Self>, client: &OnBehalf) -> Option<Lease> {
        self.held(&Owner::of(client))
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
        let claim = Claim::new(Arc::clone(place));
        Some(Lease { connection, claim })
    }

    /// The session is over. Its process goes a little later, its connection over HTTP at once.
    pub(crate) fn release(self: &Arc<Self>, session: &str) {
        let owner = Owner::Session(session.to_owned());
        self.subscribed().remove(&owner);
        let is_of_session = |place: &Arc<Place>| place.holder.owner == owner;
        let runtime = tokio::runtime::Handle::try_current();
        // Without a runtime the process is on its way out.
        let (false, Ok(runtime)) = (self.is_http(), runtime) else {
            return self.remove(is_of_session);
        };
        let left = self
            .places()
            .iter()
            .find(|place| is_of_session(place))
            .cloned();
        let Some(left) = left else {
            return;
        };
        left.usage().left = true;
        let (pool, left) = (Arc::downgrade(self), Arc::downgrade(&left));
        let at = Instant::now() + LINGER;
        runtime.spawn(async move {
            tokio::time::sleep_until(at).await;
            if let (Some(pool), Some(left)) = (pool.upgrade(), left.upgrade()) {
                pool.remove(|place| Arc::ptr_eq(place, &left));
            }
        });
    }

    /// Whether a session has a process of its own, which tells it of changes itself.
    pub(crate) fn has_process(&self, session: &str) -> bool {
        let is_own = |place: &Arc<Place>| matches!(&place.holder.owner, Owner::Session(own) if own == session);
        !self.is_http() && self.places().iter().any(is_own)
    }

    fn is_http(&self) -> bool {
        matches!(self.connector.server.transport, Transport::Http { .. })
    }

    /// Notes that a client wants to hear of a resource, and tells the server on the connection that
    /// the client has, if it has one.
    pub(crate) async fn subscribe(self: &Arc<Self>, client: &OnBehalf, uri: &str) {
        let owner = Owner::of(client);
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
            if uris.is_empty() {
                subscribed.remove(&owner);
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

    fn places(&self) -> MutexGuard<'_, Vec<Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for one more call, if there is one for it.
    fn claim(self: &Arc<Self>, holder: &Holder) -> Result<Arc<Place>, ConnectFailure> {
        let mut places = self.places();
        if let Some(own) = places.iter().find(|place| place.holder == *holder) {
            own.usage().begin();
            return Ok(Arc::clone(own));
        }
        let most = if self.is_http() {
            self.connector.limits.sessions
        } else {
            MOST_PROCESSES
        };
        let owned = places.iter().filter(|place| place.is_of_one_client());
        if holder.owner.is_one_client() && owned.count() >= most {
            let index = self.dispensable(&places);
            let index = index.ok_or(ConnectFailure::TooManyClients { most })?;
            self.close(&places.remove(index));
        }
        let place = Arc::new(Place {
            holder: holder.clone(),
            usage: Mutex::new(Usage {
                calls: 1,
                parked: Vec::new(),
                last: Instant::now(),
                left: false,
            }),
            connection: tokio::sync::Mutex::default(),
            gone: CancellationToken::new(),
        });
        places.push(Arc::clone(&place));
        if let Some(idle) = holder.owner.idle_time() {
            let (pool, place) = (Arc::downgrade(self), Arc::downgrade(&place));
            tokio::spawn(give_up_when_idle(pool, place, idle));
        }
        Ok(place)
    }

    /// The place that another client may have: its client has left or, if there is none such, has not been
    /// heard of for longest, or lets the server wait for an answer.
    fn dispensable(&self, places: &[Arc<Place>]) -> Option<usize> {
        let candidates = places.iter().enumerate().filter_map(|(index, place)| {
            let usage = place.usage();
            let idle = usage.last.elapsed();
            let is_idle = match place.holder.owner {
                Owner::Session(_) => usage.left || idle >= IDLE,
                Owner::Client { .. } => idle >= LINGER,
                Owner::Shared | Owner::Silent => false,
            };
            (usage.calls == 0 && is_idle).then_some((!usage.left, usage.last, index))
        });
        let candidate = candidates.min().map(|(_, _, index)| index);
        candidate.or_else(|| self.most_patient(places).map(|(_, index)| index))
    }

    /// The place whose calls have all waited for their client longest, if that is long enough.
    fn most_patient(&self, places: &[Arc<Place>]) -> Option<(Instant, usize)> {
        let long_enough = self.connector.limits.parked_time.get();
        let parked = places.iter().enumerate().filter_map(|(index, place)| {
            let since = place.usage().parked_since()?;
            let is_own = place.is_of_one_client();
            (is_own && since.elapsed() >= long_enough).then_some((since, index))
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
        let switchboard = if wanted.holder.owner.is_one_client() {
            Switchboard::private(context, !self.is_http())
        } else {
            Switchboard::among_many(context)
        };
        switchboard.set_session_line(wanted.session_line.clone());
        let connecting = self.connector.connect_for(wanted.greeting, &switchboard);
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
        tracing::debug!(server = %self.context.server, owner = ?wanted.holder.owner, "connected once more");
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

async fn give_up_when_idle(pool: Weak<Pool>, place: Weak<Place>, idle: Duration) {
    loop {
        tokio::time::sleep(idle).await;
        let (Some(pool), Some(place)) = (pool.upgrade(), place.upgrade()) else {
            return;
        };
        let is_idle = |usage: &Usage| usage.calls == 0 && usage.last.elapsed() >= idle;
        let is_subscribed = pool.subscribed().contains_key(&place.holder.owner);
        if is_idle(&place.usage()) && !is_subscribed {
            pool.remove(|other| Arc::ptr_eq(other, &place));
            return;
        }
    }
}

// === impl Owner, Wanted, Place, Usage ===

impl Owner {
    fn of(client: &OnBehalf) -> Self {
        match &client.session {
            Some(session) => Self::Session(session.clone()),
            None => Self::Client {
                principal: client.principal.clone(),
                name: client.name.clone(),
            },
        }
    }

    fn is_one_client(&self) -> bool {
        matches!(self, Self::Session(_) | Self::Client { .. })
    }

    /// After how long a connection is closed that is not used. A session says when it ends.
    fn idle_time(&self) -> Option<Duration> {
        match self {
            Self::Session(_) => None,
            Self::Client { .. } => Some(IDLE_CLIENT),
            Self::Shared | Self::Silent => Some(IDLE),
        }
    }
}

impl<'a> Wanted<'a> {
    /// A connection for this client alone. `modern` is the main connection where it is a modern one.
    pub(crate) fn by(client: &'a OnBehalf, era: Era, modern: Option<&'a Connection>) -> Self {
        let greeting = Greeting {
            era,
            capabilities: &client.capabilities,
            client: Some(&client.name),
        };
        Self {
            session_line: client.session_line.clone(),
            ..Self::new(Owner::of(client), greeting, modern)
        }
    }

    /// The legacy connection that clients share where the main one is modern.
    pub(crate) fn by_many(modern: &'a Connection) -> Self {
        let greeting = Greeting {
            era: Era::Legacy,
            capabilities: &ALL_CAPABILITIES,
            client: None,
        };
        Self::new(Owner::Shared, greeting, Some(modern))
    }

    /// The legacy connection of clients that can be asked nothing.
    pub(crate) fn by_silent(modern: Option<&'a Connection>) -> Self {
        let greeting = Greeting {
            era: Era::Legacy,
            capabilities: &NO_CAPABILITIES,
            client: None,
        };
        Self::new(Owner::Silent, greeting, modern)
    }

    fn new(owner: Owner, greeting: Greeting<'a>, modern: Option<&'a Connection>) -> Self {
        Self {
            holder: Holder {
                owner,
                era: greeting.era,
                // A modern server is told with each request.
                capabilities: match greeting.era {
                    Era::Legacy => greeting.capabilities.get().to_owned(),
                    Era::Modern => String::new(),
                },
            },
            greeting,
            session_line: None,
            modern: modern.filter(|_| greeting.era == Era::Legacy),
        }
    }
}

impl Place {
    fn is_of_one_client(&self) -> bool {
        self.holder.owner.is_one_client()
    }

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
    fn new(place: Arc<Place>) -> Self {
        Self {
            place,
            parked: None,
        }
    }

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
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.park(false);
        self.place.usage().end();
    }
}
