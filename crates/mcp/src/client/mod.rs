//! The side that calls. A [`Client`] is one connection to one server; behind it stands a transport
//! that knows how requests travel and how answers find their way back.
//!
//! What the server sends on its own goes to the [`Events`] of the client's owner. Dropping the
//! future of a request cancels the request.

mod connect;
mod era;
mod error;
mod events;
mod frame;
mod greeted;
mod handshake;
mod hello;
mod http;
mod in_flight;
mod incoming;
mod legacy;
mod link;
mod listing;
mod modern;
mod pending;
mod preamble;
mod progress;
mod sorter;
mod subscriptions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::era::Era;
pub use self::error::{
    CloseReason, ConnectError, EventStreamError, HttpFailure, ProtocolError, RedirectError,
    RequestError, TransportError,
};
pub use self::events::{CallId, Events, Origin};
pub use self::handshake::{Handshake, ServerInfo};
pub use self::hello::Hello;
pub use self::http::{HttpEndpoint, HttpTransport};
pub use self::listing::{Listing, ListingBudget, ListingOverrun};
pub use self::modern::ToolHeaders;
pub use self::progress::ProgressReceiver;

use self::connect::Found;
use self::in_flight::{Deadline, answered};
use self::incoming::Incoming;
use self::legacy::Legacy;
use self::modern::Modern;
use crate::Json;
use crate::message::{encode_call, raw_bytes};
use crate::{ProgressToken, RequestId};

/// A connection to a server. Clones share it; it ends when the last one is dropped, which a
/// session over HTTP does not survive politely: [`close`](Self::close) it instead.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// How long to wait for the answer; without it, for as long as the connection lives.
    pub timeout: Option<Duration>,
    /// What [`Origin`] names for messages that the server sends on the stream of this call.
    pub call: Option<CallId>,
    /// What the client can do on whose behalf this is asked. A modern server is told with each
    /// request; without it, it is told what [`Hello`] says.
    pub capabilities: Option<Box<RawValue>>,
    /// Whether a `tools/call` may be sent a second time where the server says that it did not look
    /// at the first. A server can be wrong about that, so only a call without effects may be.
    /// Requests of other methods always may.
    pub repeatable: bool,
}

struct Inner {
    transport: Transport,
    next_era: Era,
    incoming: Arc<Incoming>,
    /// Stops every task of this client.
    _gone: DropGuard,
}

/// How messages travel.
enum Transport {
    Legacy(Legacy),
    Modern(Modern),
}

// === impl Client ===

