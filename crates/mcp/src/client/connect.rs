//! From a way to reach a server to a transport, in the era that the server speaks.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::era::{Verdict, negotiate};
use super::http::{Http, HttpEndpoint, HttpTransport, TwoEndpoints, Wire, is_suggested_by};
use super::incoming::Incoming;
use super::legacy::Legacy;
use super::link::Link;
use super::modern::{Carrier, Prospect};
use super::stdio::Stdio;
use super::{ConnectError, Era, Hello, RequestError, Transport};

pub(super) async fn over_lines<R, W>(
    reader: R,
    writer: W,
    line_limit: usize,
    hello: &Hello,
    incoming: Arc<Incoming>,
) -> Result<Transport, ConnectError>
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
        let greeted = Stdio::begin(link, hello).await?;
        Ok(Legacy::Stdio(greeted))
    };
    Box::pin(in_era(carrier, hello, incoming, greeting)).await
}

pub(super) async fn over_http(
    endpoint: HttpEndpoint,
    hello: &Hello,
    incoming: Arc<Incoming>,
) -> Result<Transport, ConnectError> {
    let transport = endpoint.transport;
    let wire = Arc::new(Wire::new(endpoint, Arc::clone(&incoming)));
    match transport {
        HttpTransport::Sse => {
            let greeted = TwoEndpoints::begin(wire, hello).await?;
            Ok(Transport::Legacy(Legacy::Sse(greeted)))
        }
        HttpTransport::Streamable => {
            let carrier = Carrier::http(Arc::clone(&wire));
            let greeting = greet_over_http(wire, hello);
            Box::pin(in_era(carrier, hello, incoming, greeting)).await
        }
    }
}

async fn in_era(
    carrier: Carrier,
    hello: &Hello,
    incoming: Arc<Incoming>,
    greeting: impl Future<Output = Result<Legacy, ConnectError>>,
) -> Result<Transport, ConnectError> {
    if hello.era == Some(Era::Legacy) {
        return greeting.await.map(Transport::Legacy);
    }
    let prospect = Prospect::new(carrier, hello, incoming)?;
    let handshake = if hello.era == Some(Era::Modern) {
        prospect.discover().await.map_err(|refused| refused.error)?
    } else {
        match negotiate(hello.probe_timeout, prospect.discover(), greeting).await? {
            Verdict::Modern(handshake) => handshake,
            Verdict::Legacy(legacy) => return Ok(Transport::Legacy(legacy)),
        }
    };
    Ok(Transport::Modern(prospect.connected(handshake)))
}

async fn greet_over_http(wire: Arc<Wire>, hello: &Hello) -> Result<Legacy, ConnectError> {
    let error = match Http::begin(Arc::clone(&wire), hello.clone()).await {
        Ok(http) => return Ok(Legacy::Http(http)),
        Err(error) => error,
    };
    if let ConnectError::Initialize(RequestError::Http(failure)) = &error
        && is_suggested_by(failure)
        && let Some(outcome) = TwoEndpoints::find(wire, hello).await
    {
        return outcome.map(Legacy::Sse);
    }
    Err(error)
}
