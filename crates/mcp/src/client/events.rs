//! What a server sends on its own, and who hears it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;

use super::Handshake;
use crate::{ErrorObject, Notification, Request};

/// Names one of the owner's calls, so that what the server says on its stream can be told from the
/// rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId(u64);

/// Where a message of the server came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The HTTP stream that answers this call, or the answer of a modern server that asks for
    /// something first.
    Call(CallId),
    /// The connection as a whole. On stdio all that a legacy server says shares it.
    Connection,
}

/// Hears what a server sends on its own. Implemented by the owner of a client.
///
/// What a modern server wants to know before it answers a call comes as the request that a legacy
/// server would have sent, with the key that the server gave the question for its id.
///
/// The client itself answers `ping`, routes `notifications/progress` to the caller that registered the
/// token, and takes `notifications/cancelled` by dropping the future of the request it names.
pub trait Events: Send + Sync + 'static {
    /// Called between two messages of the server, so it must not block.
    fn notification(&self, notification: Notification, origin: Origin);

    /// Answers a request of the server. Several run at once. The future is dropped when the server
    /// cancels the request or the client goes away.
    fn request(
        &self,
        request: Request,
        origin: Origin,
    ) -> impl Future<Output = Result<Box<RawValue>, ErrorObject>> + Send;

    /// The server had lost the HTTP session and a new one has taken its place. What the server
    /// kept for the old one (subscriptions, the log level) is gone, and what it offers may differ.
    fn session_replaced(&self, handshake: &Arc<Handshake>) {
        let _ = handshake;
    }
}

/// [`Events`] as an object, so that a client's type does not depend on its owner's.
pub(super) trait DynEvents: Send + Sync {
    fn notification(&self, notification: Notification, origin: Origin);
    fn request<'a>(
        &'a self,
        request: Request,
        origin: Origin,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send + 'a>>;
    fn session_replaced(&self, handshake: &Arc<Handshake>);
}

impl CallId {
    /// An id that no other call of this process has.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Ignores notifications and knows no method.
impl Events for () {
    fn notification(&self, _: Notification, _: Origin) {}

    async fn request(&self, request: Request, _: Origin) -> Result<Box<RawValue>, ErrorObject> {
        Err(ErrorObject::method_not_found(&request.method))
    }
}

impl<E: Events> Events for Arc<E> {
    fn notification(&self, notification: Notification, origin: Origin) {
        E::notification(self, notification, origin);
    }

    fn request(
        &self,
        request: Request,
        origin: Origin,
    ) -> impl Future<Output = Result<Box<RawValue>, ErrorObject>> + Send {
        E::request(self, request, origin)
    }

    fn session_replaced(&self, handshake: &Arc<Handshake>) {
        E::session_replaced(self, handshake);
    }
}

impl<E: Events> DynEvents for E {
    fn notification(&self, notification: Notification, origin: Origin) {
        E::notification(self, notification, origin);
    }

    fn request<'a>(
        &'a self,
        request: Request,
        origin: Origin,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, ErrorObject>> + Send + 'a>> {
        Box::pin(E::request(self, request, origin))
    }

    fn session_replaced(&self, handshake: &Arc<Handshake>) {
        E::session_replaced(self, handshake);
    }
}