impl Client {
    /// Connects over a pair of byte streams, one message a line, as stdio does.
    ///
    /// There is no limit in time: drop the future to give up. Where the era is not known, a server
    /// that ends over the question for it makes [`ConnectError::Probe`]; it can be started and
    /// connected to again as a legacy one.
    pub async fn connect_lines<R, W>(
        reader: R,
        writer: W,
        line_limit: usize,
        hello: Hello,
        events: impl Events,
    ) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (incoming, gone) = incoming(events);
        let connecting =
            connect::over_lines(reader, writer, line_limit, &hello, Arc::clone(&incoming));
        Ok(Self::new(connecting.await?, incoming, gone))
    }

    /// Connects over HTTP, with whichever transport the server turns out to speak.
    ///
    /// There is no limit in time: drop the future to give up.
    pub async fn connect_http(
        endpoint: HttpEndpoint,
        hello: Hello,
        events: impl Events,
    ) -> Result<Self, ConnectError> {
        let (incoming, gone) = incoming(events);
        let found = connect::over_http(endpoint, &hello, Arc::clone(&incoming)).await?;
        Ok(Self::new(found, incoming, gone))
    }

    fn new(found: Found, incoming: Arc<Incoming>, gone: DropGuard) -> Self {
        let inner = Inner {
            transport: found.transport,
            next_era: found.next_era,
            incoming,
            _gone: gone,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// What the server said about itself, most recently where a session had to be replaced.
    pub fn handshake(&self) -> Arc<Handshake> {
        match &self.inner.transport {
            Transport::Legacy(legacy) => legacy.handshake(),
            Transport::Modern(modern) => modern.handshake(),
        }
    }

    /// The era that is spoken.
    pub fn era(&self) -> Era {
        match self.inner.transport {
            Transport::Legacy(_) => Era::Legacy,
            Transport::Modern(_) => Era::Modern,
        }
    }

    /// The era that its owner may want to remember and begin with next time. It is another than the
    /// one that is spoken if the server knows both and was too slow to say so.
    pub fn next_era(&self) -> Era {
        self.inner.next_era
    }

    /// Sends a request and waits for its result.
    ///
    /// Dropping the future tells the server that the request is cancelled; so does a timeout.
    ///
    /// A modern server is spoken to as a legacy one would be: what it asks for on the way reaches
    /// [`Events::request`], and `resources/subscribe`, `resources/unsubscribe`, `logging/setLevel`
    /// and `ping` are translated.
    pub async fn request(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        let params = params.map(Json::from);
        self.request_json(method, params.as_ref(), options).await
    }

    /// Like [`request`](Self::request), with borrowed params.
    pub async fn request_json(
        &self,
        method: &str,
        params: Option<&Json<'_>>,
        options: RequestOptions,
    ) -> Result<Box<RawValue>, RequestError> {
        match &self.inner.transport {
            Transport::Legacy(legacy) => {
                let id = legacy.next_id();
                let params = params.map(|params| params.get().as_bytes());
                let message = encode_call(Some(&RequestId::from(id)), method, params);
                let origin = options.call.map_or(Origin::Connection, Origin::Call);
                let repeatable = options.repeatable || method != "tools/call";
                let answering = legacy.request(id, message, origin, repeatable);
                let deadline = Deadline::after(options.timeout, &self.inner.incoming.timer);
                answered(legacy, id, deadline, answering).await
            }
            // Boxed, so that other calls do not carry the much larger state of this one.
            Transport::Modern(modern) => {
                let params = params.map(Json::to_raw).transpose();
                let params = params.map_err(RequestError::Params)?;
                Box::pin(modern.request(method, params.as_deref(), &options)).await
            }
        }
    }

    pub async fn notify(
        &self,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<(), RequestError> {
        match &self.inner.transport {
            Transport::Legacy(legacy) => {
                let message = encode_call(None, method, raw_bytes(params.as_deref()));
                legacy.notify(message).await
            }
            Transport::Modern(modern) => Box::pin(modern.notify(method, params.as_deref())).await,
        }
    }

    /// A fresh token, to be put into `_meta.progressToken` of a request, and what is reported for
    /// it. At most `capacity` reports wait to be taken; later ones are then dropped.
    pub fn progress(&self, capacity: usize) -> (ProgressToken, ProgressReceiver) {
        self.inner.incoming.progress.listen(capacity)
    }

    /// When the server was last heard of: any bytes from it count.
    pub fn last_heard(&self) -> Instant {
        self.inner.incoming.last_heard()
    }

    /// Waits until the connection is gone for good.
    pub async fn closed(&self) -> Arc<CloseReason> {
        let closed = match &self.inner.transport {
            Transport::Legacy(legacy) => legacy.closed(),
            Transport::Modern(modern) => modern.closed(),
        };
        Arc::clone(closed.wait().await)
    }

    /// Whether the connection is gone for good.
    pub fn is_closed(&self) -> bool {
        let closed = match &self.inner.transport {
            Transport::Legacy(legacy) => legacy.closed(),
            Transport::Modern(modern) => modern.closed(),
        };
        closed.get().is_some()
    }

    /// Ends the connection at once and without a word to the server, for a reason that its owner
    /// found out. Requests that still wait fail.
    pub fn abandon(&self, reason: CloseReason) {
        match &self.inner.transport {
            Transport::Legacy(legacy) => legacy.abandon(reason),
            Transport::Modern(modern) => modern.abandon(reason),
        }
    }

    /// Ends the connection. Requests that still wait fail.
    pub async fn close(&self) {
        match &self.inner.transport {
            Transport::Legacy(legacy) => legacy.close().await,
            Transport::Modern(modern) => modern.close().await,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").finish_non_exhaustive()
    }
}

fn incoming(events: impl Events) -> (Arc<Incoming>, DropGuard) {
    let gone = CancellationToken::new();
    let incoming = Arc::new(Incoming::new(events, gone.clone()));
    (incoming, gone.drop_guard())
}
