//! A message of the client's on its way to the daemon, and what the relay has to know of messages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::HeaderMap;
use mcp::client::ToolHeaders;
use mcp::modern::{is_modern, methods, standard_headers};
use mcp::{Members, RawValue, Request, RequestId};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// One line of the client's, as it was written, with the headers that HTTP wants besides.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
    pub(super) purpose: Purpose,
    /// Of the modern era: it belongs to no session, and is cancelled by hanging up.
    pub(super) modern: bool,
}

/// What of a request concerns the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    Initialize,
    /// Opens a stream of subscriptions.
    Listen,
    /// The answer tells which arguments have to be repeated as headers.
    ListTools,
    SetLevel,
    Subscribe(String),
    Unsubscribe(String),
    Other,
}

/// The requests that wait for an answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Mutex<HashMap<RequestId, Waiting>>>);

#[derive(Debug)]
struct Waiting {
    modern: bool,
    cancelled: CancellationToken,
}

/// A request that waits for its answer. Dropping it frees its id.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: RequestId,
    pub(super) cancelled: CancellationToken,
    calls: Calls,
}

/// The members of a message of the daemon's that matter here, borrowed from it.
#[derive(Debug, Deserialize)]
pub(super) struct Peek<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
}

#[derive(Deserialize)]
struct Cancelled {
    #[serde(rename = "requestId")]
    request_id: RequestId,
}

// === impl Frame ===

impl Frame {
    /// A message about which nothing more has to be known.
    pub(super) fn plain(body: Bytes) -> Self {
        Self {
            body,
            headers: HeaderMap::new(),
            purpose: Purpose::Other,
            modern: false,
        }
    }

    /// A client that has a session speaks legacy, whatever else its requests say.
    pub(super) fn of(
        request: &Request,
        body: Bytes,
        in_session: bool,
        tools: &ToolHeaders,
    ) -> Self {
        let params = request.params.as_deref();
        let modern = !in_session && is_modern(request);
        let mut headers = HeaderMap::new();
        if modern {
            headers = standard_headers(&request.method, params);
            if request.method == "tools/call" {
                headers.extend(tools.headers(params));
            }
        }
        Self {
            body,
            headers,
            purpose: Purpose::of(&request.method, params, modern),
            modern,
        }
    }
}

// === impl Purpose ===

impl Purpose {
    fn of(method: &str, params: Option<&RawValue>, modern: bool) -> Self {
        let resource = || Some(serde_json::from_str::<Resource>(params?.get()).ok()?.uri);
        match method {
            "initialize" => Self::Initialize,
            methods::LISTEN if modern => Self::Listen,
            "tools/list" if modern => Self::ListTools,
            "logging/setLevel" => Self::SetLevel,
            "resources/subscribe" => resource().map_or(Self::Other, Self::Subscribe),
            "resources/unsubscribe" => resource().map_or(Self::Other, Self::Unsubscribe),
            _ => Self::Other,
        }
    }
}

// === impl Calls ===

impl Calls {
    /// `None` if a request with this id waits already.
    pub(super) fn begin(&self, id: &RequestId, modern: bool) -> Option<Call> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.contains_key(id) {
            return None;
        }
        let cancelled = CancellationToken::new();
        let call = Call {
            id: id.clone(),
            cancelled: cancelled.clone(),
            calls: self.clone(),
        };
        waiting.insert(id.clone(), Waiting { modern, cancelled });
        Some(call)
    }

    /// Cancels the request that the params of `notifications/cancelled` name. Says whether it is
    /// of the modern era, in which the daemon need not be told.
    pub(super) fn cancel(&self, params: Option<&RawValue>) -> bool {
        let named = params.and_then(|raw| serde_json::from_str::<Cancelled>(raw.get()).ok());
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(call) = named.and_then(|named| waiting.get(&named.request_id)) else {
            return false;
        };
        call.cancelled.cancel();
        call.modern
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut waiting = self.calls.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&self.id);
    }
}

// === impl Peek ===

impl<'a> Peek<'a> {
    /// The messages that a body or an event holds; none if they cannot be read.
    pub(super) fn all(message: &'a [u8]) -> Vec<Self> {
        let batch = message.trim_ascii_start().starts_with(b"[");
        let peeked = if batch {
            serde_json::from_slice(message)
        } else {
            serde_json::from_slice(message).map(|one| vec![one])
        };
        peeked.unwrap_or_default()
    }

    pub(super) fn is_answer(&self) -> bool {
        self.method.is_none() && (self.result.is_some() || self.error.is_some())
    }

    pub(super) fn id(&self) -> Option<RequestId> {
        self.id.and_then(RequestId::from_raw)
    }
}

/// An answer that was too early for an id, with the id of the request that it is meant for.
pub(super) fn with_id(answer: &[u8], id: &RequestId) -> Option<Vec<u8>> {
    let answer: &RawValue = serde_json::from_slice(answer).ok()?;
    let mut members = Members::parse(answer).ok()?;
    members.set("id", serde_json::value::to_raw_value(id).ok()?);
    let answer = members.to_raw().ok()?;
    Some(answer.get().as_bytes().to_vec())
}
