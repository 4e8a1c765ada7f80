//! Single HTTP requests: which headers they carry, and how much of an answer is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION,
    PROXY_AUTHORIZATION, WWW_AUTHENTICATE,
};
use http::uri::InvalidUri;
use http::{Method, Uri};
use http_body_util::Full;
use url::{Position, Url};

use super::connector::Connector;
use super::endpoint::{HttpEndpoint, LAST_EVENT_ID};
use super::pool::Pool;
use super::response::Response;
use crate::client::error::BoxError;
use crate::client::events::Origin;
use crate::client::incoming::Incoming;
use crate::client::{HttpFailure, RedirectError, RequestError};
use crate::message::{Inbound, Message};
use crate::{ErrorObject, Request};

/// How much of the body of a failure is read, and how much of that is kept for a person.
const FAILURE_BODY: usize = 64 * 1024;
const SHOWN: usize = 600;

const MOST_REDIRECTS: usize = 5;

#[derive(Debug)]
pub(in crate::client) struct Wire {
    pub(super) target: Target,
    /// What every request carries, and what a POST carries besides.
    headers: HeaderMap,
    post_headers: HeaderMap,
    pool: Arc<Pool>,
    pub(super) body_limit: usize,
    ids: AtomicU64,
    pub(in crate::client) incoming: Arc<Incoming>,
}

/// An address of the server, with the form in which a request line holds it.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) url: Url,
    uri: Uri,
}

