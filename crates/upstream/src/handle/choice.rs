//! Which connection a request takes.

use std::sync::Arc;
use std::time::Instant;

use config::{Sharing, Transport};
use mcp::client::{Era, Handshake};

use super::{CallError, Upstream};
use crate::client::OnBehalf;
use crate::connection::Connection;
use crate::failure::{ConnectFailure, chain};
use crate::pool::{Lease, Wanted};
use crate::queue::Slot;

/// A connection that a request may use.
pub(super) enum Chosen {
    Shared(Arc<Connection>),
    Leased(Lease),
}

/// Where the requests of a client go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// To the connection that the actor keeps.
    Main,
    /// To the legacy connection that clients share where the main one is modern.
    SharedLegacy,
    /// To the legacy connection of clients that can be asked nothing.
    Silent,
    /// To a connection of the client's own.
    Own(Era),
}

impl Upstream {
    /// A connection and a slot for a request.
    ///
    /// The connection comes first: a call that waits for one must not hold a slot meanwhile.
    pub(super) async fn turn_for(
        &self,
        client: Option<&OnBehalf>,
        began: Instant,
        sent_by: Instant,
    ) -> Result<(Chosen, Slot<'_>), CallError> {
        let chosen = self.choose(client, began, sent_by).await?;
        let slot = self.slot(began, sent_by).await?;
        Ok((chosen, slot))
    }

    pub(super) async fn choose(
        &self,
        client: Option<&OnBehalf>,
        began: Instant,
        sent_by: Instant,
    ) -> Result<Chosen, CallError> {
        let main = self.shared()?;
        let modern = (main.client.era() == Era::Modern).then_some(&*main);
        let placement = self.placement(client, &main);
        let wanted = match (placement, client) {
            (Placement::Main, _) | (Placement::Own(_), None) => return Ok(Chosen::Shared(main)),
            (Placement::SharedLegacy, _) => Wanted::by_many(&main),
            (Placement::Silent, _) => Wanted::by_silent(modern),
            (Placement::Own(era), Some(client)) => Wanted::by(client, era, modern),
        };
        match self.lease(wanted, began, sent_by).await? {
            Ok(lease) => Ok(Chosen::Leased(lease)),
            // It has just turned out that the server does not know the legacy era.
            Err(_) if main.is_modern_only() && self.placement(client, &main) != placement => {
                Box::pin(self.choose(client, began, sent_by)).await
            }
            Err(failure) => {
                main.health.suspect();
                Err(self.no_connection(&failure))
            }
        }
    }

    /// Where the requests of a client go, or those that are made for no client.
    fn placement(&self, client: Option<&OnBehalf>, main: &Connection) -> Placement {
        let is_http = matches!(self.server.transport, Transport::Http { .. });
        let is_modern = main.client.era() == Era::Modern;
        let legacy_client = client.is_some_and(|client| client.session.is_some());
        let in_legacy_era = !is_modern || (legacy_client && !main.is_modern_only());
        let can_be_asked = client.is_some_and(OnBehalf::is_interactive);
        // A modern server says which call a question belongs to.
        let asks = in_legacy_era && self.asked.get();
        let own = match self.server.sharing {
            Sharing::Shared => false,
            Sharing::PerClient => true,
            Sharing::Auto if is_http => true,
            Sharing::Auto => {
                client.is_some_and(|client| !client.shares_processes) || (asks && can_be_asked)
            }
        };
        match (own && client.is_some(), in_legacy_era) {
            (true, true) => Placement::Own(Era::Legacy),
            // Over HTTP each request to a modern server stands alone.
            (true, false) if is_http => Placement::Main,
            (true, false) => Placement::Own(Era::Modern),
            (false, true) if asks && !can_be_asked && self.server.sharing != Sharing::Shared => {
                Placement::Silent
            }
            (false, true) if is_modern => Placement::SharedLegacy,
            (false, _) => Placement::Main,
        }
    }

    /// What the server says about itself to a legacy client, if it is another thing than what the
    /// status has: it is spoken to in the modern era but knows the legacy one too.
    pub async fn legacy_handshake(
        &self,
        client: &OnBehalf,
    ) -> Result<Option<Arc<Handshake>>, CallError> {
        let main = self.shared()?;
        if main.client.era() == Era::Legacy || main.is_modern_only() {
            return Ok(None);
        }
        let began = Instant::now();
        let choosing = self.choose(Some(client), began, began + self.server.timeout / 2);
        let chosen = choosing.await?.connection();
        Ok((chosen.client.era() == Era::Legacy).then(|| chosen.client.handshake()))
    }

    /// A connection of the pool, or why there is none.
    async fn lease(
        &self,
        wanted: Wanted<'_>,
        began: Instant,
        sent_by: Instant,
    ) -> Result<Result<Lease, ConnectFailure>, CallError> {
        let _place = self.queue.enter().map_err(|full| CallError::Busy {
            server: self.name().clone(),
            running: full.running,
            waiting: full.waiting,
            retry_after: full.retry_after,
        })?;
        let leasing = async { Some(self.pool.lease(wanted).await) };
        self.before(sent_by, began, leasing).await
    }

    fn no_connection(&self, failure: &ConnectFailure) -> CallError {
        CallError::NoConnection {
            server: self.name().clone(),
            reason: self.log.redacted(&chain(failure)),
        }
    }
}

// === impl Chosen ===

impl Chosen {
    pub(super) fn connection(&self) -> Arc<Connection> {
        match self {
            Self::Shared(connection) => Arc::clone(connection),
            Self::Leased(lease) => Arc::clone(&lease.connection),
        }
    }

    /// Notes whether the call waits for its client.
    pub(super) fn park(&mut self, parked: bool) {
        if let Self::Leased(lease) = self {
            lease.park(parked);
        }
    }

    /// Waits until the connection is taken away for another client.
    pub(super) fn taken_away(&self) -> impl Future<Output = ()> + use<> {
        let taken_away = match self {
            Self::Shared(_) => None,
            Self::Leased(lease) => Some(lease.taken_away()),
        };
        async move {
            match taken_away {
                Some(taken_away) => taken_away.await,
                None => std::future::pending().await,
            }
        }
    }
}
