//! From a way to reach a server to a transport, in the era that the server speaks.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::era::{Verdict, negotiate};
use super::greeted::Greeted;
use super::http::{Http, HttpEndpoint, HttpTransport, TwoEndpoints, Wire, is_suggested_by};
use super::incoming::Incoming;
use super::legacy::Legacy;
use super::link::Link;
use super::modern::{Carrier, ModernProbe};
use super::{ConnectError, Era, Hello, RequestError, Transport};

/// What came of connecting.
pub(super) struct Found {
    pub(super) transport: Transport,
    /// The era to begin with next time.
    pub(super) next_era: Era,
}

pub(super) async fn over_lines<R, W>(
    reader: R,
    writer: W,
    line_limit: usize,
    hello: &Hello,
    incoming: Arc<Incoming>,
) -> Result<Found, ConnectError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let link = Arc::new(Link::start(
        reader,
        writer,
        line_limit,
        Arc::clone(&incoming),
    ));
    let carrier = Carrier::Lines(Arc::clone(&link));
    let greeting = async {
        let greeted = Greeted::begin(link, hello).await?;
        Ok(Legacy::Stdio(greeted))
    };
    Box::pin(in_era(carrier, hello, incoming, greeting)).await
}

pub(super) async fn over_http(
    endpoint: HttpEndpoint,
    hello: &Hello,
    incoming: Arc<Incoming>,
) -> Result<Found, ConnectError> {
    let transport = endpoint.transport;
    let wire = Wire::new(endpoint, Arc::clone(&incoming)).map_err(ConnectError::HttpSetup)?;
    let wire = Arc::new(wire);
    if transport == HttpTransport::Sse {
        let link = TwoEndpoints::open(wire).await?;
        return over_two_endpoints(link, hello, incoming).await;
    }
    let carrier = Carrier::http(Arc::clone(&wire));
    let greeting = async {
        let greeted = Http::begin(Arc::clone(&wire), hello.clone()).await?;
        Ok(Legacy::Http(greeted))
    };
    let outcome = Box::pin(in_era(carrier, hello, Arc::clone(&incoming), greeting)).await;
    if let Err(
        ConnectError::Discover(RequestError::Http(failure))
        | ConnectError::Initialize(RequestError::Http(failure)),
    ) = &outcome
        && is_suggested_by(failure)
        && let Some(link) = TwoEndpoints::find(wire).await
    {
        return over_two_endpoints(link, hello, incoming).await;
    }
    outcome
}

/// The transport is of 2024-11-05. What speaks over it may be younger: a server does not become
/// another one by the address it is mounted at.
async fn over_two_endpoints(
    link: Arc<TwoEndpoints>,
    hello: &Hello,
    incoming: Arc<Incoming>,
) -> Result<Found, ConnectError> {
    let carrier = Carrier::Sse(Arc::clone(&link));
    let greeting = async {
        let greeted = Greeted::begin(link, hello).await?;
        Ok(Legacy::Sse(greeted))
    };
    Box::pin(in_era(carrier, hello, incoming, greeting)).await
}

async fn in_era(
    carrier: Carrier,
    hello: &Hello,
    incoming: Arc<Incoming>,
    greeting: impl Future<Output = Result<Legacy, ConnectError>>,
) -> Result<Found, ConnectError> {
    if hello.era == Some(Era::Legacy) {
        return greeting.await.map(|legacy| Found {
            transport: Transport::Legacy(legacy),
            next_era: Era::Legacy,
        });
    }
    let prospect = ModernProbe::new(carrier, hello, incoming)?;
    let handshake = if hello.era == Some(Era::Modern) {
        prospect.discover().await.map_err(|refused| refused.error)?
    } else {
        match negotiate(hello.probe_timeout, prospect.discover(), greeting).await? {
            Verdict::Modern(handshake) => handshake,
            Verdict::Legacy { greeted, modern } => {
                return Ok(Found {
                    transport: Transport::Legacy(greeted),
                    next_era: if modern { Era::Modern } else { Era::Legacy },
                });
            }
        }
    };
    Ok(Found {
        transport: Transport::Modern(prospect.connected(handshake)),
        next_era: Era::Modern,
    })
}