impl Wire {
    pub(in crate::client) fn new(
        mut endpoint: HttpEndpoint,
        incoming: Arc<Incoming>,
    ) -> Result<Self, BoxError> {
        let credentials = endpoint.take_credentials();
        let mut headers = endpoint.own_headers();
        let connector = Connector::new(&endpoint.url)?;
        let host = &endpoint.url[Position::BeforeHost..Position::AfterPort];
        headers.entry(HOST).or_insert(host.parse()?);
        if let Some(credentials) = credentials {
            headers.entry(AUTHORIZATION).or_insert(credentials);
        }
        if let Some(authorization) = connector.proxy_authorization() {
            let entry = headers.entry(PROXY_AUTHORIZATION);
            entry.or_insert_with(|| authorization.clone());
        }
        let mut post_headers = headers.clone();
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        post_headers.insert(ACCEPT, accepted);
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self {
            target: Target {
                uri: connector.request_target(&endpoint.url)?,
                url: endpoint.url,
            },
            headers,
            post_headers,
            pool: Arc::new(Pool::new(connector)),
            body_limit: endpoint.body_limit,
            ids: AtomicU64::new(1),
            incoming,
        })
    }

    pub(in crate::client) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Prepares requests to another address of the same origin.
    pub(super) fn target(&self, url: Url) -> Result<Target, InvalidUri> {
        let uri = self.pool.connector.request_target(&url)?;
        Ok(Target { url, uri })
    }

    /// Posts a message with the headers that this message or its session needs.
    pub(in crate::client) async fn post(
        &self,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        self.post_to(&self.target, headers, message).await
    }

    pub(super) async fn post_to(
        &self,
        target: &Target,
        headers: &HeaderMap,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        self.send(Method::POST, target, headers, message).await
    }

    /// Asks for a stream of events, from after the event given if there is one.
    pub(super) async fn get(
        &self,
        session: &HeaderMap,
        last_event_id: Option<&str>,
    ) -> Result<Response, RequestError> {
        let mut headers = session.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        // An id that cannot stand in a header cannot be resumed from.
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        self.send(Method::GET, &self.target, &headers, Bytes::new())
            .await
    }

    pub(super) async fn delete(&self, session: &HeaderMap) -> Result<Response, RequestError> {
        self.send(Method::DELETE, &self.target, session, Bytes::new())
            .await
    }

    /// Sends a request, also to where the server redirects it.
    async fn send(
        &self,
        method: Method,
        target: &Target,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Result<Response, RequestError> {
        let mut redirected: Option<Target> = None;
        for _ in 0..=MOST_REDIRECTS {
            let target = redirected.as_ref().unwrap_or(target);
            let mut request = http::Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = target.uri.clone();
            *request.headers_mut() = self.headers(&method, headers);
            let mut response = self.pool.send(request).await?;
            self.incoming.hear();
            let Some(url) = redirect(&target.url, &response)? else {
                response.redirected = redirected.map(|target| Box::new(target.url));
                return Ok(response);
            };
            redirected = Some(self.target(url).map_err(RedirectError::Address)?);
            response.finish();
        }
        Err(RedirectError::TooMany {
            limit: MOST_REDIRECTS,
        }
        .into())
    }

    fn headers(&self, method: &Method, more: &HeaderMap) -> HeaderMap {
        let mut headers = match *method {
            Method::POST => self.post_headers.clone(),
            _ => self.headers.clone(),
        };
        headers.extend(
            more.iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        headers
    }

    /// Has a request of the server answered, in the session it came in.
    pub(super) fn serve(self: &Arc<Self>, request: Request, session: &HeaderMap, origin: Origin) {
        let (wire, session) = (Arc::clone(self), session.clone());
        self.incoming.request(request, origin, async move |reply| {
            wire.reply(&session, reply).await;
        });
    }

    async fn reply(&self, session: &HeaderMap, message: Vec<u8>) {
        let outcome = match self.post(session, message.into()).await {
            Ok(response) => self.accepted(response).await,
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            tracing::debug!(?error, "an answer to the server's request was not taken");
        }
    }

    /// Checks that a notification was taken. Whatever body comes along has no meaning.
    pub(in crate::client) async fn accepted(&self, response: Response) -> Result<(), RequestError> {
        if response.status().is_success() {
            response.finish();
            return Ok(());
        }
        Err(RequestError::Http(Box::new(self.failure(response).await)))
    }

    pub(super) async fn body(&self, mut response: Response) -> Result<Bytes, RequestError> {
        let limit = self.body_limit as u64;
        let announced = response.remaining().unwrap_or(0);
        if announced > limit {
            return Err(RequestError::TooLarge { bytes: announced });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            self.incoming.hear();
            if body.is_empty() && response.remaining() == Some(0) {
                return Ok(chunk);
            }
            body.extend_from_slice(&chunk);
            if body.len() as u64 > limit {
                return Err(RequestError::TooLarge {
                    bytes: body.len() as u64,
                });
            }
        }
        Ok(body.into())
    }

    /// What a status that is not a success tells.
    pub(in crate::client) async fn failure(&self, mut response: Response) -> HttpFailure {
        let mut body = Vec::new();
        while body.len() < FAILURE_BODY
            && let Ok(Some(chunk)) = response.chunk().await
        {
            body.extend_from_slice(&chunk);
        }
        let shown = String::from_utf8_lossy(&body).chars().take(SHOWN).collect();
        HttpFailure {
            status: response.status(),
            www_authenticate: response
                .headers()
                .get_all(WWW_AUTHENTICATE)
                .iter()
                .cloned()
                .collect(),
            error: rpc_error(&body),
            body: shown,
        }
    }
}

fn rpc_error(body: &[u8]) -> Option<ErrorObject> {
    match Inbound::parse(body) {
        Ok(Inbound::One(Message::Response(response))) => response.outcome.err(),
        _ => None,
    }
}

/// Where a redirect leads that is to be followed. One to another origin is not, because the headers
/// may hold credentials, and one that changes the method is a status like any other.
fn redirect(from: &Url, response: &Response) -> Result<Option<Url>, RedirectError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION);
    let location = location.and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    let Some(to) = location.and_then(|location| from.join(location).ok()) else {
        return Ok(None);
    };
    if from.origin() != to.origin() {
        return Err(RedirectError::OtherOrigin {
            from: from.origin().ascii_serialization(),
            to: to.origin().ascii_serialization(),
        });
    }
    Ok(matches!(response.status().as_u16(), 307 | 308).then_some(to))
}
