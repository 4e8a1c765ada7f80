//! Single HTTP requests: which headers they carry, and how much of an answer is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Method, RequestBuilder, Response, Url};

use super::endpoint::{HttpEndpoint, LAST_EVENT_ID};
use super::session::SessionHeaders;
use crate::client::events::Origin;
use crate::client::incoming::Incoming;
use crate::client::{HttpFailure, RequestError};
use crate::message::{Inbound, Message};
use crate::{ErrorObject, Request};

/// How much of the body of a failure is read, and how much of that is kept for a person.
const FAILURE_BODY: usize = 64 * 1024;
const SHOWN: usize = 600;

#[derive(Debug)]
pub(in crate::client) struct Wire {
    pub(super) url: Url,
    headers: HeaderMap,
    http: reqwest::Client,
    pub(super) body_limit: usize,
    ids: AtomicU64,
    pub(in crate::client) incoming: Arc<Incoming>,
}

impl Wire {
    pub(in crate::client) fn new(endpoint: HttpEndpoint, incoming: Arc<Incoming>) -> Self {
        Self {
            headers: endpoint.own_headers(),
            url: endpoint.url,
            http: endpoint.http,
            body_limit: endpoint.body_limit,
            ids: AtomicU64::new(1),
            incoming,
        }
    }

    pub(in crate::client) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) async fn post(
        &self,
        session: &SessionHeaders,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        self.post_to(self.url.clone(), session, message).await
    }

    pub(super) async fn post_to(
        &self,
        url: Url,
        session: &SessionHeaders,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        let request = self.prepare(Method::POST, url);
        self.send(session.add_to(request), message).await
    }

    /// Posts a message that stands by itself, with headers of its own.
    pub(in crate::client) async fn post_alone(
        &self,
        headers: HeaderMap,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        let request = self.prepare(Method::POST, self.url.clone());
        self.send(request.headers(headers), message).await
    }

    /// Opens a stream of server messages, after the event given if there is one.
    pub(super) async fn get(
        &self,
        session: &SessionHeaders,
        last_event_id: Option<&str>,
    ) -> Result<Response, RequestError> {
        let request = self.prepare(Method::GET, self.url.clone());
        let mut request = session.add_to(request).header(ACCEPT, "text/event-stream");
        // An id that cannot stand in a header cannot be resumed from.
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
            request = request.header(LAST_EVENT_ID, id);
        }
        self.answered(request).await
    }

    pub(super) async fn delete(&self, session: &SessionHeaders) -> Result<Response, RequestError> {
        let request = self.prepare(Method::DELETE, self.url.clone());
        self.answered(session.add_to(request)).await
    }

    async fn send(
        &self,
        request: RequestBuilder,
        message: Bytes,
    ) -> Result<Response, RequestError> {
        let request = request
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .body(message);
        self.answered(request).await
    }

    async fn answered(&self, request: RequestBuilder) -> Result<Response, RequestError> {
        // Without its type, which is so deep that the compiler gives up where it is used.
        let sending: BoxFuture<'_, _> = Box::pin(request.send());
        let response = sending.await?;
        self.incoming.hear();
        Ok(response)
    }

    fn prepare(&self, method: Method, url: Url) -> RequestBuilder {
        self.http.request(method, url).headers(self.headers.clone())
    }

    /// Has a request of the server answered, in the session it came in.
    pub(super) fn serve(
        self: &Arc<Self>,
        request: Request,
        session: &SessionHeaders,
        origin: Origin,
    ) {
        let (wire, session) = (Arc::clone(self), session.clone());
        self.incoming.request(request, origin, async move |reply| {
            wire.reply(&session, reply).await;
        });
    }

    async fn reply(&self, session: &SessionHeaders, message: Vec<u8>) {
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
            return Ok(());
        }
        Err(RequestError::Http(Box::new(self.failure(response).await)))
    }

    pub(super) async fn body(&self, mut response: Response) -> Result<Vec<u8>, RequestError> {
        let limit = self.body_limit as u64;
        let announced = response.content_length().unwrap_or(0);
        if announced > limit {
            return Err(RequestError::TooLarge { bytes: announced });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            self.incoming.hear();
            body.extend_from_slice(&chunk);
            if body.len() as u64 > limit {
                return Err(RequestError::TooLarge {
                    bytes: body.len() as u64,
                });
            }
        }
        Ok(body)
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

/// The media type, without parameters and in lower case.
pub(super) fn media_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let essence = value.split(';').next()?;
    Some(essence.trim().to_ascii_lowercase())
}
